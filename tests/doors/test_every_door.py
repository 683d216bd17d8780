"""Each door beside each other one: a cache that one of them makes answers at all, and two of them
carry out each kind of statement, with the same rows."""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import pytest
from pyspark.errors import PySparkException

from cachemgr.ddl import parse
from cachemgr.ddl.statements import (
    AlterAction,
    AlterRelationalCache,
    CreateRelationalCache,
    ExplainRefresh,
    ExplainRewrite,
    RefreshRelationalCache,
    SetFreshness,
    SetRefresh,
    Statement,
)
from cachemgr.metastore import open_metastore
from cachemgr.statements.columns import columns_of
from cachemgr.vocabulary import FreshnessKind, RefreshMode
from scheduler.triggers import Trigger
from tests.doors.each_statement import FORBIDDEN, INSERT, OURS, TEXTS
from tests.doors.spark_server import Server, server, server_conf, spark_home
from tests.processes import SMALL_JVM, Started

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# other tests keep the machine busy
_SECONDS: Final = 240.0
_USER: Final = "ann"
# rows that were computed stand in a plan without the name of their cache
_CONF: Final = {"local_enabled": "false"}
_FAULTS: Final = ("Traceback", "INTERNAL_ERROR", "SIDECAR_LOST")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The Thrift and the Connect server of both tests."""
    folder = tmp_path_factory.mktemp("every-door")
    # joins are nobody's own, so that an unauthenticated client may drop none of them elsewhere
    with server(folder, server_conf(folder, admins="root", ddl="all", **_CONF)) as running:
        yield running


@contextmanager
def _remote(asked: Server) -> Iterator[Any]:
    """A Connect session of its own, of the user that `Server` has for JDBC."""
    from pyspark.sql.connect.session import SparkSession

    url = f"sc://127.0.0.1:{asked.connect}/;user_id={_USER}"
    session = SparkSession.builder.remote(url).create()
    try:
        yield session
    finally:
        session.stop()


# ---- each door beside each


_DOORS: Final = ("python", "thrift", "connect", "spark_sql")
_OFF: Final = "SET spark.cachemgr.enabled=false"
_CACHE: Final = re.compile(r"relational_cache\.(\w+)@v\d+")


def _table(folder: Path, door: str) -> str:
    """Makes the table of a door known in an application, each of which has its own catalog."""
    return f"CREATE TABLE IF NOT EXISTS t_{door} USING delta LOCATION '{folder}/tables/t_{door}'"


def _filled(folder: Path, door: str) -> str:
    """Makes the table of a door, with rows that no other has."""
    return (
        f"{_table(folder, door)} AS SELECT id, id % 7 AS shop, "
        "IF(id % 5 = 0, NULL, DATE'2024-02-27' + CAST(id % 5 AS INT)) AS day, "
        f"CAST(id + {_DOORS.index(door)} AS DECIMAL(10,2)) AS amount FROM range(1000)"
    )


def _makes(door: str) -> list[str]:
    """Make the cache of a door, over the table of this door."""
    select = f"shop, day, SUM(amount) AS amount, COUNT(*) AS n FROM t_{door} GROUP BY shop, day"
    name = f"by_{door}"
    return [
        f"CREATE RELATIONAL CACHE {name} AS SELECT {select}",
        f"REFRESH RELATIONAL CACHE {name}",
    ]


def _query(door: str) -> str:
    """What the cache of a door answers, by a roll-up."""
    return f"SELECT day, SUM(amount), COUNT(*) FROM t_{door} WHERE shop > 2 GROUP BY day"


class _Seen(NamedTuple):
    """What a door has to say of the query of another: which caches its plan names, with caches and
    without them, and the rows in both cases."""

    named: tuple[str, ...]
    rows: list[str]
    named_without: tuple[str, ...]
    rows_without: list[str]


def _named(plan: str) -> tuple[str, ...]:
    return tuple(sorted(set(_CACHE.findall(plan))))


def _rows(found: Sequence[Sequence[object]]) -> list[str]:
    return sorted("\t".join("NULL" if v is None else str(v) for v in row) for row in found)


def _ask(sql: Callable[[str], Sequence[Sequence[object]]]) -> dict[str, _Seen]:
    """Ask for the queries of all doors in a session of one of them."""

    def all_of_them() -> list[tuple[tuple[str, ...], list[str]]]:
        queries = [_query(door) for door in _DOORS]
        return [(_named(str(sql(f"EXPLAIN {q}")[0][0])), _rows(sql(q))) for q in queries]

    with_caches = all_of_them()
    sql(_OFF)
    both = zip(_DOORS, with_caches, all_of_them(), strict=True)
    return {door: _Seen(*on, *off) for door, on, off in both}


def _all_hit(seen: Mapping[str, _Seen]) -> bool:
    return all(seen[door].named == (f"by_{door}",) for door in _DOORS)


# What another process has published is known here after a while: it asks until that is so.
_PROGRAM: Final = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
import cachemgr

given = json.loads(Path(sys.argv[1]).read_text())
builder = SparkSession.builder.master("local[2]")
for key, value in given["conf"].items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
cachemgr.enable(spark)

def answers(queries):
    plans = [spark.sql(f"EXPLAIN {query}").collect()[0][0] for query in queries]
    rows = [[[None if v is None else str(v) for v in row] for row in spark.sql(q).collect()]
            for q in queries]
    return list(zip(plans, rows))

for text in given["texts"]:
    spark.sql(text).collect()
end = time.monotonic() + given["seconds"]
while True:
    found = answers(given["queries"])
    if all(name in plan for name, (plan, _) in zip(given["names"], found)):
        break
    if time.monotonic() > end:
        break
    time.sleep(0.5)
spark.sql(given["off"])
without = answers(given["queries"])
out = Path(given["out"])
out.with_suffix(".part").write_text(json.dumps([found, without]))
out.with_suffix(".part").rename(out)
"""


