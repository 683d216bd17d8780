# ruff: noqa: E501 - tables of SQL read better unbroken
"""What comes through a door of the service is no more than a text over tables: nothing is
substituted, reflected, carried out or read as a file, and no error tells what it would have been.
The service's statements run on the lab's Spark, which stands for the service's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import cachemgr
from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState
from cachemgr.errors import CacheManagerError, DefinitionError, RefreshError
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.roles import Role
from cachemgr.spark.host import SparkHost
from cachemgr.statements import apply as applying
from cachemgr.statements.apply import Context
from cachemgr.statements.export import Definitions, JoinDefinition
from tests.worlds.lab_star import Lab, make_lab

pytestmark = pytest.mark.spark
SECRET = "s3cr3t-of-the-process"
PROPERTY = "cachemgr.test.secret"
VARIABLES = (
    f"${{system:{PROPERTY}}}",
    "${env:PATH}",
    "${spark.app.id}",
    "${sparkconf:spark.app.name}",
    "${hiveconf:spark.master}",
    "${hivevar:x}",
    "${x}",
)


@dataclass
class Service:
    """The doors, and what is behind them."""

    lab: Lab
    host: SparkHost
    store: Metastore
    client: TestClient

    def post(self, path: str, body: dict[str, Any], role: Role = Role.ADMIN) -> Any:
        _, token = self.store.tokens.create(role.value, role)
        headers = {"Authorization": f"Bearer {token}"}
        return self.client.post(f"/api/v1{path}", json=body, headers=headers)

    def document(self, **changed: Any) -> dict[str, Any]:
        values = {"name": "default.d", "definition": "SELECT id FROM sales", "catalog":
                  "spark_catalog", "schema": self.lab.schema}  # fmt: skip
        return {"definitions": {"caches": [values | changed], "joins": []}}


@pytest.fixture(scope="module")
def service(spark, tmp_path_factory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("doors")
    url = f"sqlite:///{folder / 'metastore.db'}"
    labs = make_lab(spark, folder, url)
    lab = next(labs)
    host = SparkHost("local[1]", url, str(folder / "caches"), {})
    host._spark = lab.spark  # as if it had been started: one application a process
    lab.spark.conf.set("spark.sql.variable.substitute", "false")  # as a start does
    spark._jvm.java.lang.System.setProperty(PROPERTY, SECRET)
    with open_metastore(url) as store:
        app = create_app(ApiState(store, host, lambda: False))
        with TestClient(app, raise_server_exceptions=False) as client:
            yield Service(lab, host, store, client)
    spark._jvm.java.lang.System.clearProperty(PROPERTY)
    next(labs, None)


def refused(answer: Any, *codes: str) -> str:
    """A clear refusal, which tells nothing of what would have been found."""
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert not codes or error["type"] in codes, answer.text
    for leaked in (SECRET, "root:", "Traceback", "java.lang"):
        assert leaked not in answer.text, answer.text
    return str(error["message"])


@pytest.mark.parametrize("variable", VARIABLES)
def test_nothing_is_substituted_through_a_door(service: Service, variable: str):
    for text in (
        f"SELECT region, '{variable}' AS v FROM sales",
        f"SELECT region FROM sales WHERE region = '{variable}'",
        f"SELECT region /* {variable} */ FROM sales",
        f"SELECT region FROM sales -- {variable}",
        f"SELECT region FROM `{variable}`",
        f'SELECT region FROM sales WHERE region = "{variable}"',
    ):
        create = {"ddl": f"CREATE RELATIONAL CACHE c AS {text}"}
        message = refused(service.post("/caches", create), "SUBSTITUTION_REFUSED", "SYNTAX_ERROR")
        assert variable[2:-1].split(":")[-1] not in message or variable in message
        body = service.document(definition=text)
        for path in ("/definitions/plan", "/definitions/apply"):
            refused(service.post(path, body), "SUBSTITUTION_REFUSED", "SYNTAX_ERROR")
    join = f"CREATE RECORD PRESERVING JOIN j AS `{variable}` s INNER JOIN cust ON s.cust = cid PRESERVES s"
    refused(service.post("/joins", {"ddl": join}), "SUBSTITUTION_REFUSED")
    refused(service.post("/tables/restricted", {"table": f"`{variable}`"}), "SUBSTITUTION_REFUSED")
    with pytest.raises(DefinitionError, match="SUBSTITUTION_REFUSED"):
        service.host.execute(f"EXPLAIN REWRITE SELECT '{variable}'", "ann")
    with pytest.raises(DefinitionError, match="SUBSTITUTION_REFUSED"):
        context = Context("spark_catalog", service.lab.schema, None)
        service.host.execute_in(
            f"EXPLAIN CREATE RELATIONAL CACHE c AS SELECT '{variable}' AS v FROM sales",
            "ann",
            context,
        )
    assert service.store.caches.all() == () and service.store.joins.all() == ()


def test_clauses_beside_the_select_are_refused_as_well(service: Service):
    for clause in (f"COMMENT '{VARIABLES[0]}'", f"LOCATION '/tmp/{VARIABLES[0]}'",
                   f"TBLPROPERTIES ('a' = '{VARIABLES[0]}')"):  # fmt: skip
        text = f"CREATE RELATIONAL CACHE c {clause} AS SELECT region FROM sales"
        refused(service.post("/caches", {"ddl": text}), "SUBSTITUTION_REFUSED")
    properties = service.document(properties={"a": VARIABLES[0]})
    refused(service.post("/definitions/apply", properties), "SUBSTITUTION_REFUSED")
    join = JoinDefinition(
        "j",
        f"CREATE RECORD PRESERVING JOIN j AS `{VARIABLES[0]}` s INNER JOIN cust ON s.cust = cid PRESERVES s",
    )
    with pytest.raises(DefinitionError, match="SUBSTITUTION_REFUSED"):
        applying.plan(service.store, Definitions((), (join,)), prune=False)


@pytest.mark.parametrize(
    "key",
    ["spark.sql.variable.substitute", "spark.sql.runSQLOnFiles", "spark.sql.catalog.evil",
     "spark.hadoop.fs.s3a.endpoint", "spark.cachemgr.location", "parquet.read.filter",
     "parquet.private.read.filter.predicate"],
)  # fmt: skip
def test_a_caller_brings_no_setting_but_those_that_change_rows(service: Service, key: str):
    body = service.document(settings={key: "true"})
    for path in ("/definitions/plan", "/definitions/apply"):
        assert key in refused(service.post(path, body), "SETTING_REFUSED")


def test_no_session_of_ours_substitutes_whatever_it_is_told(service: Service):
    from cachemgr.delta.own_session import own_session

    told = {"spark.sql.variable.substitute": "true"}
    session = own_session(service.lab.spark, told)
    assert session.conf.get("spark.sql.variable.substitute") == "false"
    value = session.sql(f"SELECT '{VARIABLES[0]}' AS v").first().v
    assert value == VARIABLES[0]


REACHING = (
    "reflect('java.lang.System', 'getProperty', 'cachemgr.test.secret')",
    "java_method('java.lang.System', 'getProperty', 'cachemgr.test.secret')",
    "try_reflect('java.lang.System', 'getProperty', 'cachemgr.test.secret')",
    "`reflect`('no.such.Class', 'x')",
    "system.builtin.reflect('java.lang.System', 'getenv', 'PATH')",
    "from_xml('<a>1</a>', 'a INT', map('rowValidationXSDPath', '/etc/passwd')).a",
    "from_avro(region, '{}', map('avroSchemaUrl', 'file:/etc/passwd'))",
    "from_protobuf(region, 'M', '/etc/passwd')",
    "xpath_string('<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a>1</a>', 'a')",
)


@pytest.mark.parametrize("call", REACHING)
def test_no_class_or_file_is_reached_by_a_function(service: Service, call: str):
    for text in (
        f"SELECT region, {call} AS v FROM sales",
        f"SELECT region FROM sales WHERE region = {call}",
        f"SELECT region FROM sales WHERE region IN (SELECT {call} FROM cust)",
        f"WITH x AS (SELECT region, {call} AS v FROM sales) SELECT region FROM x",
        f"SELECT region, SUM(amt) AS s FROM sales GROUP BY region HAVING MAX({call}) = 'x'",
        f"SELECT region, SUM(amt) OVER w AS s FROM sales WINDOW w AS (PARTITION BY {call})",
    ):
        create = {"ddl": f"CREATE RELATIONAL CACHE c AS {text}"}
        refused(service.post("/caches", create), "FUNCTION_REFUSED", "SYNTAX_ERROR")
        answer = service.post("/definitions/apply", service.document(definition=text))
        refused(answer, "FUNCTION_REFUSED", "SYNTAX_ERROR")


def files(folder: Path) -> tuple[str, ...]:
    secret = folder / "secret.json"
    secret.write_text(json.dumps({SECRET: 1}) + "\n")
    paths = (str(secret), f"file:{secret}", f"file://{secret}", "/etc/passwd", "/no/such/file")
    formats = (
        "text",
        "csv",
        "parquet",
        "orc",
        "xml",
        "binaryFile",
        "TEXT",
        "no.such.Format",
        "org.apache.spark.sql.execution.datasources.text.TextFileFormat",
    )
    return tuple(f"`{f}`.`{secret}`" for f in formats) + tuple(f"json.`{p}`" for p in paths)


def test_no_file_is_read_by_its_path(service: Service, tmp_path: Path):
    for relation in files(tmp_path):
        for text in (
            f"SELECT nope FROM {relation}",
            f"SELECT region FROM sales WHERE region IN (SELECT nope FROM {relation})",
            f"WITH x AS (SELECT nope FROM {relation}) SELECT nope FROM x",
        ):
            create = {"ddl": f"CREATE RELATIONAL CACHE c AS {text}"}
            refused(service.post("/caches", create), "TABLE_OR_VIEW_NOT_FOUND")
        join = f"CREATE RECORD PRESERVING JOIN j AS {relation} s INNER JOIN cust ON s.nope = cid PRESERVES s"
        refused(service.post("/joins", {"ddl": join}), "TABLE_OR_VIEW_NOT_FOUND")
        answer = service.post("/tables/restricted", {"table": relation})
        refused(answer, "TABLE_OR_VIEW_NOT_FOUND")


STATEMENTS = (
    "EXECUTE IMMEDIATE 'CREATE TABLE evil (a INT) USING delta'",
    "BEGIN CREATE TABLE evil (a INT) USING delta; END",
    "SELECT region FROM sales; CREATE TABLE evil (a INT) USING delta",
    "SET spark.sql.ansi.enabled = false",
    "SET VAR x = 1",
    "FROM sales INSERT INTO sales SELECT *",
    "WITH x AS (SELECT 1) INSERT INTO sales SELECT * FROM sales",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.System' USING JAR '/tmp/x.jar'",
    "(EXECUTE IMMEDIATE 'CREATE TABLE evil (a INT) USING delta')",
    "SELECT TRANSFORM (region) USING 'cat /etc/passwd' AS (v STRING) FROM sales",
    "SELECT v FROM (SELECT TRANSFORM (region) USING 'id' AS (v STRING) FROM sales)",
    "SELECT value FROM read_files('/etc/passwd')",
    "SELECT id FROM range(5)",
    "SELECT id FROM sales, LATERAL explode(array(1, 2))",
    "SELECT no_such_udf(region) AS v FROM sales",
    "SELECT current_user() AS u, region FROM sales",
    "SELECT session_var FROM sales",
)


@pytest.mark.parametrize("text", STATEMENTS)
def test_nothing_but_a_query_over_tables_is_a_definition(service: Service, text: str):
    refused(service.post("/caches", {"ddl": f"CREATE RELATIONAL CACHE c AS {text}"}))
    refused(service.post("/definitions/apply", service.document(definition=text)))
    with pytest.raises(CacheManagerError):
        service.host.execute(f"EXPLAIN CREATE RELATIONAL CACHE c AS {text}", "ann")
    assert not service.lab.plain.catalog.tableExists(f"{service.lab.schema}.evil")
    assert service.lab.spark.conf.get("spark.sql.ansi.enabled") != "evil"


@pytest.mark.parametrize("text", STATEMENTS[:9])
def test_a_statement_to_explain_is_not_carried_out(service: Service, text: str):
    lab = service.lab
    with pytest.raises(Exception):  # noqa: B017 - ours or Spark's, by the text
        cachemgr.explain(lab.spark, text)
    assert not lab.plain.catalog.tableExists(f"{lab.schema}.evil")
    assert lab.plain.table(f"{lab.schema}.sales").count() == 8


PLACES = (
    "http://127.0.0.1:9/x", "HTTPS://127.0.0.1:9/x", "ftp://127.0.0.1/x", "jar:file:/x!/y",
    "hdfs://127.0.0.1:9/x", "hdfs:///x", "s3a://bucket/x", "gs://bucket/x", "abfss://c@a/x",
    "nosuch://x/y", "relative/x", "/no/such/folder", "/etc/passwd", "file:/etc", " ", "::",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_delta_folder_that_cannot_be_read_is_the_callers_error(service: Service, place: str):
    relation = f"delta.`{place}`"
    refused(
        service.post("/caches", {"ddl": f"CREATE RELATIONAL CACHE c AS SELECT a FROM {relation}"})
    )
    refused(
        service.post("/definitions/apply", service.document(definition=f"SELECT a FROM {relation}"))
    )
    join = (
        f"CREATE RECORD PRESERVING JOIN j AS {relation} s INNER JOIN cust ON s.a = cid PRESERVES s"
    )
    refused(service.post("/joins", {"ddl": join}))
    refused(service.post("/tables/restricted", {"table": relation}))


def test_a_location_through_a_door_lies_below_the_roots(service: Service):
    folder = service.lab.folder
    inside, tables = folder / "caches", folder / "tables"
    for place in (f"{tables}/sales", str(folder), f"{inside}-not", "/tmp/x", "s3a://bucket/x",
                  f"{inside}/../tables", "relative", "http://127.0.0.1:9/x", f"file://{tables}"):  # fmt: skip
        text = f"CREATE RELATIONAL CACHE c LOCATION '{place}' AS SELECT region FROM sales"
        refused(service.post("/caches", {"ddl": text}), "PLACE_NOT_ALLOWED", "PLACE_NOT_SUPPORTED")
        answer = service.post("/definitions/apply", service.document(location=place))
        refused(answer, "PLACE_NOT_ALLOWED", "PLACE_NOT_SUPPORTED")
    own = f"CREATE RELATIONAL CACHE c LOCATION 'file://{inside}/mine' AS SELECT region FROM sales"
    service.host.execute(f"EXPLAIN {own}", "ann")
    assert service.store.caches.all() == ()


def test_a_location_is_no_tables_folder_and_is_spelled_in_one_way(lab):
    definition = "AS SELECT region FROM sales"
    sales = lab.folder / "tables" / "sales"
    lab.cache(f"one LOCATION 'file://{lab.folder}//own/' {definition}")
    with open_metastore(lab.url) as store:
        (one,) = store.caches.all()
    assert one.location == f"file:{lab.folder}/own/{one.id}"
    lab.hit("SELECT region FROM sales")
    lab.cache(f"two LOCATION 'file:{lab.folder}/own' {definition}")
    lab.cache(f"late {definition}", refresh=False)
    with open_metastore(lab.url) as store:
        late = store.caches.named(lab.schema, "late")
    for place in (sales, f"file://{sales}", f"{sales}/deep/er", one.location, f"{one.location}/x",
                  late.location, f"{late.location}/x", f"{lab.folder}/own/_relational_caches"):  # fmt: skip
        with pytest.raises(DefinitionError, match="PLACE_TAKEN"):
            lab.sql(f"CREATE RELATIONAL CACHE c LOCATION '{place}' {definition}")
    (lab.folder / "a file").write_text("x")
    for place in (f"{lab.folder}/a file/below", f"file:{lab.folder}/a file", "/proc/x"):
        with pytest.raises(DefinitionError, match="PLACE_NOT_WRITABLE"):
            lab.sql(f"CREATE RELATIONAL CACHE c LOCATION '{place}' {definition}")
    for place in ("relative/x", "http://127.0.0.1:9/x", "nosuch://x/y", "s3a://bucket/x"):
        with pytest.raises(DefinitionError, match=r"PLACE_NOT_SUPPORTED|TABLE_UNREADABLE"):
            lab.sql(f"CREATE RELATIONAL CACHE c LOCATION '{place}' {definition}")
    with open_metastore(lab.url) as store:
        assert store.caches.named(lab.schema, "c") is None
    assert not list(sales.rglob("_relational_caches"))
    # a table came to lie around a cache since
    lab.cache(f"three LOCATION '{lab.folder}/later' {definition}", refresh=False)
    lab.plain.range(1).write.format("delta").mode("append").save(f"{lab.folder}/later")
    with pytest.raises(RefreshError, match="PLACE_TAKEN"):
        lab.sql("REFRESH RELATIONAL CACHE three")


def test_a_users_own_session_substitutes_once_and_stores_what_it_means(lab):
    with lab.conf(my__region="north"):
        text = (
            "SELECT region, SUM(amt) AS s FROM sales WHERE region = '${my.region}' GROUP BY region"
        )
        lab.cache(f"c AS {text}")
        with open_metastore(lab.url) as store:
            (cache,) = store.caches.all()
        assert "${" not in cache.definition and "'north'" in cache.definition
        assert cachemgr.explain(lab.spark, text).hit
        (line,) = lab.sql(f"EXPLAIN REWRITE FORMAT JSON {text}")
        assert json.loads(line.json)["hit"]
        lab.hit(text)
    with lab.conf(my__region="south"):  # a refresh later never substitutes again
        lab.sql("INSERT INTO sales SELECT * FROM sales WHERE region = 'north'")
        lab.sql("REFRESH RELATIONAL CACHE c FULL")
        lab.hit(text.replace("${my.region}", "north"))
        lab.miss(text)
    with pytest.raises(DefinitionError, match="SUBSTITUTION_REFUSED"):
        lab.sql("CREATE RELATIONAL CACHE d AS SELECT region, '${env:NO_SUCH}' AS v FROM sales")


def test_a_stored_text_from_before_is_not_substituted(lab, spark):
    lab.cache("c AS SELECT region FROM sales WHERE region = 'x{system:user.name}'")
    with open_metastore(lab.url) as store:
        (cache,) = store.caches.all()
        text = cache.definition.replace("x{", "${")
        store.caches.update(cache.id, cache.version, now=store.clock.now(), definition=text)
    lab.sql("REFRESH RELATIONAL CACHE c FULL")
    with open_metastore(lab.url) as store:
        run = store.snapshots.published(cache.id).run
    user = spark._jvm.java.lang.System.getProperty("user.name")
    assert "${system:user.name}" in json.dumps(run.plan) and f'"{user}"' not in json.dumps(run.plan)
