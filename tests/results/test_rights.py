"""What a statement may read: texts of a viewer who was granted SELECT on some tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cachemgr.errors import CacheManagerError, ErrorCode

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

PROBE = "cachemgr.tests.rights"
# No file system has it: whatever opens it fails with another error than ours.
TRAP = "trap:/nowhere"


@dataclass(frozen=True)
class World:
    """The session of the statements, what is granted, and the folder of all tables."""

    spark: Any
    places: frozenset[str]
    folder: Path

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, in order."""
        from cachemgr.spark.results.rights import allowed_query

        found = allowed_query(self.spark, self.filled(text), self.places, "ann").rows.collect()
        return sorted((tuple(row) for row in found), key=repr)

    def refusal(self, text: str) -> CacheManagerError:
        """What a statement is refused with."""
        from cachemgr.spark.results.rights import allowed_query

        with pytest.raises(CacheManagerError) as refused:
            allowed_query(self.spark, self.filled(text), self.places, "ann")
        return refused.value

    def filled(self, text: str) -> str:
        """A text with the folder in place of its word."""
        return text.replace("FOLDER", str(self.folder))

    def state(self) -> tuple[object, ...]:
        """All that a statement could have changed."""
        sql, jvm = self.spark.sql, self.spark._jvm
        return (
            self.spark.catalog.currentDatabase(),
            sorted(map(str, sql("SHOW TABLES").collect())),
            sorted(map(str, sql("SHOW USER FUNCTIONS").collect())),
            sorted(map(str, sql("SET").collect())),
            sorted(map(str, self.folder.rglob("*.json"))),
            str(jvm.org.apache.spark.sql.SparkSession.active().sparkContext().listJars()),
            jvm.java.lang.System.getProperty(PROBE),
        )


