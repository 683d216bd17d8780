"""The metastore is lost, and made again from what stands beside the caches' tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from test_text_door import Door
from typer.testing import CliRunner

import cachemgr
from cachemgr.cli import main
from cachemgr.metastore import open_metastore
from cachemgr.metastore.database import metastore_url as parsed
from cachemgr.refresh.run import run_refresh
from tests.databases import on_both
from tests.worlds.lab_star import JOIN, make_lab
from tests.worlds.refresh_star import Crash, crash_at

pytestmark = pytest.mark.spark
TOTALS = "SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"
BY_DAY = "SELECT day, SUM(cost) AS c FROM sales GROUP BY day"
WITH_CITY = (
    "SELECT cust, SUM(amt) AS s, COUNT(amt) AS n FROM sales JOIN cust ON cust = cid GROUP BY cust"
)
BY_CUST = "SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust"
BY_ID = "SELECT id, MAX(price) AS p FROM sales GROUP BY id"
MORE_SALES = "INSERT INTO sales VALUES (9, DATE'2024-03-01', 'east', 1, 5, 5, 5.00, 5.0)"
BY_WEIGHT = "SELECT cust, day, COUNT(*) AS n FROM sales GROUP BY cust, day"


@pytest.fixture
def lab(spark, tmp_path, metastore_url):
    yield from make_lab(spark, tmp_path, metastore_url)


def run(*words: str, code: int = 0):
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == code, done.stderr + done.stdout
    return json.loads(done.stdout) if "json" in words else done.stdout


def lose(url: str) -> None:
    """Everything that the metastore holds is gone."""
    found = parsed(url)
    if found.get_backend_name() == "sqlite":
        for path in Path(found.database).parent.glob(Path(found.database).name + "*"):
            path.unlink()
        return
    engine = create_engine(found)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()


def rebuilt(lab, *more: str, code: int = 0):
    """Lose the metastore and make it again, the session closed meanwhile."""
    cachemgr.disable(lab.spark)
    lose(lab.url)
    command = ("db", "rebuild", "--metastore", lab.url, "--location", str(lab.folder / "caches"))
    told = run(*command, "--take-over", "-o", "json", *more, code=code)
    cachemgr.enable(lab.spark)
    return {line["name"].rpartition(".")[2]: line for line in told}


def stale_commit(lab, name: str) -> None:
    """A refresh that commits and never publishes."""
    with open_metastore(lab.url) as store:
        (cache,) = store.caches.matching(name)
        with pytest.raises(Crash):
            run_refresh(
                lab.spark,
                store,
                cache.id,
                now=lambda: None,
                holder="stale",
                lease_seconds=1,
                checkpoint=crash_at("written"),
            )


@on_both
def test_every_cache_serves_again(lab):
    lab.sql(JOIN)
    lab.cache(f"totals COMMENT 'of regions' STRICT AS {TOTALS}")
    lab.cache(f"days MAX STALENESS INTERVAL 1 HOUR AS {BY_DAY}")
    lab.cache(f"cities AS {WITH_CITY}")
    lab.cache(f"gone AS {BY_ID}")
    lab.cache(f"never STRICT AS {BY_WEIGHT}", refresh=False)
    lab.plain.sql(MORE_SALES)
    for name in ("totals", "days", "cities"):
        lab.sql(f"REFRESH RELATIONAL CACHE {name}")
    lab.sql("ALTER RELATIONAL CACHE totals SET REFRESH EVERY 1 HOUR AUTO")
    lab.sql("GRANT USE ON RELATIONAL CACHE totals TO ann")
    lab.sql(f"GRANT USE ON RELATIONAL CACHE totals TO {lab.me}")
    lab.sql("ALTER RELATIONAL CACHE days RENAME TO by_day")
    lab.sql("DROP RELATIONAL CACHE gone")
    before = {c: _facts(lab, c) for c in ("totals", "by_day", "cities", "never")}
    with open_metastore(lab.url) as store:
        numbers = store.registry.revision(), _leases(store)

    told = rebuilt(lab)

    assert {n: line["state"] for n, line in told.items()} == {
        "totals": "PUBLISHED", "by_day": "PUBLISHED", "cities": "PUBLISHED",
        "never": "NOT_PUBLISHED", "gone": "DROPPED",
    }  # fmt: skip
    assert {c: _facts(lab, c) for c in before} == before
    for query in (TOTALS, BY_DAY, BY_CUST):
        lab.hit(query)
    lab.miss(BY_ID)
    lab.miss(BY_WEIGHT)
    with open_metastore(lab.url) as store:
        # numbers of the lost metastore are never given out again
        assert store.registry.revision() > numbers[0]
        assert all(t > numbers[1][c] for c, t in _leases(store).items())
        assert [j.state.value for j in store.joins.all()] == ["VALID"]
    lab.plain.sql("INSERT INTO sales VALUES (10, DATE'2024-03-02', 'east', 1, 6, 6, 6.00, 6.0)")
    with lab.caches_alone():
        lab.miss(TOTALS)
    for name in ("totals", "by_day", "cities", "never"):
        assert lab.sql(f"REFRESH RELATIONAL CACHE {name}")[0]["result"] == "PUBLISHED"
    for query in (TOTALS, BY_DAY, BY_CUST, BY_WEIGHT):
        lab.hit(query)
    run("db", "check", "--metastore", lab.url, "--location", str(lab.folder / "caches"))


@on_both
def test_texts_are_answered_again_at_once(lab):
    """No Spark, and no refresh, has to tell what the tables' names and columns are."""
    lab.sql(JOIN)
    lab.cache(f"totals STRICT AS {TOTALS}")
    lab.cache(f"cities AS {WITH_CITY}")
    lab.plain.sql(MORE_SALES)
    lab.sql("REFRESH RELATIONAL CACHE totals")
    with open_metastore(lab.url) as store:
        before = {t.location: (t.name, t.table_id, t.columns) for t in store.tables.noted()}

    rebuilt(lab)

    with open_metastore(lab.url) as store:
        after = {t.location: (t.name, t.table_id, t.columns) for t in store.tables.noted()}
    assert after == before and len(before) == 2
    door = Door(lab)
    try:
        assert door.hit(TOTALS).caches
        assert "STALE" in door.codes(WITH_CITY)
        lab.sql("REFRESH RELATIONAL CACHE cities")
        assert door.hit(BY_CUST).caches
    finally:
        door.feed.close()


