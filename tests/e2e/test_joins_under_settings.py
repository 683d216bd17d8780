# ruff: noqa: E501 - statements read better unbroken
"""A join is validated under the settings that its tables are read under, and serves those who read
under the same ones: days and instants are others in another time zone or calendar."""

from __future__ import annotations

import datetime
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cachemgr.vocabulary import JoinState

ZONE = "spark.sql.session.timeZone"
REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"
ZONELESS = "spark.databricks.delta.write.utcTimestampPartitionValues"


@pytest.fixture
def zones(lab):
    """Instants that are partition values without a zone: each session reads them in its own."""
    lab.spark.conf.set(ZONELESS, "false")
    lab.sql("CREATE TABLE f (r STRING, a TIMESTAMP, v INT) USING delta PARTITIONED BY (a)")
    lab.sql(
        "INSERT INTO f VALUES ('n', TIMESTAMP'2024-01-01 05:00:00', 1), ('s', TIMESTAMP'2024-01-02 05:00:00', 2)"
    )
    lab.sql("CREATE TABLE d (k TIMESTAMP, nm STRING) USING delta")
    lab.sql(
        "INSERT INTO d VALUES (TIMESTAMP'2024-01-01 05:00:00', 'x'), (TIMESTAMP'2024-01-02 05:00:00', 'y')"
    )
    lab.spark.conf.unset(ZONELESS)
    return lab


JOINED = "SELECT r, SUM(v) AS s, COUNT(*) AS n FROM f {} d ON a = k GROUP BY r"
DECLARED = "CREATE RECORD PRESERVING JOIN j AS f {} JOIN d ON f.a = d.k PRESERVES f"
ALONE = "c AS SELECT r, SUM(v) AS s, COUNT(*) AS n FROM f GROUP BY r"
TOGETHER = "c AS SELECT r, nm, SUM(v) AS s, COUNT(*) AS n FROM f JOIN d ON a = k GROUP BY r, nm"


def join_of(lab):
    with lab.metastore() as store:
        return store.joins.all()[0]


def test_a_join_that_does_not_hold_in_this_zone_is_not_created(zones):
    with zones.conf(**{ZONE: "America/New_York"}):
        with pytest.raises(Exception, match=r"2 rows of .* would be lost"):
            zones.sql(DECLARED.format("INNER"))


def test_a_join_of_another_zone_leaves_no_table_out(zones):
    """It holds in UTC, where it was declared; in New York no row finds a partner."""
    zones.sql(DECLARED.format("INNER"))
    assert join_of(zones).validated_under[ZONE] == "UTC"
    zones.cache(ALONE)
    for kind in ("JOIN", "LEFT SEMI JOIN"):
        zones.hit(JOINED.replace("SUM(v) AS s, ", "").format(kind))
    with zones.conf(**{ZONE: "America/New_York"}):
        zones.cache(ALONE.replace("c AS", "there AS"))
        zones.hit("SELECT r, SUM(v) AS s FROM f GROUP BY r")
        zones.miss(JOINED.format("JOIN"), "EXTRA_TABLE_NOT_PRESERVING")
        zones.miss("SELECT r, COUNT(*) AS n FROM f LEFT SEMI JOIN d ON a = k GROUP BY r")
        rows = zones.sql("VALIDATE RECORD PRESERVING JOIN j")
        assert rows[0].state == JoinState.BROKEN.value
        zones.miss(JOINED.format("JOIN"))
    zones.sql("VALIDATE RECORD PRESERVING JOIN j")
    zones.hit(JOINED.format("JOIN"))


def test_a_key_that_is_unique_in_another_zone_multiplies_rows_here(lab):
    lab.spark.conf.set(ZONELESS, "false")
    lab.sql("CREATE TABLE d (k TIMESTAMP, nm STRING) USING delta PARTITIONED BY (k)")
    # New York's clocks skip this hour: both are one instant there
    lab.sql(
        "INSERT INTO d VALUES (TIMESTAMP'2024-03-10 02:30:00', 'x'), (TIMESTAMP'2024-03-10 03:30:00', 'y')"
    )
    lab.spark.conf.unset(ZONELESS)
    lab.sql("CREATE TABLE f (r STRING, a TIMESTAMP, v INT) USING delta")
    lab.sql(
        "INSERT INTO f VALUES ('n', TIMESTAMP'2024-03-10 07:30:00Z', 1), ('s', TIMESTAMP'2024-01-02 05:00:00', 2)"
    )
    lab.sql(DECLARED.format("LEFT"))
    with lab.conf(**{ZONE: "America/New_York"}):
        lab.cache(ALONE)
        lab.miss(JOINED.format("LEFT JOIN"))
        with pytest.raises(Exception, match=r"1 row of .* would be multiplied"):
            lab.sql(DECLARED.format("LEFT").replace("JOIN j AS", "JOIN again AS"))


