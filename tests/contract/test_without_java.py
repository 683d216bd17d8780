"""A machine without Java: what needs Spark says so, everything else works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import rest_service


@pytest.mark.postgres
def test_a_spark_that_does_not_start(postgres_url, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    with rest_service(postgres_url, tmp_path) as service:
        ask = service.replica.client
        answer = ask.post("/api/v1/caches", json={"ddl": "CREATE RELATIONAL CACHE c AS SELECT 1"})
        assert answer.status_code == 503 and answer.headers["Retry-After"], answer.text
        assert answer.json()["error"]["type"] == "SPARK_NOT_STARTED"
        assert "doctor" in answer.json()["error"]["message"]
        assert ask.get("/api/v1/caches").json()["caches"] == []
        assert ask.get("/readyz").status_code == 200
