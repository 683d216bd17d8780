# ruff: noqa: E501, RUF043 - tables of SQL read better unbroken
"""Each bad input: a clear error that names the object and the place, and nothing lost."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from pyspark.errors import AnalysisException, ParseException

import cachemgr
from cachemgr.errors import (
    CacheManagerError,
    ConfigurationError,
    DefinitionError,
    JoinValidationError,
    MetastoreError,
    RefreshError,
    StatementError,
)
from cachemgr.spark.definitions import analysis
from cachemgr.spark.spark_errors import code_and_line
from tests.worlds.lab_star import JOIN, make_lab

pytestmark = pytest.mark.spark

GOOD = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"


def test_unknown_clause_or_keyword_with_line_and_column(lab):
    with pytest.raises(StatementError) as caught:
        lab.sql(f"CREATE RELATIONAL CACHE c\n  REFRESHH EVERY 1 HOUR AS {GOOD}")
    assert (caught.value.line, caught.value.col) == (2, 3)
    assert "REFRESH" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("REFRESH RELATIONAL CASHE c", "REFRESH RELATIONAL CACHE"),
        ("CREATE RELATIONL CACHE c AS SELECT 1", "CREATE RELATIONAL CACHE"),
        ("EXPLAIN REWRIT SELECT 1", "EXPLAIN REWRITE"),
        ("SHOW CACHES", "SHOW RELATIONAL CACHES"),
        ("DROP CACHE c", "DROP RELATIONAL CACHE"),
        ("SHOW JOINS", "SHOW RECORD PRESERVING JOINS"),
        ("CREATE TABEL t (a INT)", None),
    ],
)
def test_a_misspelt_statement_is_noted_beside_what_spark_says(lab, text, meant):
    with pytest.raises(ParseException) as caught:
        lab.sql(text)
    notes = getattr(caught.value, "__notes__", [])
    assert notes == ([f"did you mean {meant}?"] if meant else [])
    if meant:
        assert code_and_line(caught.value)[1].endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize("asked", ["MODE(region)", "MODE() WITHIN GROUP (ORDER BY region)"])
def test_an_aggregate_that_cannot_be_stored_is_named(lab, asked):
    with pytest.raises(DefinitionError, match="aggregate mode cannot be stored$"):
        lab.cache(f"c AS SELECT cust, {asked} AS m FROM sales GROUP BY cust")


def test_a_cache_that_is_queried_like_a_table_is_noted(lab):
    lab.cache("by_region AS SELECT region, COUNT(*) AS n FROM sales GROUP BY region")
    with pytest.raises(AnalysisException) as caught:
        lab.sql("SELECT * FROM By_Region")
    (note,) = caught.value.__notes__
    assert f"{lab.schema}.by_region is a relational cache, and queries do not name caches" in note
    (shown,) = re.findall(r"\((DESCRIBE .*) shows its definition\)", note)
    assert "definition" in {row[0] for row in lab.sql(shown)}
    with pytest.raises(AnalysisException) as caught:
        lab.sql("SELECT * FROM by_regions")
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(AnalysisException) as caught:
        lab.sql("DESCRIBE CACHE by_region")
    assert caught.value.__notes__ == ["did you mean DESCRIBE RELATIONAL CACHE?"]


REFUSED = {
    "a missing table": ("SELECT x FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND", r"line 1, column 46"),
    "a missing column": (
        "SELECT region,\n  SUM(nothing) AS s FROM sales GROUP BY region",
        "UNRESOLVED_COLUMN",
        r"line 2, column 7",
    ),
    "rand": ("SELECT region, COUNT(*) AS n FROM sales WHERE rand() > 0 GROUP BY 1", "NON_DETERMINISTIC", "rand"),
    "interval": ("SELECT region, INTERVAL '1' DAY AS i FROM sales", "EXPRESSION_NOT_SUPPORTED", "literal of type interval day"),
    "join by floats": ("SELECT a.region, COUNT(*) AS n FROM sales a JOIN sales b ON a.weight = b.weight GROUP BY 1", "EXPRESSION_NOT_SUPPORTED", "joins by FLOAT or DOUBLE columns"),
    "uuid": ("SELECT region, uuid() AS u FROM sales", "NON_DETERMINISTIC", "uuid"),
    "current_date": (
        "SELECT region, SUM(amt) AS s FROM sales WHERE day < current_date() GROUP BY region",
        "SESSION_DEPENDENT",
        r"current_date\(\).*line 1, column \d+",
    ),
    "current_user": (
        "SELECT region, COUNT(*) AS n FROM sales WHERE region = current_user() GROUP BY region",
        "SESSION_DEPENDENT",
        "current_user",
    ),
    "an unregistered function": (
        "SELECT region, SUM(my_udf(amt)) AS s FROM sales GROUP BY region",
        "UNRESOLVED_ROUTINE",
        "my_udf",
    ),
    "a reserved name": (
        "SELECT region, SUM(amt) AS __s FROM sales GROUP BY region", "RESERVED_COLUMN", "__s",
    ),
    "a window": (
        "SELECT region, SUM(amt) OVER (PARTITION BY region) AS s FROM sales",
        None,
        "a window function: .* cache the rows or groups below it",
    ),
    "a union": (f"{GOOD} UNION ALL {GOOD}", None, "UNION: .* make a cache of each of its SELECTs"),
    "a full join of a left join": (
        "SELECT b.city, COUNT(*) AS n FROM (sales LEFT JOIN cust a ON cust = a.cid) "
        "FULL JOIN cust b ON cust = b.cid GROUP BY b.city",
        None,
        "FULL OUTER|FULL JOIN",
    ),
    "a limit": (f"{GOOD} LIMIT 3", None, "LIMIT"),
    "a sample": (
        "SELECT region, SUM(amt) AS s FROM sales TABLESAMPLE (50 PERCENT) GROUP BY region",
        "TABLESAMPLE",
        "other rows each time",
    ),
    "a fixed version": (
        "SELECT region, SUM(amt) AS s FROM sales VERSION AS OF 1 GROUP BY region",
        "TIME_TRAVEL",
        "follows its base tables",
    ),
    "rows of its own": ("SELECT id, COUNT(*) AS n FROM range(3) GROUP BY id", "RELATION", "Range"),
    "a type that Delta has not": (
        "SELECT id, CAST(amt AS INTERVAL DAY) AS x FROM sales", "EXPRESSION_NOT_SUPPORTED",
        "x is of type interval day",
    ),
    "a type that Delta has not, inside of a key": (
        "SELECT array(CAST(region AS STRING COLLATE UNICODE_CI)) AS r, COUNT(*) AS n FROM sales "
        "GROUP BY array(CAST(region AS STRING COLLATE UNICODE_CI))",
        "EXPRESSION_NOT_SUPPORTED",
        "",
    ),
    "a type that Delta has not, of a key that is not shown": (
        "SELECT COUNT(*) AS n FROM sales GROUP BY CAST(region AS STRING COLLATE UNICODE_CI)",
        "EXPRESSION_NOT_SUPPORTED",
        "GROUP BY key. is of type string collate UNICODE_CI",
    ),
    "a collation": (
        "SELECT CAST(region AS STRING COLLATE UNICODE_CI) AS r, COUNT(*) AS n FROM sales "
        "GROUP BY CAST(region AS STRING COLLATE UNICODE_CI)",
        "EXPRESSION_NOT_SUPPORTED",
        "r is of type string collate UNICODE_CI",
    ),
    "nothing": ("SELECT", None, r"SELECT: \S+.* \(line 1, column"),
    "a metadata column": (
        "SELECT _metadata.file_name AS f, COUNT(*) AS n FROM sales GROUP BY 1", "METADATA_COLUMN",
        "files",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shared(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    yield from make_lab(spark, folder, f"sqlite:///{folder / 'm.db'}")


@pytest.mark.parametrize("case", REFUSED)
def test_a_definition_that_cannot_be_cached(shared, case):
    select, code, told = REFUSED[case]
    with pytest.raises(DefinitionError, match=f"(?s){told}") as caught:
        shared.sql(f"CREATE RELATIONAL CACHE bad AS {select}")
    assert code is None or caught.value.code == code
    assert shared.sql("SHOW RELATIONAL CACHES") == []


def test_a_table_of_another_catalog(shared):
    """One that Spark reads by JDBC."""
    shared.spark._jvm.java.lang.System.setProperty("derby.stream.error.file", "/dev/null")
    for key, value in {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": "jdbc:derby:memory:bad;create=true",
        ".driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }.items():
        shared.spark.conf.set(f"spark.sql.catalog.derby{key}", value)
    shared.spark.sql("CREATE TABLE derby.APP.T (A INT)")
    with pytest.raises(DefinitionError, match="another catalog .* is not a Delta table") as caught:
        shared.sql(
            "CREATE RELATIONAL CACHE bad AS SELECT A, COUNT(*) AS n FROM derby.APP.T GROUP BY A"
        )
    assert caught.value.code == "NOT_A_DELTA_TABLE"
    assert shared.sql("SHOW RELATIONAL CACHES") == []


@pytest.mark.parametrize(
    ("type_", "refused"),
    [
        ("time(6)", True),
        ("array<time(3)>", True),
        ("interval", True),
        ("map<string,interval day to second>", True),
        ("struct<a:string collate UTF8_LCASE>", True),
        ("struct<interval:int,time:int>", False),
        ("timestamp", False),
        ("struct<overtime:decimal(2)>", False),
    ],
)
def test_the_types_that_delta_has_not(type_, refused):
    if refused:
        with pytest.raises(DefinitionError, match="Delta tables cannot have"):
            analysis._check_types("c", {"x": type_})
    else:
        analysis._check_types("c", {"x": type_})


def test_a_variable_of_the_session_is_refused(shared):
    """A refresh, in a session of its own, would not know it."""
    shared.sql("DECLARE OR REPLACE VARIABLE least INT DEFAULT 3")
    select = "SELECT region, SUM(amt) AS s FROM sales WHERE amt > least GROUP BY region"
    with pytest.raises(DefinitionError, match="the variable least depends on") as caught:
        shared.sql(f"CREATE RELATIONAL CACHE bad AS {select}")
    assert caught.value.code == "SESSION_DEPENDENT"
    assert shared.sql("SHOW RELATIONAL CACHES") == []


@pytest.mark.parametrize("depth", [200, 300, 400, 600, 2000])
def test_parentheses_without_end(shared, depth):
    """Spark's stack ends in its parser or later; what fits in it is taken."""
    where = f"{'(' * depth}amt > 1{')' * depth}"
    text = f"deep AS SELECT region, COUNT(*) AS n FROM sales WHERE {where} GROUP BY region"
    try:
        shared.cache(text, refresh=False)
    except DefinitionError as error:
        assert error.code in ("FAILED_TO_PARSE_TOO_COMPLEX", "NESTED_TOO_DEEPLY")
    else:
        assert depth < 2000
        shared.sql("DROP RELATIONAL CACHE deep")