def test_a_refresh_checks_a_caches_own_joins_under_the_caches_settings(zones):
    zones.sql(DECLARED.format("INNER"))
    zones.cache(TOGETHER)
    zones.hit("SELECT r, COUNT(*) AS n FROM f GROUP BY r")
    with zones.conf(**{ZONE: "America/New_York"}):
        zones.cache(TOGETHER.replace("c AS", "there AS"))
        zones.miss("SELECT r, COUNT(*) AS n FROM f GROUP BY r")
    assert join_of(zones).state is JoinState.BROKEN


def test_a_refresh_of_the_change_alone_does_so_too(zones):
    with zones.conf(**{ZONE: "America/New_York"}):
        # there each finds its partner
        zones.sql("INSERT INTO d SELECT a, 'z' FROM f")
        zones.sql(DECLARED.format("INNER"))
        zones.cache(TOGETHER)
        zones.hit("SELECT r, COUNT(*) AS n FROM f GROUP BY r")
        zones.sql("INSERT INTO f SELECT 'm', k, 7 FROM d")
        zones.sql("REFRESH RELATIONAL CACHE c INCREMENTAL")
        zones.hit("SELECT r, COUNT(*) AS n FROM f GROUP BY r")
        zones.sql("INSERT INTO f VALUES ('m', TIMESTAMP'2025-01-01 00:00:00', 7)")
        zones.sql("REFRESH RELATIONAL CACHE c INCREMENTAL")
        zones.miss("SELECT r, COUNT(*) AS n FROM f GROUP BY r")


def test_a_refresh_follows_no_join_of_other_settings(zones):
    zones.sql(DECLARED.format("INNER"))
    with zones.conf(**{ZONE: "America/New_York"}):
        zones.cache(ALONE)
        zones.sql("INSERT INTO f SELECT 'm', k, 7 FROM d")
        zones.sql("REFRESH RELATIONAL CACHE c")
        assert join_of(zones).validated_under[ZONE] == "UTC"
        zones.miss(JOINED.format("JOIN"))


def test_an_old_calendar_reads_other_days(lab, tmp_path):
    """A foreign writer's file: its days before 1582 are others under LEGACY."""
    place = tmp_path / "days"
    place.mkdir()
    days = [datetime.date(1, 1, 1), datetime.date(2024, 1, 2)]
    pq.write_table(pa.table({"k": days, "nm": ["x", "y"]}), place / "a.parquet")
    lab.plain.sql(f"CONVERT TO DELTA parquet.`{place}`")
    lab.sql(f"CREATE TABLE d USING delta LOCATION '{place}'")
    lab.sql("CREATE TABLE f (r STRING, a DATE, v INT) USING delta")
    lab.sql("INSERT INTO f VALUES ('n', DATE'0001-01-01', 1), ('s', DATE'2024-01-02', 2)")
    lab.sql(DECLARED.format("INNER"))
    lab.cache(ALONE)
    lab.hit(JOINED.format("JOIN"))
    with lab.conf(**{REBASE: "LEGACY"}):
        lab.cache(ALONE.replace("c AS", "there AS"))
        lab.hit("SELECT r, SUM(v) AS s FROM f GROUP BY r")
        lab.miss(JOINED.format("JOIN"))
        assert lab.sql("VALIDATE RECORD PRESERVING JOIN j")[0].state == JoinState.BROKEN.value


def test_a_join_that_an_earlier_release_validated_is_not_relied_on_before_it_is_again(zones):
    zones.sql(DECLARED.format("INNER"))
    zones.cache(ALONE)
    with sqlite3.connect(zones.url.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE record_preserving_joins SET validated_under = NULL")
    zones.cache(ALONE.replace("c AS", "another AS"))
    zones.miss(JOINED.format("JOIN"), "EXTRA_TABLE_NOT_PRESERVING")
    zones.sql("VALIDATE RECORD PRESERVING JOIN j")
    zones.hit(JOINED.format("JOIN"))


def test_values_that_are_spelled_otherwise_are_the_same_settings(zones):
    zones.spark.conf.set("spark.sql.ansi.enabled", "TRUE")
    zones.sql(DECLARED.format("INNER"))
    zones.spark.conf.set("spark.sql.ansi.enabled", "true")
    zones.cache(ALONE)
    zones.hit(JOINED.format("JOIN"))
