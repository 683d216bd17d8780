"""docker-compose.yml: what it says is safe, and its very commands work together."""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.compose import composed, load, postgres_of, wait_healthy
from tests.processes import SMALL_JVM, Started, until

SECRETS = {"POSTGRES_PASSWORD": "p4ss", "SPARK_SECRET": "s3cret"}
QUERY = "SELECT region, SUM(amount) AS total FROM sales GROUP BY region"


def test_secrets_have_no_default():
    for missing in SECRETS:
        with pytest.raises(KeyError, match=f"{missing}: set {missing}"):
            load({name: text for name, text in SECRETS.items() if name != missing})


def test_images_are_pinned_and_ports_are_published_on_loopback_alone():
    services = load(SECRETS)["services"]
    needed = {"postgres", "setup", "spark-master", "service", "worker", "demo"}
    assert needed <= set(services) and services["demo"]["profiles"] == ["demo"]
    assert sum(name.startswith("spark-worker") for name in services) == 2
    for name, service in services.items():
        assert re.fullmatch(r"[\w./-]+:\d+\.\d+(\.\d+)?", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        lasts = service.get("restart") == "unless-stopped"
        assert lasts == ("healthcheck" in service), name
        for needed_one in service.get("depends_on", {}):
            assert needed_one in services
    volumes = load(SECRETS)["volumes"]
    used = {v.split(":")[0] for s in services.values() for v in s.get("volumes", ())}
    assert used == set(volumes)


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.slow
def test_the_commands_work_together(spark, tmp_path: Path):
    """Every service but the demo, in the order of depends_on, each waited for by its own health
    check; then a cache is created by REST and refreshed on the cluster."""
    rows = [("north", 1), ("north", 2), ("south", 40)]
    frame = spark.createDataFrame(rows, "region string, amount bigint")
    frame.write.format("delta").save(str(tmp_path / "run" / "data" / "sales"))
    init = json.dumps(["CREATE TABLE sales USING delta LOCATION '/data/sales'"])
    environment = {**SECRETS, "CACHEMGR_SPARK_INIT": init}
    with ExitStack() as stack:
        one = stack.enter_context(composed(tmp_path / "run", environment))
        one.more = {"JDK_JAVA_OPTIONS": SMALL_JVM}
        stack.enter_context(postgres_of(one))
        until(lambda: one.healthy("postgres"), 30, "postgres is healthy")
        started: dict[str, Started] = {}
        for name in _in_order(one.services):
            started[name] = process = one.start(name)
            stack.callback(process.kill)
            if "healthcheck" in one.services[name]:
                wait_healthy(one, name, process)
            else:
                assert process.process.wait(120) == 0, process.text()
        token = (tmp_path / "run" / "secrets" / "admin").read_text().strip()
        base = f"http://127.0.0.1:{one.ports[('service', '8470')]}"
        assert httpx.get(f"{base}/api/v1/caches").status_code == 401
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=base, headers=headers, timeout=180) as client:
            made = client.post(
                "/api/v1/caches", json={"ddl": f"CREATE RELATIONAL CACHE totals AS {QUERY}"}
            )
            assert made.status_code == 201, made.text
            asked = client.post("/api/v1/caches/totals/refreshes").json()
            end = time.monotonic() + 240
            state = asked["state"]
            while state not in ("PUBLISHED", "FAILED") and time.monotonic() < end:
                found = client.get(f"/api/v1/refreshes/{asked['id']}", params={"waitSeconds": 30})
                state = found.json()["state"]
            assert state == "PUBLISHED", found.text

            def explained() -> dict[str, Any]:
                found = client.post("/api/v1/explain", json={"sql": QUERY})
                return dict(found.json())

            # the service's own session follows the metastore within seconds
            until(lambda: explained()["hit"], 30, "the service knows the new snapshot")
            assert explained()["caches"] == ["totals"]
        web = one.ports[("spark-master", "8080")]
        cluster = httpx.get(f"http://127.0.0.1:{web}/json/").json()
        assert cluster["aliveworkers"] == 2 and cluster["activeapps"]
        location = next((tmp_path / "run" / "data" / "caches").glob("**/_delta_log")).parent
        stored = spark.read.format("delta").load(str(location)).collect()
        assert {(r.region, r.total) for r in stored} == {("north", 3), ("south", 40)}
        for name in ("service", "worker"):
            assert started[name].stop(90) == 0, started[name].text()[-3000:]


def _in_order(services: dict[str, dict]) -> list[str]:
    """All services that no profile leaves out, each after those that it depends on."""
    ordered = ["postgres"]
    left = [n for n, s in services.items() if n not in ordered and "profiles" not in s]
    while left:
        name = next(n for n in left if set(services[n].get("depends_on", ())) <= set(ordered))
        ordered.append(name)
        left.remove(name)
    return ordered[1:]