def test_a_temporary_view(shared):
    shared.spark.sql("CREATE OR REPLACE TEMP VIEW tv AS SELECT * FROM sales")
    with pytest.raises(DefinitionError, match="tv is a temporary view"):
        shared.sql("CREATE RELATIONAL CACHE bad AS SELECT region, SUM(amt) AS s FROM tv GROUP BY 1")


def test_a_registered_python_function(shared):
    shared.spark.udf.register("twice", lambda v: v, "bigint")
    with pytest.raises(DefinitionError, match="twice is a user-defined function"):
        shared.sql("CREATE RELATIONAL CACHE bad AS SELECT twice(amt) AS t, id FROM sales")


@pytest.mark.parametrize(
    ("clause", "select", "told"),
    [
        ("PARTITIONED BY (nope)", GOOD, "PARTITIONED BY names nope"),
        ("PARTITIONED BY (region, s)", GOOD, "names all of its columns"),
        ("CLUSTER BY (nope)", GOOD, "CLUSTER BY names nope"),
        (
            "CLUSTER BY (region)",
            "SELECT region, day, SUM(amt) AS s FROM sales GROUP BY region, day WITH CUBE",
            "leave CLUSTER BY out",
        ),
    ],
)
def test_clauses_that_do_not_fit_the_select(shared, clause, select, told):
    with pytest.raises(CacheManagerError, match=told):
        shared.sql(f"CREATE RELATIONAL CACHE bad {clause} AS {select}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("AS sales INNER JOIN nowhere ON cust = cid", "nowhere cannot be read"),
        ("AS sales INNER JOIN cust ON cust = nope", "has no column"),
        ("AS sales INNER JOIN cust ON region = cid", "JOIN_KEY_TYPES.*region is string and .*int"),
        ("AS sales INNER JOIN cust ON weight = cid", "JOIN_KEY_TYPES.*columns of one type"),
    ],
)
def test_a_join_over_what_is_not_there(shared, text, told):
    with pytest.raises(DefinitionError, match=told):
        shared.sql(f"CREATE RECORD PRESERVING JOIN b {text} PRESERVES sales")
    assert shared.sql("SHOW RECORD PRESERVING JOINS") == []


