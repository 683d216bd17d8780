# ruff: noqa: E501 - tables of SQL read better unbroken
"""One small star in real Delta tables, one session with relational caches, one without."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal

import cachemgr
from cachemgr.jvm.classes import class_on_path
from cachemgr.metastore import open_metastore
from cachemgr.spark import api
from cachemgr.spark.held.tail_pace import USUAL
from tests.worlds.copies import copy_table, warehouse

_numbers = itertools.count(1)

SALES = (
    "CREATE TABLE sales (id BIGINT NOT NULL, day DATE, region STRING, cust INT, amt BIGINT, "
    "cost BIGINT, price DECIMAL(10,2), weight DOUBLE) USING delta"
)
# NULLs in keys and measures, repeated rows, groups without any amount, a customer nobody knows.
SALES_ROWS = """INSERT INTO sales VALUES
 (1, DATE'2024-01-01', 'north', 1, 10, 4, 1.50, 0.1), (2, DATE'2024-01-01', 'north', 1, 10, 4, 1.50, 0.2),
 (3, DATE'2024-01-02', 'north', 2, 30, NULL, 2.25, 0.3), (4, DATE'2024-01-02', 'south', 2, NULL, 7, NULL, NULL),
 (5, DATE'2024-01-03', 'south', 3, NULL, NULL, 9.99, 1e10), (6, DATE'2024-02-01', NULL, 3, 60, 1, 0.01, -1e10),
 (7, NULL, 'west', 1, 70, 2, 3.33, 0.7), (8, DATE'2024-02-02', NULL, 2, NULL, NULL, NULL, NULL)"""
CUST = "CREATE TABLE cust (cid INT NOT NULL, city STRING, nation STRING) USING delta"
CUST_ROWS = "INSERT INTO cust VALUES (1, 'Rome', 'Italy'), (2, 'Oslo', NULL), (3, 'Bari', 'Italy')"
JOIN = "CREATE RECORD PRESERVING JOIN sc AS sales INNER JOIN cust ON cust = cid PRESERVES sales"


@dataclass
class Lab:
    """The session under test, and the same without us."""

    spark: object
    plain: object
    url: str
    schema: str
    folder: object

    @property
    def me(self):
        """Whom the session's grants and refusals are about."""
        return self.spark.sparkContext.sparkUser()

    def sql(self, text, **kwargs):
        """Run in the session with caches; rows."""
        return self.spark.sql(text, **kwargs).collect()

    def metastore(self):
        """The metastore, opened a second time."""
        return open_metastore(self.url)

    def cache(self, text, refresh=True):
        """CREATE (the words before the name left out) and refresh."""
        self.sql(f"CREATE RELATIONAL CACHE {text}")
        if refresh:
            self.sql(f"REFRESH RELATIONAL CACHE {text.split()[0]}")

    def hits(self):
        return cachemgr.counters(self.spark).get("hits", 0)

    def codes(self, query):
        """The reason codes of a miss."""
        return {r.code.value for r in cachemgr.explain(self.spark, query).reasons}

    def check(self, query, hit):
        """The query gives what Spark gives without us, and was a hit or not."""
        ordered = "order by" in str(query).lower()
        before = self.hits()
        got = self.spark.sql(query)
        rows = got.collect()
        was_hit = self.hits() > before
        same(got, rows, self.plain.sql(query), ordered)
        assert was_hit is hit, cachemgr.explain(self.spark, query).text()
        return rows

    def hit(self, query):
        return self.check(query, True)

    def miss(self, query, code=None):
        rows = self.check(query, False)
        if code is not None:
            assert code in self.codes(query), cachemgr.explain(self.spark, query).text()
        return rows

    def caches_alone(self):
        """A context in which no appended rows are read beside caches."""
        return self.conf(spark__cachemgr__freshHits="false")

    @contextlib.contextmanager
    def conf(self, **settings):
        """Settings by keyword, dots as __, in both sessions."""
        keys = {k.replace("__", "."): v for k, v in settings.items()}
        old = {k: self.spark.conf.get(k, None) for k in keys}
        for session in (self.spark, self.plain):
            for key, value in keys.items():
                session.conf.set(key, value)
        try:
            yield
        finally:
            for session in (self.spark, self.plain):
                for key, value in old.items():
                    if value is None:
                        session.conf.unset(key)
                    else:
                        session.conf.set(key, value)


def same(got, rows, expected, ordered):
    """Names, types and rows are equal; in order if that was asked for."""
    assert [(f.name, f.dataType) for f in got.schema] == [
        (f.name, f.dataType) for f in expected.schema
    ]
    wanted = expected.collect()
    if ordered:
        assert list(map(exact, rows)) == list(map(exact, wanted))
    else:
        assert Counter(map(exact, rows)) == Counter(map(exact, wanted))


def exact(row):
    """A row in which 1, 1.0, True and Decimal('1.00') are four things, and NaN is itself."""
    return tuple(
        (type(v).__name__, str(v) if isinstance(v, (float, Decimal)) else repr(v)) for v in row
    )


def make_lab(spark, tmp_path, url, **settings):
    """A lab; settings by keyword, dots as __."""
    schema = f"lab{next(_numbers)}"
    session, plain = spark.newSession(), spark.newSession()
    session.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path / 'tables'}'")
    for each in (session, plain):
        each.sql(f"USE {schema}")
    _copy_tables(plain, schema, tmp_path / "tables")
    session.conf.set("spark.cachemgr.metastore.url", url)
    session.conf.set("spark.cachemgr.location", str(tmp_path / "caches"))
    session.conf.set("spark.cachemgr.mode", "failFast")
    for key, value in settings.items():
        session.conf.set(key.replace("__", "."), value)
    cachemgr.enable(session)
    # What a query reads itself is what most tests are about: none waits for a tail.
    api._of(session).session.application.tails.tempo = replace(USUAL, most=0.0)
    try:
        yield Lab(session, plain, url, schema, tmp_path)
    finally:
        cachemgr.disable(session)
        plain.sql(f"DROP SCHEMA {schema} CASCADE")


def _copy_tables(spark, schema, folder):
    template = warehouse(spark) / f"{_TEMPLATE}.db"
    if not template.exists():
        _make_template(spark.newSession())
    catalog = spark._jsparkSession.sessionState().catalog()
    some = class_on_path(spark._jvm, "scala.Option").apply
    named = class_on_path(spark._jvm, "org.apache.spark.sql.catalyst.TableIdentifier").apply
    uri = class_on_path(spark._jvm, "java.net.URI")
    for name in ("sales", "cust"):
        copy_table(template / name, folder / name)
        table = catalog.getTableMetadata(named(name, some(_TEMPLATE)))
        ours = _changed(
            table,
            identifier=named(name, some(schema)),
            storage=_changed(table.storage(), locationUri=some(uri((folder / name).as_uri()))),
        )
        catalog.createTable(ours, False, False)


_TEMPLATE = "lab_template"


def _make_template(spark):
    spark.sql(f"CREATE SCHEMA {_TEMPLATE}")
    spark.sql(f"USE {_TEMPLATE}")
    for text in (SALES, SALES_ROWS, CUST, CUST_ROWS):
        spark.sql(text)


def _changed(case_class, **fields):
    """A Scala case class with other values in some of its fields."""
    names = [case_class.productElementName(i) for i in range(case_class.productArity())]
    return case_class.copy(
        *(fields.get(name, case_class.productElement(i)) for i, name in enumerate(names))
    )