def _start_program(folder: Path, conf: Mapping[str, str]) -> Started:
    """A Python program with `cachemgr.enable`: it makes its cache, then looks for all four."""
    script, given = folder / "program.py", folder / "program.json"
    script.write_text(_PROGRAM)
    # the extension is for those in which no Python of ours runs
    delta_alone = {**conf, "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}
    told = {
        "conf": delta_alone,
        "texts": [*(_table(folder, door) for door in _DOORS), *_makes("python")],
        "queries": [_query(door) for door in _DOORS],
        "names": [f"relational_cache.by_{door}@v" for door in _DOORS],
        "off": _OFF,
        "seconds": _SECONDS,
        "out": str(folder / "program.out"),
    }
    given.write_text(json.dumps(told))
    command = [sys.executable, str(script), str(given)]
    return Started.run(command, folder / "program.log", folder, {"SPARK_LOCAL_IP": "127.0.0.1"})


def _seen_by_program(folder: Path) -> dict[str, _Seen]:
    both = json.loads((folder / "program.out").read_text())
    on, off = ([(_named(plan), _rows(rows)) for plan, rows in found] for found in both)
    return {door: _Seen(*a, *b) for door, a, b in zip(_DOORS, on, off, strict=True)}


def _start_spark_sql(
    folder: Path, conf: Mapping[str, str], name: str, texts: Sequence[str]
) -> Started:
    """A run of `spark-sql -f`, with the rows in `name.out` and all else in `name.log`."""
    script = folder / f"{name}.sql"
    script.write_text("".join(f"{text};\n" for text in texts))
    pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command = [str(spark_home() / "bin" / "spark-sql"), "--master", "local[2]", *pairs]
    split = ["sh", "-c", f'exec "$0" "$@" > {name}.out', *command, "-f", str(script)]
    environment = {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    return Started.run(split, folder / f"{name}.log", folder, environment)


def _seen_by_spark_sql(folder: Path, conf: Mapping[str, str]) -> dict[str, _Seen]:
    """What a new spark-sql answers."""
    queries = [_query(door) for door in _DOORS]
    asked = [text for q in queries for text in (f"EXPLAIN {q}", q)]
    # a statement is answered once the process beside it is there
    texts = [*(_table(folder, door) for door in _DOORS), "SHOW RELATIONAL CACHES"]
    for text in (*asked, _OFF, *asked):
        texts += [text] if text == _OFF else ["SELECT '####'", text]
    started = _start_spark_sql(folder, conf, "looks", texts)
    _ended_well(started)
    found = (folder / "looks.out").read_text().split("####\n")[1:]
    assert len(found) == 4 * len(_DOORS), found
    found[2 * len(_DOORS) - 1] = found[2 * len(_DOORS) - 1].partition("spark.cachemgr")[0]
    looks = [
        (_named(plan), sorted(line for line in rows.splitlines() if line))
        for plan, rows in zip(found[::2], found[1::2], strict=True)
    ]
    both = zip(_DOORS, looks[: len(_DOORS)], looks[len(_DOORS) :], strict=True)
    return {door: _Seen(*on, *off) for door, on, off in both}


def test_a_cache_of_each_door_answers_at_each_door(made: Server) -> None:
    folder, conf = made.folder, server_conf(made.folder, **_CONF)
    made.sql(*(_filled(folder, door) for door in _DOORS))
    with ExitStack() as stack:
        program = _start_program(folder, conf)
        stack.callback(program.kill)
        tables = [_table(folder, door) for door in _DOORS]
        shell = _start_spark_sql(folder, conf, "makes", [*tables, *_makes("spark_sql")])
        stack.callback(shell.kill)
        made.sql(*_makes("thrift"))
        with _remote(made) as session:
            for text in _makes("connect"):
                session.sql(text).collect()
        _ended_well(shell)
        looks: dict[str, Callable[[], dict[str, _Seen]]] = {
            "thrift": lambda: _seen_by_jdbc(made),
            "connect": lambda: _seen_by_connect(made),
            "spark_sql": lambda: _seen_by_spark_sql(folder, conf),
        }
        with ThreadPoolExecutor(len(looks)) as pool:
            asked = {door: pool.submit(_once_all_hit, look) for door, look in looks.items()}
        seen = {door: future.result() for door, future in asked.items()}
        _ended_well(program)
        seen["python"] = _seen_by_program(folder)
    pairs = [(by, at) for by in _DOORS for at in _DOORS]
    # of each pair: who has made the cache, and who asks
    assert {(by, at): seen[at][by].named for by, at in pairs} == {
        (by, at): (f"by_{by}",) for by, at in pairs
    }
    assert {(by, at): seen[at][by].named_without for by, at in pairs} == dict.fromkeys(pairs, ())
    rows = {(by, at): seen[at][by].rows for by, at in pairs}
    assert rows == {(by, at): seen[at][by].rows_without for by, at in pairs}
    assert rows == {(by, at): _expected(by) for by, at in pairs}
    logs = {path.name: path.read_text(errors="replace") for path in folder.glob("*.log")}
    assert [(name, word) for name in logs for word in _FAULTS if word in logs[name]] == []


def _once_all_hit(look: Callable[[], dict[str, _Seen]]) -> dict[str, _Seen]:
    """What a door sees, as soon as all caches answer, else at the end of the time that there is."""
    end = time.monotonic() + _SECONDS
    while not _all_hit(seen := look()) and time.monotonic() < end:
        time.sleep(0.5)
    return seen


def _ended_well(started: Started) -> None:
    try:
        assert started.process.wait(2 * _SECONDS) == 0, started.text()[-4000:]
    finally:
        started.kill()


def _seen_by_jdbc(asked: Server) -> dict[str, _Seen]:
    with asked.session(_USER) as cursor:
        return _ask(lambda text: _fetched(cursor, text))


def _seen_by_connect(asked: Server) -> dict[str, _Seen]:
    with _remote(asked) as session:
        return _ask(lambda text: session.sql(text).collect())


def _fetched(cursor: Any, text: str) -> list[tuple[object, ...]]:
    cursor.execute(text)
    return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


def _expected(door: str) -> list[str]:
    """The rows of a door's query, by Python."""
    more, days = _DOORS.index(door), ("NULL", *(f"2024-02-{28 + i}" for i in range(2)))
    names = (*days, "2024-03-01", "2024-03-02")
    ids = {day: [i for i in range(1000) if i % 5 == n and i % 7 > 2] for n, day in enumerate(names)}
    return sorted(f"{d}\t{sum(i + more for i in of)}.00\t{len(of)}" for d, of in ids.items())


# ---- each statement


class _Answer(NamedTuple):
    """What a statement was answered: columns and rows, or the condition of an error."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    error: str = ""
    types: tuple[str, ...] = ()  # beeline does not say


# Beeline writes this where it asks for no more input.
_PROMPT: Final = re.compile(r"(?:\rnull *)+")
_CONDITION: Final = re.compile(r"^Error: .*?\[([A-Z_]+)\]", re.MULTILINE)
_MARK: Final = "####"
_OF_ONE_RUN: Final = {
    re.compile(r"at_(beeline|connect)"): "SCHEMA",
    re.compile(r"\b([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"): "ID",
    re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[0-9.:+]*"): "TIME",
    re.compile(r"\b\d+(\.\d+)?( s\b| bytes\b|%)"): "SO MUCH",
    re.compile(r"\bcost(\": | )\d+(\.\d+)?"): "COST",
}


def test_each_statement_is_carried_out_by_beeline_and_through_connect(made: Server) -> None:
    _no_kind_is_left_out()
    for schema in ("at_beeline", "at_connect"):
        made.sql(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.sales USING delta AS "
            "SELECT id, id % 7 AS shop, id % 3 AS kind, id * 2 AS amount FROM range(1000)",
            f"CREATE TABLE {schema}.shops USING delta AS SELECT id FROM range(7)",
        )
    with open_metastore(f"sqlite:///{made.folder}/metastore.db") as store:
        store.tables.restrict("hr.salaries", "file:/data/hr/salaries", "0" * 32, by="root")
    by_beeline, by_connect = _by_beeline(made, "at_beeline"), _by_connect(made, "at_connect")
    refused = {text: "FORBIDDEN" if text in FORBIDDEN else "" for text in TEXTS}
    for answers in (by_beeline, by_connect):
        told = [(text, answer.error) for text, answer in zip(TEXTS, answers, strict=True)]
        assert told == [(text, refused[text]) for text in TEXTS]
    for text, one, other in zip(TEXTS, by_beeline, by_connect, strict=True):
        if text == INSERT or text in FORBIDDEN:
            continue
        columns = columns_of(parse(text)).columns
        assert one.columns == other.columns == tuple(name for name, _ in columns), text
        assert other.types == tuple(kind for _, kind in columns), text
        assert _of_any_run(one) == _of_any_run(other), text


def _no_kind_is_left_out() -> None:
    """`TEXTS` are of all kinds that there are, in all forms that are data."""
    parsed = [parse(text) for text in OURS]
    assert {type(each) for each in parsed} == set(get_args(Statement))
    actions = [each.action for each in parsed if isinstance(each, AlterRelationalCache)]
    assert {type(action) for action in actions} == set(get_args(AlterAction))
    created = [each for each in parsed if isinstance(each, CreateRelationalCache)]
    policies = [each.spec.refresh for each in created]
    policies += [action.refresh for action in actions if isinstance(action, SetRefresh)]
    assert {type(policy.trigger) for policy in policies} == set(get_args(Trigger))
    assert {policy.mode for policy in policies} == set(RefreshMode)
    assert {each.spec.freshness.kind for each in created} == set(FreshnessKind)
    promised = [action.freshness for action in actions if isinstance(action, SetFreshness)]
    assert {freshness.kind for freshness in promised} == set(FreshnessKind)
    refreshed = {each.mode for each in parsed if isinstance(each, RefreshRelationalCache)}
    assert refreshed == {None, *RefreshMode}
    explained = {each.mode for each in parsed if isinstance(each, ExplainRefresh)}
    assert explained == {None, RefreshMode.FULL, RefreshMode.INCREMENTAL}
    rewritten = {each.format_json for each in parsed if isinstance(each, ExplainRewrite)}
    assert rewritten == {False, True}


def _by_beeline(asked: Server, schema: str) -> list[_Answer]:
    """The answers of all texts, in one session of beeline that goes on after an error."""
    script, out = asked.folder / "each.sql", asked.folder / "each.out"
    texts = [f"USE {schema}"]
    for text in TEXTS:
        texts += [f"SELECT '{_MARK}' AS mark", text]
    script.write_text("".join(f"{text};\n" for text in texts))
    url = f"jdbc:hive2://127.0.0.1:{asked.thrift}/"
    command = [str(spark_home() / "bin" / "beeline"), "-u", url, "-n", _USER, "--silent=true"]
    command += ["--force=true", "--outputformat=csv2", "-f", str(script)]
    environment = {
        "SPARK_HOME": str(spark_home()),
        "SPARK_BEELINE_OPTS": f"{SMALL_JVM} -Ddisable.quoting.for.sv=false",
    }
    split = ["sh", "-c", f'exec "$0" "$@" > {out}', *command]
    started = Started.run(split, asked.folder / "each.log", asked.folder, environment)
    try:
        started.process.wait(_SECONDS)
    finally:
        started.kill()
    conditions = iter(_CONDITION.findall(started.text()))
    told = _PROMPT.sub("", out.read_bytes().decode())
    parts = told.split(f"mark\n{_MARK}\n")[1:]
    assert len(parts) == len(TEXTS), started.text()[-4000:] + told
    answers = [
        _of_csv(part) if part.strip() else _Answer(error=next(conditions, "none")) for part in parts
    ]
    assert list(conditions) == []
    return answers


def _of_csv(part: str) -> _Answer:
    columns, *rows = (tuple(row) for row in csv.reader(part.splitlines()) if row)
    return _Answer(columns, tuple(rows))


def _by_connect(asked: Server, schema: str) -> list[_Answer]:
    """The answers of all texts in one session of Connect."""
    with _remote(asked) as session:
        session.sql(f"USE {schema}")
        return [_by_session(session, text) for text in TEXTS]


def _by_session(session: Any, text: str) -> _Answer:
    try:
        frame = session.sql(text)
        found = frame.collect()
    except PySparkException as error:
        return _Answer(error=error.getCondition() or str(error))
    rows = tuple(tuple(_as_by_beeline(value) for value in row) for row in found)
    return _Answer(tuple(frame.columns), rows, types=tuple(kind for _, kind in frame.dtypes))


def _as_by_beeline(value: object) -> str:
    """A value as beeline shows it, which takes the ends of lines out of its CSV."""
    return "NULL" if value is None else str(value).replace("\n", "")


def _of_any_run(answer: _Answer) -> list[dict[str, str]]:
    """The rows without what differs from run to run."""
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    for row in rows:
        for column, value in row.items():
            for pattern, name in _OF_ONE_RUN.items():
                value = pattern.sub(name, value)
            # how well the files are compressed depends on the order of their rows
            known = value == "NULL" or column not in ("seconds", "bytes")
            row[column] = value if known else f"some {column}"
    return rows
