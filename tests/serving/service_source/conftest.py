"""A service on a port of its own, sources that follow it, and feeds of what they say."""

from __future__ import annotations

import pytest

from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from cachemgr.serving.feed import Feed, acquire_feed_of, release_feed
from cachemgr.serving.service_source import ServiceSource
from tests.api.conftest import make_cache
from tests.serving.service_source.followed import Clock, Server, until


@pytest.fixture
def store(metastore_url):
    with open_metastore(metastore_url) as opened:
        yield opened


@pytest.fixture
def new_cache(store):
    def create(name, **changed):
        return store.caches.create(make_cache(name, **changed), now=store.clock.now())

    return create


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
