"""A feed whose service is away, refuses its token or is another release: what is borne, for how
long, and what is said."""

from __future__ import annotations

import socket
import time

import httpx
import pytest
from sqlalchemy import text

from cachemgr.config.session_settings import Settings
from cachemgr.errors import CacheManagerError
from cachemgr.roles import Role
from cachemgr.serving import service_source
from cachemgr.serving.feed import Feed
from cachemgr.serving.service_source import ServiceSource
from cachemgr.serving.sources import SourceRefused
from cachemgr.spark.source_of import source_of
from matcher.model.reasons import ReasonCode
from tests.serving.service_source.followed import PLAN, Clock, Server, names, until


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
