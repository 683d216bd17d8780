"""parse(render(s)) == s for any statement, and no text makes the parser fail in another way."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cachemgr.cache_spec import CacheSpec, Freshness, RefreshPolicy
from cachemgr.ddl import STATEMENTS, looks_like_ours, parse, parse_script, render
from cachemgr.ddl import statements as ddl
from cachemgr.errors import StatementError
from cachemgr.vocabulary import FreshnessKind
from scheduler import triggers

_CHARS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
_TEXT = st.text(_CHARS, max_size=12) | st.sampled_from(
    ["it's", '"', "\\", "\\%", "a\\_b", "\\\\%", "''", "\n", "\\u00e9", "\\101", ";--/*", "${x}"]
)
_KEYWORDS = "as if exists extended full set select with on to table function rename like auto in"
_PART = (
    st.text(_CHARS, min_size=1, max_size=8)
    | st.sampled_from(_KEYWORDS.split())
    | st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
    | st.sampled_from(["10s", "2024_x", "1", "1e5", "a`b", "a.b", "größe", "😀", "RELATIONAL"])
)
_NAME = st.lists(_PART, min_size=1, max_size=3).map(lambda parts: ddl.QualifiedName(tuple(parts)))
_SECONDS = st.integers(1, 36500 * 86400)
_SELECTS = (
    "SELECT 1 AS a",
    "(SELECT 1 AS a)",
    "WITH x AS (SELECT 1 AS a)\n SELECT * FROM x -- c\n WHERE a = ';'",
    "SELECT a, SUM(b) AS s FROM t GROUP BY a GROUPING SETS ((a), ())",
)
_CRON = st.builds(
    triggers.Cron,
    st.sampled_from(["0 6 * * mon-fri", "*/5 * * * *", "0 0 1 jan 7"]),
    st.none() | st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"]),
)
_TRIGGER = (
    st.just(triggers.OnDemand())
    | st.builds(triggers.OnCommit, st.none() | _SECONDS)
    | st.builds(triggers.TargetLag, _SECONDS)
    | st.builds(triggers.Every, _SECONDS)
    | _CRON
)
_POLICY = st.builds(RefreshPolicy, _TRIGGER, st.sampled_from(ddl.RefreshMode))
_FRESHNESS = st.sampled_from([Freshness(), Freshness(FreshnessKind.UNLIMITED)]) | _SECONDS.map(
    lambda seconds: Freshness(FreshnessKind.MAX_STALENESS, seconds)
)


def _properties(at_least: int) -> st.SearchStrategy[ddl.Properties]:
    found = st.dictionaries(_TEXT, _TEXT, min_size=at_least, max_size=3)
    return found.map(lambda pairs: tuple(pairs.items()))


_COLUMNS = st.lists(_PART, max_size=3, unique_by=str.lower).map(tuple)
_LOCATION = st.none() | _TEXT.filter(lambda text: bool(text.strip()))


@st.composite
def _creates(draw: st.DrawFn) -> ddl.CreateRelationalCache:
    select = draw(st.sampled_from(_SELECTS))
    columns, condition = draw(_COLUMNS), draw(st.sampled_from(["", "replace", "exists"]))
    clustered = draw(st.booleans()) and "GROUPING" not in select
    return ddl.CreateRelationalCache(
        name=draw(_NAME),
        select=ddl.SelectText(select),
        or_replace=condition == "replace",
        if_not_exists=condition == "exists",
        spec=CacheSpec(
            comment=draw(st.none() | _TEXT),
            partitioned_by=() if clustered else columns,
            cluster_by=columns if clustered else (),
            location=draw(_LOCATION),
            properties=dict(draw(_properties(0))),
            refresh=draw(_POLICY),
            freshness=draw(_FRESHNESS),
            rewrite_enabled=draw(st.booleans()),
        ),
    )


_ACTION = (
    st.builds(ddl.SetRewriteEnabled, st.booleans())
    | st.builds(ddl.SetPaused, st.booleans())
    | st.builds(ddl.RenameTo, _NAME)
    | st.builds(ddl.SetRefresh, _POLICY)
    | st.builds(ddl.SetFreshness, _FRESHNESS)
    | st.builds(ddl.SetProperties, _properties(1))
)


@st.composite
def _joins(draw: st.DrawFn) -> ddl.CreateRecordPreservingJoin:
    aliases = draw(st.lists(_PART, min_size=2, max_size=2, unique_by=str.casefold))
    left = ddl.TableRef(draw(_NAME), aliases[0])
    right = ddl.TableRef(draw(_NAME), aliases[1])
    keys = []
    for column, other in draw(st.lists(st.tuples(_PART, _PART), min_size=1, max_size=3)):
        form = draw(st.sampled_from(["both", "left", "right", "bare"]))
        keys.append(
            ddl.JoinKey(
                ddl.ColumnRef((aliases[0],) if form in ("both", "left") else (), column),
                ddl.ColumnRef((aliases[1],) if form in ("both", "right") else (), other),
                resolved=form != "bare",
            )
        )
    finds_each = draw(st.booleans())
    sides = st.sampled_from(ddl.Side) if finds_each else st.just(ddl.Side.LEFT)
    flags = draw(st.tuples(sides, st.booleans(), st.booleans()))
    return ddl.CreateRecordPreservingJoin(draw(_NAME), left, right, tuple(keys), *flags, finds_each)


_MODE = st.none() | st.sampled_from(ddl.RefreshMode)
_EXPLAINED = st.sampled_from([None, ddl.RefreshMode.FULL, ddl.RefreshMode.INCREMENTAL])
_BY_CLASS: dict[type, st.SearchStrategy[ddl.Statement]] = {
    ddl.CreateRelationalCache: _creates(),
    ddl.AlterRelationalCache: st.builds(ddl.AlterRelationalCache, _NAME, _ACTION),
    ddl.RefreshRelationalCache: st.builds(ddl.RefreshRelationalCache, _NAME, _MODE),
    ddl.DropRelationalCache: st.builds(ddl.DropRelationalCache, _NAME, st.booleans()),
    ddl.ShowRelationalCaches: st.builds(ddl.ShowRelationalCaches, st.none() | _TEXT),
    ddl.ShowCreateRelationalCache: st.builds(ddl.ShowCreateRelationalCache, _NAME),
    ddl.DescribeRelationalCache: st.builds(ddl.DescribeRelationalCache, _NAME, st.booleans()),
    ddl.ExplainRewrite: st.builds(
        ddl.ExplainRewrite,
        st.sampled_from(_SELECTS).map(ddl.SelectText),
        st.booleans(),
        st.booleans(),
    ),
    ddl.ExplainRefresh: st.builds(ddl.ExplainRefresh, _NAME, _EXPLAINED),
    ddl.ExplainCreate: st.builds(ddl.ExplainCreate, _creates()),
    ddl.CreateRecordPreservingJoin: _joins(),
    ddl.DropRecordPreservingJoin: st.builds(ddl.DropRecordPreservingJoin, _NAME, st.booleans()),
    ddl.ShowRecordPreservingJoins: st.just(ddl.ShowRecordPreservingJoins()),
    ddl.ValidateRecordPreservingJoin: st.builds(ddl.ValidateRecordPreservingJoin, _NAME),
    ddl.GrantUse: st.builds(ddl.GrantUse, _NAME, _PART),
    ddl.RevokeUse: st.builds(ddl.RevokeUse, _NAME, _PART),
    ddl.RestrictBaseTable: st.builds(ddl.RestrictBaseTable, _NAME),
    ddl.UnrestrictBaseTable: st.builds(ddl.UnrestrictBaseTable, _NAME),
    ddl.ShowRestrictedBaseTables: st.just(ddl.ShowRestrictedBaseTables()),
    ddl.GrantSelect: st.builds(ddl.GrantSelect, _NAME, _PART),
    ddl.RevokeSelect: st.builds(ddl.RevokeSelect, _NAME, _PART),
    ddl.ShowSelectGrants: st.builds(ddl.ShowSelectGrants)
    | st.builds(ddl.ShowSelectGrants, name=_NAME)
    | st.builds(ddl.ShowSelectGrants, principal=_PART),
}
_STATEMENT = st.one_of(list(_BY_CLASS.values()))


def test_every_class_is_generated() -> None:
    assert set(_BY_CLASS) == set(STATEMENTS)


@settings(max_examples=600)
@given(_STATEMENT)
def test_parse_is_the_inverse_of_render(statement: ddl.Statement) -> None:
    text = render(statement)
    assert parse(text) == statement, text
    assert looks_like_ours(text), text


@settings(max_examples=100)
@given(st.lists(_STATEMENT, max_size=4))
def test_scripts_too(statements: list[ddl.Statement]) -> None:
    assert parse_script(";\n".join(map(render, statements))) == statements


_WORDS = """create or replace relational cache if not exists c a.b record preserving join as inner
on a.k = b.k preserves refresh every 5 minutes cron '0 6 * * *' max staleness interval strict
select 1 ( ) , . ; ` ' " -- /* */ \\ r' 😀 10s explain rewrite alter set tblproperties show
like""".split()


@settings(max_examples=400)
@given(
    st.sampled_from(["", "create relational cache c ", "create record preserving join j as a "]),
    st.lists(st.sampled_from(_WORDS) | st.text(max_size=3), max_size=12),
)
def test_any_text_is_parsed_or_refused_with_its_place(lead: str, words: list[str]) -> None:
    text = lead + " ".join(words)
    try:
        statements = parse_script(text)
    except StatementError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.col <= len(lines[error.line - 1]) + 1
    else:
        assert parse_script(";".join(map(render, statements))) == statements