def test_a_join_over_a_view(shared):
    shared.plain.sql("CREATE VIEW rome AS SELECT * FROM cust WHERE city = 'Rome'")
    with pytest.raises(DefinitionError, match="rome is a view"):
        shared.sql(
            "CREATE RECORD PRESERVING JOIN b AS sales INNER JOIN rome ON cust = cid PRESERVES sales"
        )


def test_a_join_that_the_data_contradicts(lab):
    lab.plain.sql("INSERT INTO sales SELECT 60, NULL, 'n', 42, 1, 1, 1, 1")
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Twin', 'Italy')")
    with pytest.raises(JoinValidationError) as caught:
        lab.sql(JOIN)
    told = str(caught.value)
    assert "1 row of" in told and "cust = 42" in told and "cid = 1" in told and "multiplied" in told
    assert "run the statement again" in told and "VALIDATE" not in told
    assert "PRESERVES" not in told.partition("nothing was created")[2]
    assert lab.sql("SHOW RECORD PRESERVING JOINS") == []


def test_a_join_that_preserves_the_other_side(lab):
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    with pytest.raises(JoinValidationError) as caught:
        lab.sql(JOIN.replace("PRESERVES sales", "PRESERVES cust"))
    assert re.search(
        r"; or write PRESERVES \S*sales, each of whose rows has one", str(caught.value)
    )
    lab.sql(JOIN)


