# ruff: noqa: E501 - statements read better unbroken
"""The wheel with all extras in an environment with each Spark: README's first example, a service
and a worker on PostgreSQL, the jar by Maven, and what earlier releases left."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cachemgr.sparks import DELTA
from tests.installation import PROJECT
from tests.installed.environments import SPARKS, Installed
from tests.processes import SMALL_JVM, Replica, replicas, until
from tests.readme import DEFAULTS, defaults, follow
from tests.worlds import upgraded

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]
# What is brought up with which Spark.
LEFT_BY = dict(zip(SPARKS, ("72b7acd", "966cf99", "9e095e5"), strict=True))
SMALL = {**DEFAULTS, "spark.sql.shuffle.partitions": "1"}


@pytest.fixture(scope="module", params=SPARKS)
def minor(request: pytest.FixtureRequest) -> str:
    """Of the Spark that is installed."""
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def installed(minor: str, environment: Callable[..., Installed]) -> Installed:
    return environment("all", spark=SPARKS[minor])


def test_it_is_what_the_bill_of_materials_says(installed: Installed, release: Path) -> None:
    code = (
        "import json; from importlib.metadata import distributions as all; "
        "print(json.dumps({d.name: d.version for d in all()}))"
    )
    found = json.loads(installed.run("python", "-c", code, folder=installed.folder))
    bill = json.loads((release / f"relational-cache-{PROJECT['version']}.cdx.json").read_text())
    told = {c["name"]: c["version"] for c in bill["components"] if ":pypi/" in c["purl"]}
    told |= {"relational-cache": PROJECT["version"], "pyspark": installed.spark}
    assert found == told


def test_readme(installed: Installed, minor: str, tmp_path: Path) -> None:
    """Word for word; Delta's jars are looked for anew, and are those of this Spark."""
    jars = tmp_path / "cache"
    more = {"XDG_CACHE_HOME": str(jars)}
    wrote = follow(installed.programs, tmp_path, installed.environment(more))
    assert "hit sales_by_day; 5 rows" in wrote, wrote
    assert "Traceback" not in wrote
    assert f"spark_{minor}_2.13" in "".join(f.read_text() for f in jars.rglob("*.jars"))


_MAKES = """
from pyspark.sql import SparkSession
import cachemgr

spark = cachemgr.configure_spark_with_cachemgr(SparkSession.builder).getOrCreate()
cachemgr.enable(spark)
spark.sql("CREATE TABLE sales USING delta LOCATION '{sales}' AS SELECT id, id % 5 AS shop FROM range(1000)")
spark.sql("CREATE RELATIONAL CACHE by_shop AS SELECT shop, SUM(id) AS s, COUNT(*) AS n FROM sales GROUP BY shop")
"""
_ASKS = """
from pyspark.sql import SparkSession
import cachemgr

spark = cachemgr.configure_spark_with_cachemgr(SparkSession.builder).getOrCreate()
cachemgr.enable(spark)
print(spark.sql("SELECT SUM(id) AS s FROM delta.`{sales}`").collect())
print(cachemgr.counters(spark))
"""


@pytest.mark.postgres
def test_a_service_and_a_worker_on_postgresql(
    installed: Installed, minor: str, postgres: str, tmp_path: Path
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    env = {
        "CACHEMGR_METASTORE_URL": postgres,
        "CACHEMGR_LOCATION": str(tmp_path / "caches"),
        "CACHEMGR_SPARK_CONF": json.dumps(SMALL),
    }
    in_session = defaults(
        conf,
        **{
            "spark.cachemgr.metastore.url": postgres,
            "spark.cachemgr.location": env["CACHEMGR_LOCATION"],
        },
    )
    sales = tmp_path / "sales"
    installed.run("cachemgr", "db", "upgrade", folder=tmp_path, more=env)
    told = installed.run("cachemgr", "token", "create", "ann", "--role", "admin", folder=tmp_path,
                         more=env)  # fmt: skip
    token = told.split()[0]
    installed.run("python", "-c", _MAKES.format(sales=sales), folder=tmp_path, more=in_session)
    program = (str(installed.programs / "cachemgr"),)
    around = installed.environment()
    service, worker = (
        Replica(words[0], tmp_path, env, token, words, program, around)
        for words in (("serve", "--no-scheduler"), ("worker",))
    )
    with replicas(service, worker):
        until(service.ready, 120, "the service is ready")
        at = {"CACHEMGR_SERVER": service.address, "CACHEMGR_TOKEN": token}
        installed.run("cachemgr", "cache", "refresh", "by_shop", "--wait", folder=tmp_path, more=at)
        listed = installed.run("cachemgr", "cache", "show", "by_shop", "-o", "json",
                               folder=tmp_path, more=at)  # fmt: skip
        assert json.loads(listed)["published"]["sparks"] == [minor]
        asked = installed.run("python", "-c", _ASKS.format(sales=sales), folder=tmp_path,
                              more=in_session)  # fmt: skip
        assert "Row(s=499500)" in asked and "'hits': 1" in asked, asked
        assert service.started.stop() == 0 and worker.started.stop() == 0


def test_the_jar_by_its_coordinates(
    installed: Installed, minor: str, release: Path, tmp_path: Path
) -> None:
    """spark-sql fetches it, and Delta's, from the repository that `make dist` writes."""
    delta = f"io.delta:delta-spark_{minor}_2.13:{DELTA}"
    ours = f"relationalcache:relational-cache-spark_{minor}_2.13:{PROJECT['version']}"
    conf = {
        **SMALL,
        "spark.jars.packages": f"{ours},{delta}",
        "spark.jars.repositories": (release / "maven").as_uri(),
        "spark.jars.ivy": str(tmp_path / "ivy"),
        # a home without what Maven keeps, where Ivy would take descriptions without their jars
        "spark.driver.extraJavaOptions": f"{SMALL_JVM} -Duser.home={tmp_path}",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,relationalcache.Extension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.cachemgr.sidecar.timeout": "10s",
        "spark.cachemgr.sidecar.python": str(installed.programs / "python"),
    }
    pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    query = "SELECT k, COUNT(*) FROM t GROUP BY k"
    texts = (
        "CREATE TABLE t USING delta AS SELECT id, id % 3 AS k FROM range(3000)",
        "CREATE RELATIONAL CACHE c AS SELECT k, COUNT(*) AS n FROM t GROUP BY k",
        "REFRESH RELATIONAL CACHE c", f"EXPLAIN {query}", f"{query} ORDER BY k",
    )  # fmt: skip
    (tmp_path / "script.sql").write_text("".join(f"{text};\n" for text in texts))
    wrote = installed.run("spark-sql", *pairs, "-f", "script.sql", folder=tmp_path)
    assert "relational_cache.c@v" in wrote and "0\t1000\n1\t1000\n2\t1000\n" in wrote


def test_what_an_earlier_release_left_answers(
    installed: Installed, minor: str, tmp_path: Path
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    url = upgraded.make(LEFT_BY[minor], tmp_path, getpass.getuser())
    on_it = ("--metastore", url)
    wrote = installed.run("cachemgr", "db", "current", *on_it, folder=tmp_path)
    assert "this program needs" in wrote
    installed.run("cachemgr", "db", "upgrade", *on_it, folder=tmp_path)
    tables = str(tmp_path / "tables" / "sales")
    query = f"SELECT shop, SUM(amount) AS s FROM delta.`{tables}` GROUP BY shop"
    asked = installed.run("cachemgr", "sql", "-e", query, *on_it, folder=tmp_path,
                          more=defaults(conf))  # fmt: skip
    assert "hit world.by_shop; 2 rows" in asked, asked
