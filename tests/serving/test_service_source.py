"""A feed that follows the service over real HTTP: news, refusals, outages, and its decisions."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest
from sqlalchemy import text

from cachemgr.access.grants import keys_of
from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState
from cachemgr.config.session_settings import Settings
from cachemgr.errors import CacheManagerError, ConfigurationError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.records import DecisionRecord, JoinRecord, JoinSide
from cachemgr.roles import Role
from cachemgr.serving import service_source
from cachemgr.serving.feed import Feed, acquire_feed_of, release_feed
from cachemgr.serving.service_source import ServiceSource
from cachemgr.serving.sources import MetastoreSource, SourceRefused
from cachemgr.spark.source_of import source_of
from cachemgr.vocabulary import JoinState, Outcome
from matcher.model.codec import encode_plan
from matcher.model.expr import Agg, Col
from matcher.model.ir import CachePlan, Measure, Relation, StoredColumn
from matcher.model.reasons import ReasonCode
from tests.api.conftest import make_cache
from tests.api.test_api_catalog import publish
from tests.processes import free_port
from tests.servers import ServerThread

PLAN = encode_plan(
    CachePlan(
        "c",
        (Relation("file:/t", "t"), Relation("file:/u", "u")),
        (),
        (StoredColumn("k", Col(0, "k", "string")),),
        (Measure("n", Agg("count", (), "bigint", False)),),
    )
)


class Server:
    """The application on a port of its own; can be stopped and started again there."""

    def __init__(self, store) -> None:
        self._app = create_app(ApiState(store, None, lambda: False))
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.asked: list[str] = []
        self.start()

    def start(self) -> None:
        self._server = ServerThread(self._app, self._port)

    def stop(self) -> None:
        self._server.stop()


def until(true: Callable[[], object], what: str, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@pytest.fixture
def store(metastore_url):
    with open_metastore(metastore_url) as opened:
        yield opened


@pytest.fixture
def new_cache(store):
    def create(name, **changed):
        return store.caches.create(make_cache(name, **changed), now=store.clock.now())

    return create


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.now


@pytest.fixture
def server(store):
    made = Server(store)
    yield made
    made.stop()


@pytest.fixture
def token(store):
    return store.tokens.create("ann", Role.VIEWER)


@pytest.fixture
def source_for(server, token):
    made: list[ServiceSource] = []

    def make(*urls: str, patience: float = 3600.0) -> ServiceSource:
        made.append(ServiceSource(urls or [server.url], lambda: token[1], patience))
        return made[-1]

    yield make
    for source in made:
        source.close()


@pytest.fixture
def feed(source_for):
    return Feed(source_for(), clock=Clock())


@pytest.fixture
def running(source_for):
    made = acquire_feed_of(source_for())
    until(lambda: made.why_not_ready() is None, "the feed has loaded")
    yield made
    release_feed(made)


def names(feed):
    return sorted(feed.registry.names())


def test_it_loads_and_follows(feed, store, new_cache):
    one = new_cache("one", plan=PLAN)
    assert "being loaded" in feed.why_not_ready().detail
    assert feed.sync() and names(feed) == ["one"]
    assert feed.principal == "ann" and feed.why_not_ready() is None
    assert not feed.sync()
    new_cache("two", plan=PLAN)
    assert feed.sync() and names(feed) == ["one", "two"]
    store.caches.drop(one.id, now=store.clock.now())
    feed.sync()
    assert names(feed) == ["two"] and feed.served("one") is None


def test_what_a_session_serves_is_the_same_by_both_ways(feed, store, new_cache):
    made = new_cache("one", plan=PLAN, settings={"spark.sql.ansi.enabled": "true"})
    publish(store, made)
    store.grants.add(made.id, "ann")
    feed.sync()
    local = Feed(MetastoreSource(store))
    local.sync()
    assert feed.served("one") == local.served("one")
    assert feed.served("one").version == 1 and feed.served("one").principals == {"ann"}


@pytest.mark.parametrize("what", ["drop", "disable", "revoke"])
def test_drops_and_revokes_arrive_within_five_seconds(running, store, new_cache, what):
    made = new_cache("one", plan=PLAN)
    store.grants.add(made.id, "ann")
    until(lambda: running.served("one"), "the cache is there")
    now = store.clock.now()
    if what == "drop":
        store.caches.drop(made.id, now=now)
    elif what == "disable":
        version = store.caches.get(made.id).version
        store.caches.update(made.id, version, now=now, rewrite_enabled=False)
    else:
        store.grants.revoke(made.id, "ann")
    until(
        lambda: running.served("one") is None or not running.served("one").rewrite_enabled,
        "it does not serve",
        5,
    )


def test_pages_come_together(feed, store, new_cache, monkeypatch):
    monkeypatch.setattr(service_source, "_PAGE", 2)
    for i in range(5):
        new_cache(f"c{i}", plan=PLAN)
    feed.sync()
    assert names(feed) == [f"c{i}" for i in range(5)]


def test_a_restored_metastore_is_loaded_anew(feed, store, new_cache):
    new_cache("one", plan=PLAN)
    new_cache("two", plan=PLAN)
    feed.sync()
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM caches WHERE name = 'two'"))
        connection.execute(text("UPDATE registry_revision SET revision = 1, epoch = 'restored'"))
    feed.sync()
    assert names(feed) == ["one"]


def test_what_no_revision_tells_is_found_by_the_digest(feed, store, new_cache):
    new_cache("one", plan=PLAN)
    two = new_cache("two", plan=PLAN)
    feed.sync()
    # dropped, and its row purged, while the session did not listen
    store.caches.drop(two.id, now=store.clock.now())
    store.caches.purge(two.id)
    feed.sync()
    assert names(feed) == ["one"]


def test_a_restricted_table_takes_its_caches_from_those_not_granted(feed, store, new_cache):
    mine, other = new_cache("mine", plan=PLAN), new_cache("other", plan=PLAN)
    feed.sync()
    assert names(feed) == ["mine", "other"] and feed.restricted() == {}
    store.tables.restrict("t", "file:/t", None, by="root")
    feed.sync()
    assert names(feed) == []
    store.grants.add(mine.id, "ann")
    feed.sync()
    assert names(feed) == ["mine"] and feed.served("mine").principals == {"ann"}
    assert feed.restricted()["file:/t"] == "t"
    # the other's files, should a query name their place
    place = f"s3a://bucket/caches/{other.id}"
    assert [feed.restricted().get(key) for key in keys_of(place)] == [None, None, "t"]


def test_joins_change_the_plans_that_are_there_already(feed, store, new_cache):
    new_cache("one", plan=PLAN)
    feed.sync()
    assert feed.served("one").plan.joins == ()
    join = JoinRecord(
        name="j",
        definition="…",
        left=JoinSide("t", "file:/t", "it"),
        right=JoinSide("u", "file:/u", "iu"),
        keys=(("x", "y"),),
        validated=False,
        state=JoinState.NOT_VALIDATED,
    )
    store.joins.create(join, now=store.clock.now())
    before = feed.stamp
    feed.sync()
    assert [j.name for j in feed.served("one").plan.joins] == ["j"]
    assert feed.served("one").unvalidated == {"j"} and feed.served("one").stamp > before
    store.joins.drop("j")
    feed.sync()
    assert feed.served("one").plan.joins == ()


def test_an_outage_is_borne_for_its_time_and_no_longer(server, source_for, new_cache):
    new_cache("one", plan=PLAN)
    clock = Clock()
    feed = Feed(source_for(patience=3600), clock=clock)
    feed.sync()
    server.stop()
    with pytest.raises(CacheManagerError) as caught:
        feed.sync()
    assert caught.value.code == "SERVICE_UNREACHABLE" and server.url in caught.value.message
    assert feed.why_not_ready() is None
    clock.now = 60
    assert feed.why_not_ready() is None
    clock.now = 3700
    reason = feed.why_not_ready()
    assert "could not be asked" in reason.detail and server.url in reason.detail
    server.start()
    feed.sync()
    assert feed.why_not_ready() is None and names(feed) == ["one"]


def test_a_service_that_was_never_reached_says_so(source_for, server):
    server.stop()
    feed = Feed(source_for())
    with pytest.raises(CacheManagerError):
        feed.sync()
    reason = feed.why_not_ready()
    assert reason.code is ReasonCode.REGISTRY_LOADING and server.url in reason.detail


def test_a_service_that_is_back_is_followed_again(running, server, store, new_cache):
    server.stop()
    new_cache("one", plan=PLAN)
    server.start()
    until(lambda: names(running) == ["one"], "the cache made meanwhile", 10)


def test_another_replica_takes_over(server, store, source_for, new_cache):
    other = Server(store)
    try:
        feed = Feed(source_for(server.url, other.url))
        feed.sync()
        server.stop()
        new_cache("one", plan=PLAN)
        assert feed.sync() and names(feed) == ["one"]
        server.start()
        other.stop()
        new_cache("two", plan=PLAN)
        assert feed.sync() and names(feed) == ["one", "two"]
    finally:
        other.stop()


def test_a_replica_that_hangs_is_left_in_time(server, source_for, store, new_cache):
    """It takes connections and says nothing, as a stopped process does."""
    with socket.socket() as hung:
        hung.bind(("127.0.0.1", 0))
        hung.listen()
        feed = Feed(source_for(server.url, f"http://127.0.0.1:{hung.getsockname()[1]}"))
        feed.sync()
        made = new_cache("one", plan=PLAN)
        feed.sync()
        feed.source._urls.reverse()  # the one that hangs is the one asked
        store.caches.drop(made.id, now=store.clock.now())
        started = time.monotonic()
        feed.sync()
        assert names(feed) == [] and time.monotonic() - started < 5


def test_a_feed_closes_at_once_though_a_poll_waits(source_for, store):
    feed = acquire_feed_of(source_for())
    until(lambda: feed.why_not_ready() is None, "the feed has loaded")
    time.sleep(0.5)
    feed.log(lambda: decision(1))
    started = time.monotonic()
    release_feed(feed)
    assert time.monotonic() - started < 2
    assert [d.query_hash for d in store.decisions.latest()] == ["q1"]


@pytest.mark.parametrize("how", ["revoked", "expired", "unknown"])
def test_a_token_that_is_no_good_stops_all_hits_and_says_why(running, store, token, new_cache, how):
    new_cache("one", plan=PLAN)
    until(lambda: running.served("one"), "the cache is there")
    with store.engine.begin() as connection:
        if how == "unknown":
            connection.execute(text("DELETE FROM tokens"))
        elif how == "expired":
            row = {"then": "2020-01-01 00:00:00+00:00"}
            connection.execute(text("UPDATE tokens SET expires_at = :then"), row)
    if how == "revoked":
        store.tokens.revoke(token[0].id)
    until(lambda: running.why_not_ready() is not None, "it refuses", 5)
    reason = running.why_not_ready()
    assert reason.code is ReasonCode.NOT_GRANTED
    assert "unknown, expired or revoked" in reason.detail and token[1] not in reason.detail


def test_a_refusal_outlasts_an_outage_and_ends_with_a_good_token(
    server, store, token, new_cache, tmp_path
):
    file = tmp_path / "token"
    file.write_text(token[1] + "\n")
    settings = Settings(url=f"{server.url}/", token_file=str(file))
    source = source_of(settings, {})
    try:
        feed = Feed(source)
        feed.sync()
        store.tokens.revoke(token[0].id)
        with pytest.raises(SourceRefused):
            feed.sync()
        server.stop()
        with pytest.raises(CacheManagerError):
            feed.sync()
        assert feed.why_not_ready().code is ReasonCode.NOT_GRANTED
        server.start()
        file.write_text(store.tokens.create("bob", Role.VIEWER)[1])
        feed.sync()
        assert feed.why_not_ready() is None and feed.principal == "bob"
    finally:
        source.close()


def test_who_asks_changes_with_the_caches_and_not_before_them(
    server, store, token, new_cache, tmp_path, monkeypatch
):
    cache = new_cache("one", plan=PLAN)
    for friend in ("ann", "bob"):
        store.grants.add(cache.id, friend)
    file = tmp_path / "token"
    file.write_text(token[1])
    source = source_of(Settings(url=server.url, token_file=str(file)), {})
    try:
        feed = Feed(source)
        feed.sync()
        file.write_text(store.tokens.create("bob", Role.VIEWER)[1])
        put, seen = feed.registry.put, []
        monkeypatch.setattr(
            feed.registry, "put", lambda plan: (seen.append(feed.principal), put(plan))
        )
        assert feed.sync() and seen == ["ann"]
        assert feed.principal == "bob" and feed.served("one").principals == frozenset({"bob"})
    finally:
        source.close()


def test_a_session_of_another_release_is_told_so(feed, monkeypatch):
    feed.sync()
    monkeypatch.setattr(service_source, "CATALOG_VERSION", "0.1")
    with pytest.raises(SourceRefused):
        feed.sync()
    assert "same release" in feed.why_not_ready().detail


def test_what_answers_and_is_no_service_is_an_outage(source_for, monkeypatch):
    def strange(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="<html>Sign in</html>")

    source = ServiceSource(["http://x"], lambda: "t", 1.0, httpx.MockTransport(strange))
    with pytest.raises(CacheManagerError, match="not as cachemgr does"):
        source.news(None)
    for status, refused in ((404, False), (502, False), (403, True)):
        transport = httpx.MockTransport(lambda r, s=status: httpx.Response(s, text="<html>"))
        source = ServiceSource(["http://x"], lambda: "t", 1.0, transport)
        with pytest.raises(CacheManagerError) as caught:
            source.news(None)
        assert isinstance(caught.value, SourceRefused) is refused


def test_pauses_grow_and_differ(source_for):
    source = source_for()
    assert source.pause(0) == 0
    late = {source.pause(50) for _ in range(20)}
    assert len(late) > 1 and max(late) <= 2.5 and min(late) >= 0.25


# -- decisions -----------------------------------------------------------------------------


def decision(number: int) -> DecisionRecord:
    return DecisionRecord(datetime.now(UTC), "s", f"q{number}", Outcome.HIT, ("c",))


def flushed(feed, store, count: int) -> None:
    """Hand over until so many have arrived: what a busy service does not take in time is sent
    again."""

    def arrived() -> bool:
        feed.flush_log()
        return len(store.decisions.latest(1000)) >= count

    until(arrived, f"{count} decisions", 60)


def test_decisions_arrive_in_batches_and_once(feed, store):
    for i in range(450):
        feed.log(lambda i=i: decision(i))
    flushed(feed, store, 450)
    found = store.decisions.latest(1000)
    assert len({d.query_hash for d in found}) == len(found) == 450
    assert {d.principal for d in found} == {"ann"}


def test_a_batch_whose_answer_was_lost_is_not_stored_twice(feed, store, monkeypatch):
    send, lost = feed.source.send, []

    def losing(batch, batch_id):
        send(batch, batch_id)
        if not lost:
            lost.append(batch_id)
            raise CacheManagerError("SERVICE_UNREACHABLE", "the answer was lost")

    monkeypatch.setattr(feed.source, "send", losing)
    feed.log(lambda: decision(1))
    feed.flush_log()
    feed.log(lambda: decision(2))
    flushed(feed, store, 2)
    assert sorted(d.query_hash for d in store.decisions.latest()) == ["q1", "q2"]


def test_decisions_wait_for_a_service_that_is_down_up_to_a_bound(feed, server, store, monkeypatch):
    from cachemgr.serving import decision_log

    monkeypatch.setattr(decision_log, "MAX_PENDING", 5)
    server.stop()
    started = time.monotonic()
    for i in range(8):
        feed.log(lambda i=i: decision(i))
    assert time.monotonic() - started < 0.1
    feed.flush_log()
    assert feed.telemetry.counters()["decisions_not_logged"] == 3
    server.start()
    flushed(feed, store, 5)
    assert len(store.decisions.latest()) == 5


def test_a_batch_that_is_refused_does_not_hold_up_the_others(feed, store, monkeypatch):
    monkeypatch.setattr(service_source, "encode_decision", lambda d: {"nonsense": d.query_hash})
    feed.log(lambda: decision(1))
    feed.flush_log()
    monkeypatch.undo()
    feed.log(lambda: decision(2))
    flushed(feed, store, 1)
    assert [d.query_hash for d in store.decisions.latest()] == ["q2"]
    assert feed.telemetry.counters()["decisions_not_logged"] == 1


# -- settings ------------------------------------------------------------------------------


def test_sessions_share_a_feed_only_with_the_same_service_and_token(server, token, store, tmp_path):
    settings = Settings(url=server.url, token=token[1])
    one, same = source_of(settings, {}), source_of(settings, {})
    bob = store.tokens.create("bob", Role.VIEWER)[1]
    other = source_of(Settings(url=server.url, token=bob), {})
    # a file with the same token now may hold that of somebody else later
    file = tmp_path / "token"
    file.write_text(token[1])
    read = [source_of(Settings(url=server.url, token_file=str(file)), {}) for _ in range(2)]
    try:
        assert one.key == same.key != other.key
        assert read[0].key == read[1].key not in (one.key, other.key)
        assert token[1] not in json.dumps([one.key, one.name]) + repr(settings)
    finally:
        for source in (one, same, other, *read):
            source.close()


@pytest.mark.parametrize(
    "url", ["ftp://host", "host:8470", "http://", "http://ann:secret@host", "http://h?token=secret"]
)
def test_what_is_no_url_of_a_service(url):
    with pytest.raises(ConfigurationError) as caught:
        source_of(Settings(url=url), {})
    assert "spark.cachemgr.url" in caught.value.message and "secret" not in caught.value.message


@pytest.mark.parametrize("text", ["ü", "a b", "a\nb", "a\udc80"])
def test_what_is_no_token(text, tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    for settings in ({"token": text}, {"token_file": str(file)}, {}):
        monkeypatch.setenv("CACHEMGR_TOKEN", "" if settings else text)
        with pytest.raises(ConfigurationError, match="token") as caught:
            source_of(Settings(url="http://h:1", **settings), {})
        assert caught.value.code == "BAD_SETTING"


def test_a_service_and_a_metastore_exclude_each_other():
    with pytest.raises(ConfigurationError, match="unset one"):
        source_of(Settings(url="http://h:1"), {"spark.cachemgr.metastore.url": "sqlite:///x"})


def test_a_token_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigurationError, match="tokenFile"):
        source_of(Settings(url="http://h:1", token_file=str(tmp_path / "none")), {})


def test_the_token_may_come_from_the_environment(server, token, monkeypatch):
    monkeypatch.setenv("CACHEMGR_TOKEN", token[1])
    source = source_of(Settings(url=server.url), {})
    try:
        assert source.news(None).principal == "ann"
    finally:
        source.close()