def test_a_refresh_whose_base_table_was_dropped_or_lost_a_column(lab):
    lab.cache(f"c AS {GOOD}")
    lab.plain.sql("ALTER TABLE sales SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lab.plain.sql("ALTER TABLE sales DROP COLUMN amt")
    with pytest.raises(RefreshError, match="amt"):
        lab.sql("REFRESH RELATIONAL CACHE c")
    lab.plain.sql("DROP TABLE sales")
    with pytest.raises(RefreshError, match="sales"):
        lab.sql("REFRESH RELATIONAL CACHE c")
    kept = lab.sql("DESCRIBE RELATIONAL CACHE c")
    read = next(r.data_type for r in kept if r.col_name == "read it with")
    assert lab.plain.sql(read).count() == 4


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://host/db", "cannot be kept in mysql"),
        ("not a url", "is not a metastore URL"),
        ("sqlite:////no/such/folder/m.db", "does not exist"),
        ("postgresql://127.0.0.1:1/none", "127.0.0.1"),
    ],
)
def test_a_metastore_url_that_cannot_be_opened(spark, url, told):
    session = spark.newSession()
    session.conf.set("spark.cachemgr.metastore.url", url)
    with pytest.raises(MetastoreError, match=told):
        cachemgr.enable(session)
    assert not cachemgr.is_enabled(session)
    assert session.sql("SELECT 1").collect()[0][0] == 1


def test_a_metastore_file_that_is_not_one(spark, tmp_path):
    file = tmp_path / "letter.txt"
    file.write_text("Dear Sir or Madam, this is no database at all.")
    session = spark.newSession()
    session.conf.set("spark.cachemgr.metastore.url", f"sqlite:///{file}")
    with pytest.raises(MetastoreError, match="not a SQLite database"):
        cachemgr.enable(session)
    assert file.read_text().startswith("Dear Sir")