@on_both
def test_what_was_never_published_stays_so(lab):
    lab.cache(f"totals STRICT AS {TOTALS}")
    lab.cache(f"days STRICT AS {BY_DAY}", refresh=False)
    version = _facts(lab, "totals")["version"]
    lab.plain.sql(MORE_SALES)
    stale_commit(lab, "totals")
    stale_commit(lab, "days")

    told = rebuilt(lab)

    assert (told["totals"]["state"], told["totals"]["version"]) == ("PUBLISHED", version)
    assert "never published" in told["totals"]["note"]
    assert (told["days"]["state"], told["days"]["version"]) == ("NOT_PUBLISHED", None)
    assert "never published" in told["days"]["note"]
    with lab.caches_alone():
        lab.miss(TOTALS)
        lab.miss(BY_DAY)
    for name, query in (("totals", TOTALS), ("days", BY_DAY)):
        lab.sql(f"REFRESH RELATIONAL CACHE {name}")
        lab.hit(query)


@on_both
def test_a_log_that_is_not_the_records_is_not_served(lab):
    lab.cache(f"totals STRICT AS {TOTALS}")
    lab.cache(f"days STRICT AS {BY_DAY}")
    with open_metastore(lab.url) as store:
        places = {c.name: Path(c.location) for c in store.caches.all()}
    # the table of another cache in its place, and a table that is gone
    shutil.rmtree(places["totals"])
    shutil.copytree(places["days"], places["totals"])
    shutil.rmtree(places["days"])

    told = rebuilt(lab, code=1)

    assert {line["state"] for line in told.values()} == {"NOT_PUBLISHED"}
    assert "not written for it" in told["totals"]["note"]
    assert "has no version" in told["days"]["note"]
    lab.miss(TOTALS)
    lab.miss(BY_DAY)


@on_both
def test_check_tells_what_records_and_logs_say_otherwise(lab):
    lab.cache(f"totals STRICT AS {TOTALS}")
    place = ("--metastore", lab.url, "--location", str(lab.folder / "caches"))
    run("db", "check", *place)
    lab.plain.sql(MORE_SALES)
    stale_commit(lab, "totals")
    done = CliRunner().invoke(main, ["db", "check", *place])
    assert done.exit_code == 1 and "never published" in done.stdout + done.stderr
    with open_metastore(lab.url) as store:  # no journal is kept here
        (cache,) = store.caches.all()
        store.caches.update(cache.id, cache.version, now=store.clock.now(), paused=True)
    done = CliRunner().invoke(main, ["db", "check", *place])
    assert done.exit_code == 1 and "BEHIND" in done.stdout


@on_both
def test_a_metastore_with_caches_is_left_alone(lab):
    lab.cache(f"totals STRICT AS {TOTALS}")
    command = ["db", "rebuild", "--metastore", lab.url, "--location", str(lab.folder / "caches")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1 and "METASTORE_NOT_EMPTY" in done.stderr
    lab.hit(TOTALS)


def _facts(lab, name: str) -> dict[str, object]:
    with open_metastore(lab.url) as store:
        (cache,) = store.caches.matching(name)
        published = store.snapshots.published(cache.id)
        runs = [(r.id, r.state, r.cache_version, r.rows) for r in store.refreshes.of(cache.id)]
        return {
            "ddl": lab.sql(f"SHOW CREATE RELATIONAL CACHE {name}")[0][0],
            "id": cache.id,
            "settings": cache.settings,
            "grants": store.grants.of(cache.id),
            "narrowed": cache.narrowed,
            "version": published and published.run.cache_version,
            "tables": published and published.tables,
            "plan": published and published.run.plan,
            "facts": published and published.run.facts,
            "sets": store.caches.grouping_sets(cache.id),
            "runs": runs,
        }


def _leases(store) -> dict[str, int]:
    return {c.id: store.refreshes.lease(c.id).token for c in store.caches.all()}
