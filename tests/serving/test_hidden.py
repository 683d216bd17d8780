"""What EXPLAIN REWRITE tells a user of a server of caches that he may not be answered from."""

from __future__ import annotations

from cachemgr.serving.decision import BlockOutcome, Decision
from cachemgr.serving.hidden import without_hidden
from matcher.model.ir import Candidate
from matcher.model.reasons import Reason, ReasonCode
from matcher.rules.choose import cannot_answer

SECRET = Reason(ReasonCode.PREDICATE_NOT_CONTAINED, "the cache keeps rows of name LIKE 'A%'", "x")
PLAIN = Reason(ReasonCode.TABLE_NOT_IN_CACHE, "it does not read t", "join t")
REFUSED = Reason(ReasonCode.NOT_GRANTED, "eve has no grant on cache pay", "GRANT USE …")


def why_not(name: str) -> Reason | None:
    return REFUSED if name == "pay" else None


def test_of_a_cache_that_is_not_his_he_learns_that_alone() -> None:
    quoting = cannot_answer("pay", SECRET)
    assert SECRET.detail in quoting.detail
    outcome = BlockOutcome(
        (),
        None,
        None,
        (
            Candidate("pay", ("dept", "name"), "refused", (SECRET,)),
            Candidate("pay", ("dept",), "refused", (SECRET,)),
            Candidate("open", None, "refused", (PLAIN,)),
        ),
        (SECRET, PLAIN),
    )
    inner = Decision((outcome,))
    found = without_hidden(Decision((outcome,), unheeded=(quoting,), apart=(inner,)), why_not)
    assert SECRET.detail not in repr(found) and "dept" not in repr(found)
    assert found.outcomes[0].candidates == (
        Candidate("pay", None, "refused", (REFUSED,)),
        Candidate("open", None, "refused", (PLAIN,)),
    )
    assert found.outcomes[0].reasons == (REFUSED, PLAIN)
    assert REFUSED.detail in found.unheeded[0].detail


def test_what_also_holds_of_a_cache_that_he_may_use_stays() -> None:
    outcome = BlockOutcome(
        (),
        None,
        None,
        (Candidate("pay", None, "refused", (PLAIN,)), Candidate("open", None, "refused", (PLAIN,))),
        (PLAIN,),
    )
    assert without_hidden(Decision((outcome,)), why_not).outcomes[0].reasons == (PLAIN,)