def test_a_second_process_that_writes_at_the_same_time(lab):
    other = sqlite3.connect(lab.url.removeprefix("sqlite:///"), isolation_level=None, timeout=5)
    other.execute("BEGIN IMMEDIATE")
    done = []

    def create():
        lab.sql(f"CREATE RELATIONAL CACHE c AS {GOOD}")
        done.append(time.monotonic())

    worker = threading.Thread(target=create)
    worker.start()
    time.sleep(2)
    assert done == []
    other.execute("COMMIT")
    worker.join(timeout=30)
    assert done and [r.name for r in lab.sql("SHOW RELATIONAL CACHES")] == ["c"]
    other.close()


def test_settings_that_are_not_accepted(spark, tmp_path):
    session = spark.newSession()
    session.conf.set("spark.cachemgr.metastore.url", f"sqlite:///{tmp_path / 'm.db'}")
    session.conf.set("spark.cachemgr.mode", "sometimes")
    with pytest.raises(ConfigurationError, match="spark.cachemgr.mode is 'sometimes'"):
        cachemgr.enable(session)


@pytest.mark.parametrize(
    ("key", "value", "said", "counted"),
    [
        ("enabled", "flase", "spark.cachemgr.enabled is 'flase'", (0, 2, 2)),
        ("freshHits", "flase", "spark.cachemgr.freshHits is 'flase'", (0, 2, 2)),
        ("local.maxConcurrent", "abc", "local.maxConcurrent is 'abc'", (0, 2, 2)),
        ("enabeld", "false", "did you mean spark.cachemgr.enabled?", (2, 0, 0)),
    ],
)
def test_a_setting_that_a_conf_was_given_is_warned_of_with_the_next_query(
    lab, caplog, key, value, said, counted
):
    lab.cache(f"c AS {GOOD}")
    lab.spark.conf.set("spark.cachemgr.mode", "rewrite")
    before = cachemgr.counters(lab.spark)
    lab.spark.conf.set(f"spark.cachemgr.{key}", value)
    rows = [sorted(lab.spark.sql(GOOD).collect(), key=str) for _ in range(2)]
    lab.spark.conf.unset(f"spark.cachemgr.{key}")
    now = cachemgr.counters(lab.spark)
    assert tuple(now[n] - before[n] for n in ("hits", "misses", "errors")) == counted
    assert rows[0] == rows[1] == sorted(lab.plain.sql(GOOD).collect(), key=str)
    assert sum(said in record.getMessage() for record in caplog.records) == 1


def test_a_session_without_us_is_left_alone(lab):
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR|Syntax error"):
        lab.plain.sql("SHOW RELATIONAL CACHES")
    with pytest.raises(ConfigurationError, match=r"cachemgr.enable\(spark\)"):
        cachemgr.explain(lab.plain, GOOD)


def test_a_spark_that_was_started_without_delta_is_refused_in_one_message():
    """As by `pyspark` and `spark-submit`, whose JVM runs before any script's first line."""
    program = (
        "import cachemgr\nfrom pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        ".getOrCreate()\n"
        "try:\n    cachemgr.enable(spark)\n"
        "except cachemgr.errors.ConfigurationError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=True
    )
    assert "[DELTA_MISSING]" in done.stdout and "--packages io.delta:delta-spark_" in done.stdout


def test_spark_connect_is_refused_with_the_way_out():
    from cachemgr.spark.configure import configure_builder

    class Remote:
        _options = {"spark.remote": "sc://127.0.0.1"}  # noqa: RUF012

    with pytest.raises(ConfigurationError, match="Spark Connect"):
        configure_builder(Remote(), None, lambda session: None)

    class Connected:
        def sql(self, text: str) -> None: ...

    with pytest.raises(ConfigurationError, match="Spark Connect"):
        cachemgr.enable(Connected())
    assert issubclass(ConfigurationError, CacheManagerError)


@pytest.mark.parametrize("given", ["spark", None, 3])
def test_what_is_no_session_is_named(given):
    with pytest.raises(
        ConfigurationError, match=f"a SparkSession is needed, and this is {given!r}"
    ):
        cachemgr.enable(given)