@pytest.fixture(scope="module")
def world(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A schema of tables and views; `seen`, `also`, `feed` and `odd_name` are granted."""
    from cachemgr.delta.tables import normalise_location

    folder = tmp_path_factory.mktemp("rights")
    session = spark.newSession()

    def sql(text: str) -> None:
        session.sql(text.replace("FOLDER", str(folder)))

    sql("CREATE SCHEMA rights")
    sql("USE rights")
    feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    for name in ("seen", "also", "odd.name 100%", "feed", "hidden"):
        columns = f"a INT, {'secret_column' if name == 'hidden' else 'b'} STRING, c ARRAY<INT>"
        sql(
            f"CREATE TABLE {name[:3] + '_name' if '.' in name else name} ({columns}) USING delta "
            f"LOCATION 'FOLDER/{name}' {feed if name in ('feed', 'hidden') else ''}"
        )
        sql(f"INSERT INTO delta.`FOLDER/{name}` VALUES (1, 'x', array(1, 2)), (2, 'y', array(3))")
    sql("CREATE TABLE plain (a INT) USING parquet LOCATION 'FOLDER/plain'")
    sql("INSERT INTO plain VALUES (1)")
    sql("CREATE TABLE unseen_plain (a INT) USING parquet LOCATION 'FOLDER/unseen_plain'")
    (folder / "lines.csv").write_text("secret_column\n1\n")
    sql("CREATE VIEW v_seen AS SELECT a, b FROM seen")
    sql("CREATE VIEW v_v_seen AS SELECT a FROM v_seen WHERE a IN (SELECT a FROM also)")
    sql("CREATE VIEW v_hidden AS SELECT a, secret_column FROM hidden")
    sql("CREATE VIEW v_mixed AS SELECT a FROM seen WHERE EXISTS (SELECT 1 FROM hidden)")
    sql("CREATE VIEW v_values AS SELECT * FROM VALUES (1) AS t(secret_column)")
    sql("CREATE VIEW v_files AS SELECT * FROM parquet.`FOLDER/plain`")
    sql("CREATE VIEW v_reflect AS SELECT reflect('java.lang.Math', 'abs', a) AS a FROM seen")
    sql("CREATE VIEW v_broken AS SELECT a FROM seen")
    sql("CREATE TABLE going (a INT) USING delta")
    sql("CREATE OR REPLACE VIEW v_broken AS SELECT a FROM going")
    sql("DROP TABLE going")
    sql("CREATE FUNCTION most() RETURNS INT RETURN (SELECT max(a) FROM rights.hidden)")
    sql("CREATE VIEW v_function AS SELECT most() AS a FROM seen")
    sql("CREATE TABLE shadowed (a INT) USING delta LOCATION 'FOLDER/shadowed'")
    session.createDataFrame([(7,)], "secret_column INT").createOrReplaceTempView("shadowed")
    session.range(3).createOrReplaceTempView("temporary")
    session.range(3).createOrReplaceGlobalTempView("rights_global")
    session.udf.register("python_udf", lambda x: x, "INT")
    sql("DECLARE held INT = 5")
    session.conf.set("spark.sql.catalog.other", "no.such.Catalog")
    granted = ("seen", "also", "feed", "odd.name 100%", "plain", "shadowed")
    places = frozenset(normalise_location(session, str(folder / name)) for name in granted)
    yield World(session, places, folder)
    session.sql("DROP VIEW global_temp.rights_global")
    session.sql("DROP TEMPORARY VARIABLE held")
    session.sql("USE default")
    session.sql("DROP SCHEMA rights CASCADE")


A_AND_B = [(1, "x"), (2, "y")]
ONE_TWO = [(1,), (2,)]

ALLOWED: dict[str, list[tuple[Any, ...]] | None] = {
    "SELECT 1": [(1,)],
    "SELECT a, b FROM seen": A_AND_B,
    "select A, B from SEEN": A_AND_B,
    "SELECT a FROM rights.seen": ONE_TWO,
    "SELECT a FROM spark_catalog.rights.seen": ONE_TWO,
    "SELECT a FROM Spark_Catalog.`RIGHTS`.Seen": ONE_TWO,
    "SELECT `odd_name`.`a` FROM `rights`.`odd_name`": ONE_TWO,
    "SELECT a FROM delta.`FOLDER/odd.name 100%`": ONE_TWO,
    "SELECT a FROM delta.`FOLDER/seen`": ONE_TWO,
    "SELECT a FROM DELTA.`file:FOLDER/seen/`": ONE_TWO,
    "SELECT a FROM delta.`file://FOLDER/hidden/../seen`": ONE_TWO,
    "SELECT a FROM spark_catalog.delta.`FOLDER/seen`": ONE_TWO,
    "TABLE v_seen": A_AND_B,
    "FROM seen SELECT a": ONE_TWO,
    "FROM seen |> WHERE a > 1 |> SELECT a": [(2,)],
    "FROM seen |> AGGREGATE sum(a) AS s GROUP BY b |> ORDER BY s |> SELECT s": ONE_TWO,
    "SELECT a FROM IDENTIFIER('seen')": ONE_TWO,
    "SELECT a FROM v_seen": ONE_TWO,
    "SELECT a FROM v_v_seen": ONE_TWO,
    "/* SET x = 1 */ SELECT /*+ BROADCAST(s), REPARTITION(2) */ a -- hidden\nFROM seen s": ONE_TWO,
    "SELECT /*+ REBALANCE */ a FROM seen": ONE_TWO,
    "WITH hidden AS (SELECT a FROM seen) SELECT a FROM hidden": ONE_TWO,
    "WITH x AS (SELECT a FROM seen), HIDDEN AS (SELECT a FROM x) TABLE hidden": ONE_TWO,
    "SELECT (WITH hidden AS (SELECT max(a) m FROM seen) SELECT m FROM hidden) x": [(2,)],
    "WITH RECURSIVE hidden(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM hidden WHERE n < 2) "
    "SELECT n FROM hidden": ONE_TWO,
    "SELECT a FROM seen VERSION AS OF 0": [],
    "SELECT a FROM seen VERSION AS OF 1": ONE_TWO,
    "SELECT a FROM delta.`FOLDER/seen` VERSION AS OF 1": ONE_TWO,
    "SELECT a FROM table_changes('feed', 1)": ONE_TWO,
    "SELECT a FROM table_changes('rights.feed', 0, 1)": ONE_TWO,
    "SELECT a FROM table_changes('delta.`FOLDER/feed`', 1)": ONE_TWO,
    "SELECT a FROM table_changes_by_path('FOLDER/feed', 1)": ONE_TWO,
    "SELECT a FROM feed WITH ('readChangeFeed' = 'true', 'startingVersion' = '1')": ONE_TWO,
    "SELECT a FROM seen UNION SELECT a FROM also": ONE_TWO,
    "SELECT a FROM seen INTERSECT SELECT a FROM also EXCEPT SELECT 1": [(2,)],
    "SELECT a FROM seen GROUP BY a HAVING a = (SELECT max(a) FROM also)": [(2,)],
    "SELECT a FROM seen ORDER BY (SELECT max(a) FROM also) LIMIT 1 OFFSET 1": None,
    "SELECT x.a FROM seen s JOIN LATERAL (SELECT also.a FROM also WHERE also.a = s.a) x": ONE_TWO,
    "SELECT CASE WHEN a IN (SELECT a FROM also) THEN a END FROM seen": ONE_TWO,
    "SELECT s.a FROM seen s JOIN also USING (a)": ONE_TWO,
    "SELECT s.a FROM seen s NATURAL JOIN also": ONE_TWO,
    "SELECT a, row_number() OVER w AS n FROM seen WINDOW w AS (ORDER BY a)": [(1, 1), (2, 2)],
    "SELECT e FROM seen LATERAL VIEW explode(c) t AS e": [(1,), (2,), (3,)],
    "SELECT e FROM seen, LATERAL explode(c) AS t(e)": [(1,), (2,), (3,)],
    "SELECT id FROM range(1, 3)": ONE_TWO,
    "SELECT * FROM VALUES (1), (2) AS t(a)": ONE_TWO,
    "SELECT * FROM seen PIVOT (max(b) FOR a IN (1 AS p, 2 AS q)) WHERE p IS NOT NULL": None,
    "SELECT v FROM seen UNPIVOT (v FOR k IN (a))": ONE_TWO,
    "SELECT a FROM seen TABLESAMPLE (100 PERCENT)": ONE_TWO,
    "SELECT count(*) FROM seen GROUP BY CUBE (a, b)": None,
    "SELECT input_file_name() LIKE '%parquet' FROM seen LIMIT 1": [(True,)],
    "SELECT _metadata.file_name LIKE '%parquet' FROM seen LIMIT 1": [(True,)],
    "SELECT current_user() IS NULL, version() IS NULL, current_date() IS NULL": [(False,) * 3],
    "SELECT builtin.abs(-1), system.builtin.abs(-2)": [(1, 2)],
    "SELECT transform(c, x -> x + 1) FROM seen": None,
    "SELECT DISTINCT a FROM seen DISTRIBUTE BY a SORT BY a": ONE_TWO,
    "SELECT window.start, count(*) FROM (SELECT now() t) GROUP BY window(t, '1 day')": None,
    "SELECT from_json('{\"a\": 1}', 'a INT').a, parse_url('http://x/y', 'HOST')": [(1, "x")],
    "SELECT listagg(b, ',') WITHIN GROUP (ORDER BY b) FROM seen": [("x,y",)],
    "SELECT count(*) FILTER (WHERE a IN (SELECT a FROM also)) FROM seen": [(2,)],
}

NOT_GRANTED: dict[str, str] = {
    "SELECT a FROM hidden": "hidden",
    "SELECT nope FROM hidden": "hidden",
    "SELECT a FROM Rights.HIDDEN": "Rights.HIDDEN",
    "SELECT a FROM `spark_catalog`.rights.hidden": "spark_catalog.rights.hidden",
    "SELECT a FROM missing": "missing",
    "SELECT a FROM no_schema.missing": "no_schema.missing",
    "SELECT a FROM other.s.t": "other.s.t",
    "SELECT a FROM other.t": "other.t",
    "SELECT a FROM a.b.c.d": "a.b.c.d",
    "SELECT a FROM spark_catalog.seen": "spark_catalog.seen",
    "SELECT a FROM `rights.seen`": "`rights.seen`",
    "SELECT a FROM delta.`FOLDER/hidden`": "delta.`",
    "SELECT a FROM delta.`FOLDER/nothing`": "delta.`",
    "SELECT a FROM delta.`FOLDER/seen/..`": "delta.`",
    f"SELECT a FROM delta.`{TRAP}`": f"delta.`{TRAP}`",
    "SELECT a FROM delta.`seen`": "delta.seen",
    "SELECT a FROM delta.`FOLDER/seen@v1`": "delta.`",
    "SELECT a FROM hidden VERSION AS OF 1": "hidden",
    "SELECT a FROM hidden TIMESTAMP AS OF '2020-01-01'": "hidden",
    "SELECT a FROM table_changes('hidden', 0)": "hidden",
    "SELECT a FROM table_changes_by_path('FOLDER/hidden', 0)": "delta.`",
    "SELECT a FROM hidden WITH ('readChangeFeed' = 'true', 'startingVersion' = '1')": "hidden",
    "TABLE hidden": "hidden",
    "FROM hidden SELECT a": "hidden",
    "FROM hidden |> SELECT a": "hidden",
    "FROM seen |> UNION ALL TABLE hidden": "hidden",
    "FROM seen |> WHERE a IN (SELECT a FROM hidden)": "hidden",
    "SELECT * FROM IDENTIFIER('hidden')": "hidden",
    "SELECT a FROM v_hidden": "v_hidden",
    "SELECT nope FROM v_hidden": "v_hidden",
    "SELECT a FROM v_mixed": "v_mixed",
    "SELECT * FROM v_values": "v_values",
    "SELECT * FROM v_files": "v_files",
    "SELECT * FROM v_broken": "v_broken",
    "SELECT * FROM v_function": "v_function",
    "SELECT * FROM unseen_plain": "unseen_plain",
    "SELECT * FROM shadowed": "shadowed",
    "SELECT * FROM temporary": "temporary",
    "SELECT * FROM global_temp.rights_global": "global_temp.rights_global",
    "WITH hidden AS (SELECT * FROM hidden) SELECT * FROM hidden": "hidden",
    "WITH x AS (SELECT 1 FROM hidden) SELECT a FROM seen": "hidden",
    "WITH hidden AS (SELECT 1) SELECT * FROM rights.hidden": "rights.hidden",
    "SELECT (WITH hidden AS (SELECT 1) TABLE hidden), a FROM hidden": "hidden",
    "SELECT a FROM seen GROUP BY a HAVING a = (SELECT max(a) FROM hidden)": "hidden",
    "SELECT a FROM seen ORDER BY (SELECT max(a) FROM hidden)": "hidden",
    "SELECT a FROM seen LIMIT (SELECT max(a) FROM hidden)": "hidden",
    "SELECT s.a FROM seen s JOIN LATERAL (SELECT * FROM hidden h WHERE h.a = s.a) x": "hidden",
    "SELECT s.a FROM seen s JOIN also ON s.a = (SELECT max(a) FROM hidden)": "hidden",
    "SELECT sum(a) OVER (ORDER BY (SELECT max(a) FROM hidden)) FROM seen": "hidden",
    "SELECT sum(a) OVER w FROM seen WINDOW w AS (ORDER BY (SELECT max(a) FROM hidden))": "hidden",
    "SELECT a FROM seen QUALIFY row_number() OVER (ORDER BY a) = (SELECT 1 FROM hidden)": "hidden",
    "SELECT CASE WHEN a IN (SELECT a FROM hidden) THEN 1 END FROM seen": "hidden",
    "SELECT a IN (SELECT CASE WHEN EXISTS (TABLE hidden) THEN 1 END) FROM seen": "hidden",
    "SELECT NOT EXISTS (SELECT 1 FROM hidden) FROM seen": "hidden",
    "SELECT a FROM seen UNION ALL SELECT a FROM hidden": "hidden",
    "SELECT a FROM seen EXCEPT SELECT a FROM hidden": "hidden",
    "SELECT * FROM VALUES (1, (SELECT max(a) FROM hidden)) AS t(x, y)": "hidden",
    "SELECT count(*) FILTER (WHERE a = (SELECT max(a) FROM hidden)) FROM seen": "hidden",
    "SELECT transform(c, x -> x + (SELECT max(a) FROM hidden)) FROM seen": "hidden",
    "SELECT * FROM seen PIVOT (max(b) FOR a IN (1)) JOIN hidden": "hidden",
    "SELECT * FROM hidden UNPIVOT (v FOR k IN (a))": "hidden",
    "SELECT * FROM seen TABLESAMPLE (10 PERCENT) CROSS JOIN hidden TABLESAMPLE (1 ROWS)": "hidden",
    "SELECT * FROM explode(array((SELECT max(a) FROM hidden)))": "hidden",
    "SELECT /*+ BROADCAST(hidden) */ * FROM seen, hidden": "hidden",
    "SELECT * FROM (((SELECT * FROM hidden)))": "hidden",
}

REFUSED: dict[str, str] = {
    # what is no query
    "SET spark.sql.ansi.enabled = false": "holds SET (",
    "SET": "holds SET ",
    "RESET": "holds RESET",
    "ADD JAR 'FOLDER/x.jar'": "holds ADD JARS",
    "CREATE TABLE made AS SELECT 1 AS a": "holds CREATE TABLE AS SELECT",
    "CREATE TABLE made (a INT) USING delta": "holds CREATE TABLE",
    "CREATE VIEW made AS SELECT 1": "holds CREATE VIEW",
    "CREATE TEMP VIEW made AS SELECT 1": "holds CREATE VIEW",
    "CREATE FUNCTION made AS 'x.Y'": "holds CREATE FUNCTION",
    "CREATE TEMPORARY FUNCTION made() RETURNS INT RETURN 1": "FUNCTION",
    "INSERT INTO seen SELECT * FROM also": "holds INSERT INTO",
    "INSERT OVERWRITE DIRECTORY 'FOLDER/made' USING json SELECT 1": "holds INSERT INTO DIR",
    "FROM seen INSERT INTO also SELECT * INSERT INTO seen SELECT *": "holds INSERT INTO",
    "WITH x AS (SELECT 1) INSERT INTO seen SELECT * FROM also": "holds INSERT INTO",
    "MERGE INTO seen USING also ON seen.a = also.a WHEN MATCHED THEN DELETE": "holds MERGE",
    "UPDATE seen SET a = 9": "holds UPDATE",
    "DELETE FROM seen": "holds DELETE",
    "DROP TABLE seen": "holds DROP TABLE",
    "TRUNCATE TABLE seen": "holds TRUNCATE TABLE",
    "ALTER TABLE seen ADD COLUMN z INT": "holds ADD COLUMNS",
    "EXECUTE IMMEDIATE 'DROP TABLE seen'": "holds EXECUTE IMMEDIATE",
    "BEGIN DROP TABLE seen; END": "a script (BEGIN … END)",
    "DECLARE made INT = 1": "holds CREATE VARIABLE",
    "SET VAR held = 6": "holds SET VARIABLE",
    "CACHE TABLE seen": "holds CACHE TABLE",
    "CACHE TABLE made AS SELECT 1": "holds CACHE TABLE",
    "UNCACHE TABLE seen": "holds UNCACHE TABLE",
    "REFRESH TABLE seen": "holds REFRESH TABLE",
    "USE default": "holds USE",
    "EXPLAIN SELECT a FROM seen": "holds EXPLAIN",
    "EXPLAIN EXTENDED SELECT a FROM hidden": "holds EXPLAIN",
    "DESCRIBE hidden": "holds DESCRIBE",
    "DESCRIBE HISTORY hidden": "holds DESCRIBE DELTA HISTORY",
    "DESCRIBE DETAIL hidden": "holds DESCRIBE DELTA DETAIL",
    "SHOW TABLES": "holds SHOW TABLES",
    "SHOW CREATE TABLE hidden": "holds SHOW CREATE TABLE",
    "ANALYZE TABLE seen COMPUTE STATISTICS": "holds ANALYZE TABLE",
    "OPTIMIZE seen": "holds OPTIMIZE",
    "VACUUM seen": "holds VACUUM",
    "RESTORE TABLE seen TO VERSION AS OF 0": "holds RESTORE",
    "CALL other.p()": "holds CALL",
    "SELECT TRANSFORM(a) USING 'touch FOLDER/made.json' FROM seen": "TRANSFORM, which runs",
    "SELECT * FROM (SELECT TRANSFORM(a) USING 'cat' FROM seen)": "TRANSFORM, which runs",
    # files and other sources
    "SELECT * FROM parquet.`FOLDER/plain`": "read by its path",
    "SELECT * FROM parquet.`FOLDER/nothing`": "read by its path",
    "SELECT * FROM csv.`FOLDER/lines.csv`": "read by its path",
    "SELECT secret FROM CSV.`FOLDER/lines.csv`": "read by its path",
    "SELECT * FROM text.`FOLDER/lines.csv`": "read by its path",
    "SELECT * FROM json.`/etc/passwd`": "read by its path",
    "SELECT * FROM binaryFile.`/etc`": "read by its path",
    "SELECT * FROM orc.`FOLDER`": "read by its path",
    "SELECT * FROM `org.apache.spark.sql.json`.`FOLDER`": "read by its path",
    f"SELECT * FROM parquet.`{TRAP}`": "read by its path",
    "SELECT * FROM jdbc.`jdbc:postgresql://localhost/x`": "read by its path",
    "SELECT * FROM spark_catalog.parquet.`FOLDER/plain`": "read by its path",
    "SELECT a FROM seen WHERE a IN (SELECT * FROM csv.`FOLDER/lines.csv`)": "read by its path",
    "SELECT * FROM plain": "no Delta table",
    "SELECT * FROM STREAM seen": "a stream",
    "SELECT * FROM seen WITH ('path' = 'FOLDER/hidden')": "the option path",
    "SELECT * FROM seen WITH ('fs.s3a.endpoint' = 'x')": "the option",
    "SELECT * FROM read_files('FOLDER')": "read_files(…)",
    "SELECT * FROM python_worker_logs()": "python_worker_logs(…)",
    "SELECT * FROM rights.most()": "rights.most(…)",
    "SELECT * FROM table_changes('hid' || 'den', 0)": "table_changes(…)",
    "SELECT * FROM table_changes('', 0)": "table_changes(…)",
    # functions
    f"SELECT reflect('java.lang.System', 'setProperty', '{PROBE}', '1')": "reflect reaches",
    f"SELECT java_method('java.lang.System', 'setProperty', '{PROBE}', '1')": "java_method reaches",
    f"SELECT system.builtin.reflect('java.lang.System', 'setProperty', '{PROBE}', '1')": "reflect",
    f"SELECT try_reflect('java.lang.System', 'setProperty', '{PROBE}', '1')": "try_reflect",
    f"SELECT * FROM VALUES (reflect('java.lang.System', 'setProperty', '{PROBE}', '1'))": "reflect",
    "SELECT a FROM seen TIMESTAMP AS OF reflect('java.lang.System', 'setProperty', "
    f"'{PROBE}', '1')": "reflect reaches",
    f"SELECT * FROM range(int(reflect('java.lang.System', 'setProperty', '{PROBE}', '1')))": (
        "reflect reaches"
    ),
    "SELECT from_avro(b, 'x') FROM seen": "from_avro reaches",
    "SELECT from_protobuf(b, 'x', 'FOLDER/x.desc') FROM seen": "from_protobuf reaches",
    "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/x.xsd'))": "from_xml reaches",
    "SELECT xpath_string('<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>', 'a')": "xpath_string",
    "SELECT python_udf(a) FROM seen": "python_udf is none",
    "SELECT most()": "most is none",
    "SELECT rights.most()": "rights.most is none",
    "SELECT no_such_function(a) FROM seen": "no_such_function is none",
    "SELECT a FROM seen WHERE EXISTS (SELECT python_udf(a) FROM also)": "python_udf is none",
    "SELECT held": "reads a variable",
    "SELECT a FROM seen WHERE a = system.session.held": "reads a variable",
    "SELECT * FROM v_reflect": "CallMethodViaReflection",
    # what is put in later
    "SELECT * FROM seen WHERE a = :x": "a parameter",
    "SELECT * FROM seen WHERE a = ?": "a parameter",
    "SELECT * FROM IDENTIFIER('hid' || 'den')": "computed by IDENTIFIER",
    "SELECT IDENTIFIER('reflect')('java.lang.Math', 'abs', 1)": "computed by IDENTIFIER",
    "SELECT * FROM seen TIMESTAMP AS OF (SELECT max(a) FROM also)": "given by a query",
}


@pytest.mark.parametrize("text", ALLOWED)
def test_allowed(world: World, text: str) -> None:
    """A statement over granted tables runs."""
    found = world.rows(text)
    expected = ALLOWED[text]
    assert expected is None or found == expected


@pytest.mark.parametrize("text", NOT_GRANTED)
def test_not_granted(world: World, text: str) -> None:
    """What was not granted is named as the text has it, and nothing more is told."""
    before = world.state()
    error = world.refusal(text)
    assert error.code == ErrorCode.SELECT_NOT_GRANTED
    assert f"SELECT on {NOT_GRANTED[text]}" in error.message
    assert "secret" not in error.message
    assert world.state() == before


@pytest.mark.parametrize("text", REFUSED)
def test_refused(world: World, text: str) -> None:
    """What is no query or reaches outside is refused by what it is, and nothing has happened."""
    before = world.state()
    error = world.refusal(text)
    assert error.code == ErrorCode.STATEMENT_REFUSED, error
    assert REFUSED[text] in error.message
    assert "secret_column" not in error.message
    assert world.state() == before


@pytest.mark.parametrize(
    "text",
    [
        "WITH RECURSIVE hidden AS (SELECT nope FROM hidden) SELECT * FROM hidden",
        "WITH RECURSIVE x AS (SELECT 1), hidden AS (SELECT nope FROM hidden) SELECT * FROM hidden",
        "WITH RECURSIVE hidden(n) AS (SELECT 1 UNION ALL SELECT nope FROM hidden) TABLE hidden",
        "WITH x AS (SELECT nope FROM hidden), hidden AS (SELECT 1) SELECT * FROM x",
        "WITH hidden AS (SELECT 1) SELECT nope FROM hidden VERSION AS OF 0",
        "WITH hidden AS (SELECT 1) SELECT nope FROM hidden WITH ('versionAsOf' = '0')",
        "WITH hidden AS (SELECT 1) SELECT nope FROM table_changes('hidden', 0)",
        "SELECT nope FROM (WITH hidden AS (SELECT 1) TABLE hidden) JOIN hidden",
        "SELECT nope FROM seen JOIN v_hidden",
        "SELECT nope FROM seen JOIN csv.`FOLDER/lines.csv`",
    ],
)
@pytest.mark.parametrize("case_sensitive", [False, True])
def test_no_error_tells_columns(world: World, text: str, case_sensitive: bool) -> None:
    """Spark tells the columns that there are, of what it could resolve."""
    world.spark.conf.set("spark.sql.caseSensitive", case_sensitive)
    try:
        error = world.refusal(text.replace("TABLE hidden", "TABLE HIDDEN"))
    finally:
        world.spark.conf.unset("spark.sql.caseSensitive")
    assert "secret_column" not in error.message


def test_a_text_that_is_nested_too_deeply(world: World) -> None:
    """Where Spark's stack ends, the text is refused, and the session goes on."""
    deep = "SELECT " + "(" * 20_000 + "1" + ")" * 20_000
    assert world.refusal(deep).code in (ErrorCode.NESTED_TOO_DEEPLY, ErrorCode.SYNTAX_ERROR)
    assert world.rows("SELECT 1") == [(1,)]


def told_of(world: World, name: str) -> str:
    """What is told of a name, the name taken out."""
    return world.refusal(f"SELECT nope FROM {name}").message.replace(name, "NAME")


@pytest.mark.parametrize(
    "name", ["hidden", "v_hidden", "v_mixed", "v_values", "v_files", "v_broken", "unseen_plain"]
)
def test_the_same_is_told_of_what_does_not_exist(world: World, name: str) -> None:
    """Nobody learns which tables there are that he was not granted."""
    assert told_of(world, name) == told_of(world, "missing")


def test_the_same_is_told_of_files_that_do_not_exist(world: World) -> None:
    """Nor which folders."""
    there, nowhere = (
        world.refusal(f"SELECT * FROM {form}.`{world.folder}/{name}`").message.replace(name, "NAME")
        for form, name in (("delta", "hidden"), ("delta", "nowhere"))
    )
    assert there == nowhere


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("SELEC 1", ErrorCode.SYNTAX_ERROR, "PARSE_SYNTAX_ERROR"),
        ("SELECT 1; DROP TABLE seen", ErrorCode.SYNTAX_ERROR, "PARSE_SYNTAX_ERROR"),
        ("", ErrorCode.SYNTAX_ERROR, "PARSE"),
        ("SELECT nope FROM seen", ErrorCode.STATEMENT_INVALID, "UNRESOLVED_COLUMN"),
        ("SELECT '${env:HOME}'", ErrorCode.SUBSTITUTION_REFUSED, "the statement holds ${"),
    ],
)
def test_wrong_texts(world: World, text: str, code: str, told: str) -> None:
    """What Spark says of a wrong text is told in one line, without plans and traces."""
    error = world.refusal(text)
    assert (error.code, told in error.message) == (code, True)
    assert "\n" not in error.message
    assert "SQLSTATE" not in error.message


