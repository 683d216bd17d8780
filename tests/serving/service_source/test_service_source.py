"""A feed that follows the service over real HTTP: news of caches, tables and joins, and the
settings that name a service."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from cachemgr.access.grants import keys_of
from cachemgr.config.session_settings import Settings
from cachemgr.errors import ConfigurationError
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.roles import Role
from cachemgr.serving import service_source
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import MetastoreSource
from cachemgr.spark.source_of import source_of
from cachemgr.vocabulary import JoinState
from tests.api.test_api_catalog import publish
from tests.serving.service_source.followed import PLAN, names, until


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
