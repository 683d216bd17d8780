"""A service that rewrites texts over some caches, and clients of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import httpx

from cachemgr.base_state import TableAt
from cachemgr.cache_spec import Freshness
from cachemgr.metastore import Metastore
from cachemgr.roles import Role
from cachemgr.serving.feed import Feed
from cachemgr.text.door import TextDoor
from cachemgr.vocabulary import FreshnessKind
from tests.harness.load.population import write_commit

FROM = """FROM lineorder, dates, customer, supplier, part
WHERE lo_orderdate = d_datekey AND lo_custkey = c_custkey
AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey"""
UNLIMITED = Freshness(FreshnessKind.UNLIMITED)
QUERY = f"""SELECT d_year, c_nation, SUM(lo_revenue) AS revenue {FROM}
AND c_region = 'ASIA' AND d_year >= 1993 GROUP BY d_year, c_nation ORDER BY d_year"""


@dataclass
class Texts:
    """A service with some caches, and clients of it. Each request is sent `times` times: a text is
    known when it comes for the third time, and what is known must not change any answer."""

    url: str
    store: Metastore
    feed: Feed
    folder: Path
    tables: dict[str, TableAt]
    door: TextDoor
    times: int
    tokens: dict[str, str] = field(default_factory=dict)

    def ask(self, path: str, body: object, principal: str = "ann") -> httpx.Response:
        if principal not in self.tokens:
            self.tokens[principal] = self.store.tokens.create(principal, Role.VIEWER)[1]
        headers = {"Authorization": f"Bearer {self.tokens[principal]}"}
        url = f"{self.url}/api/v1/{path}"
        for _ in range(self.times):
            answer = httpx.post(url, json=body, headers=headers, timeout=30)
        return answer

    def rewrite(self, sql: str, principal: str = "ann", **more: object) -> dict:
        answer = self.ask("rewrite", {"sql": sql, **more}, principal)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["hit"] is (found["sql"] is not None)
        return found

    def code(self, sql: str, principal: str = "ann", **more: object) -> str:
        found = self.rewrite(sql, principal, **more)
        assert not found["hit"] and found["tables"] == [], found
        return found["reasons"][0]["code"]

    def commit(self, table: str, version: int, *actions: dict) -> None:
        write_commit(self.folder / table / "_delta_log", version, list(actions))