def test_what_was_checked_is_what_runs(world: World) -> None:
    """A view that is replaced after the check is read as it was."""
    from cachemgr.spark.results.rights import allowed_query

    world.spark.sql("CREATE OR REPLACE VIEW v_moved AS SELECT a FROM seen")
    rows = allowed_query(world.spark, "SELECT * FROM v_moved", world.places, "ann").rows
    world.spark.sql("CREATE OR REPLACE VIEW v_moved AS SELECT a + 100 AS a FROM hidden")
    assert sorted(row[0] for row in rows.collect()) == [1, 2]
    assert world.refusal("SELECT * FROM v_moved").code == ErrorCode.SELECT_NOT_GRANTED


def test_without_a_grant_nothing_is_read(world: World) -> None:
    """None by default."""
    bare = World(world.spark, frozenset(), world.folder)
    assert bare.refusal("SELECT a FROM seen").code == ErrorCode.SELECT_NOT_GRANTED
    assert bare.rows("SELECT 1") == [(1,)]


def test_all_built_in_functions_are_judged(world: World) -> None:
    """Each example of Spark's own documentation passes, save those of functions that reach out."""
    from cachemgr.spark.results.rights import allowed_query
    from cachemgr.spark.texts import REACHING

    registry = world.spark._jsparkSession.sessionState().functionRegistry()
    names = [n for n in str(registry.listFunction().mkString("\n")).splitlines() if n]
    passed, refused = 0, {}
    for name in names:
        info = world.spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name.rpartition('.')[2]}`").collect()
        for text in _examples("\n".join(row[0] for row in info)):
            try:
                allowed_query(world.spark, text, frozenset(), "ann")
                passed += 1
            except CacheManagerError as error:
                if error.code == ErrorCode.STATEMENT_REFUSED:
                    refused[text] = error.message
    wrong = {
        text: why
        for text, why in refused.items()
        if not any(f"{name}(" in text.lower() for name in REACHING)
    }
    assert not wrong
    assert passed > 300


def _examples(described: str) -> list[str]:
    found = described.partition("Examples:")[2].split("> ")[1:]
    return [part.partition(";")[0] for part in found if part.startswith("SELECT")]
