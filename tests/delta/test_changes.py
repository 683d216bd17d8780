# ruff: noqa: E501 - tables of SQL read better unbroken
"""What Delta's own statements do to a table's rows, read from its log with Spark and without."""

from __future__ import annotations

import json
import shutil
import time
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta import base_commits, local_log, ranges, tables
from cachemgr.delta.base_columns import changed_columns, kept_columns
from cachemgr.delta.changes import ChangeKind, Changes
from cachemgr.delta.local_log import LocalLog
from cachemgr.delta.ranges import Ranges, changes_between
from cachemgr.delta.tables import commits_of, current_versions, normalise_location, with_columns

pytestmark = pytest.mark.spark
_numbers = count(1)
DV = "'delta.enableDeletionVectors' = 'true'"


class Base:
    """A Delta table with rows 1 to 6 in two files, and its log by both readers."""

    def __init__(
        self,
        spark,
        folder: Path,
        properties: str = "",
        partitioned: str = "",
        like: Path | None = None,
    ) -> None:
        self.spark, self.name = spark, f"changes{next(_numbers)}"
        self.folder = folder / self.name
        with_properties = f"TBLPROPERTIES ({properties})" if properties else ""
        self.create = (
            f"TABLE {self.name} (id BIGINT, v STRING) USING delta {partitioned} "
            f"LOCATION '{self.folder}' {with_properties}"
        )
        if like is None:
            spark.sql(f"CREATE {self.create}")
            for rows in ("(1, 'a'), (2, 'a'), (3, 'a')", "(4, 'b'), (5, 'b'), (6, NULL)"):
                self.insert(rows)
        else:
            shutil.copytree(like, self.folder)
            spark.sql(f"CREATE TABLE {self.name} USING delta LOCATION '{self.folder}'")
        self.location = normalise_location(spark, str(self.folder))
        self.local = LocalLog(self.location)

    def sql(self, text: str) -> None:
        """A statement in which `t` is the table."""
        self.spark.sql(text.replace(" t ", f" {self.name} "))

    def insert(self, rows: str) -> None:
        """Rows in one file."""
        columns = (
            "t.*"
            if rows.startswith("TABLE")
            else "CAST(id AS BIGINT) AS id, CAST(v AS STRING) AS v"
        )
        text = f"INSERT INTO {self.name} SELECT /*+ COALESCE(1) */ {columns} FROM VALUES {rows} AS t(id, v)"
        self.spark.sql(text)

    def now(self) -> TableAt:
        found = current_versions(self.spark, {self.location: self.name})[self.location]
        assert isinstance(found, TableAt)
        return with_columns(self.spark, found)

    def changes(self, since: BaseState) -> Changes:
        """The same by both readers."""
        table = self.now()
        mine = commits_of(self.spark, table, since.version)
        assert mine == self.local.commits(table, since.version)
        for one, other in zip(
            mine.commits, self.local.commits(table, since.version).commits, strict=True
        ):
            told = [
                [(a.file.partition, a.file.bounds) for a in c.added + c.removed]
                for c in (one, other)
            ]
            assert told[0] == told[1]
        found = changes_between(table, since, partial(commits_of, self.spark))
        assert found == changes_between(table, since, self.local.commits)
        return found

    def rows(self, version: int | None = None):
        at = "" if version is None else f"VERSION AS OF {version}"
        return sorted(
            map(tuple, self.spark.sql(f"SELECT id, v FROM {self.name} {at}").collect()), key=str
        )


@pytest.fixture(scope="module")
def templates(spark, tmp_path_factory):
    """Tables to copy, by their properties: made once, since each takes three commits."""
    folder = tmp_path_factory.mktemp("templates")
    found: dict[tuple[str, str], Base] = {}

    def like(properties: str, partitioned: str) -> Path:
        key = (properties, partitioned)
        if key not in found:
            found[key] = Base(spark, folder, properties, partitioned)
        return found[key].folder

    yield like
    for one in found.values():
        spark.sql(f"DROP TABLE {one.name}")


@pytest.fixture
def base(spark, tmp_path, templates):
    made: list[Base] = []

    def make(properties: str = "", partitioned: str = "") -> Base:
        like = templates(properties, partitioned)
        made.append(Base(spark, tmp_path, properties, partitioned, like))
        return made[-1]

    key = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    spark.conf.set(key, "2")  # VACUUM would run ten thousand tasks
    yield make
    spark.conf.unset(key)
    for one in made:
        spark.sql(f"DROP TABLE IF EXISTS {one.name}")


def forget_logs(spark) -> None:
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


SAME_STATE = {
    "OPTIMIZE": ["OPTIMIZE t "],
    "VACUUM": ["DELETE FROM t WHERE id = 99", "VACUUM t "],
    "SET TBLPROPERTIES": ["ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')"],
    "COMMENT": ["COMMENT ON TABLE t IS 'rows'", "ALTER TABLE t ALTER COLUMN v COMMENT 'a letter'"],
    "ADD COLUMN": ["ALTER TABLE t ADD COLUMN w INT"],
    "column mapping switched on": ["ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"],
    "protocol upgrade": ["ALTER TABLE t SET TBLPROPERTIES ('delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '7')"],
    "row tracking": ["ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"],
    "in-commit timestamps": ["ALTER TABLE t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"],
    "RESTORE to the same state": ["OPTIMIZE t ", "RESTORE TABLE t TO VERSION AS OF 2"],
    "DELETE and RESTORE": ["DELETE FROM t WHERE id < 5", "RESTORE TABLE t TO VERSION AS OF 2"],
    "nothing to update": ["UPDATE t SET v = 'x' WHERE id = 99"],
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_STATE)
def test_no_row_changes_by(base, name):
    table = base(DV)
    before, rows, columns = (
        table.now(),
        table.rows(),
        kept_columns(table.now().columns, {"id", "v"}),
    )
    for text in SAME_STATE[name]:
        table.sql(text + " ")
    found = table.changes(before.state)
    assert found.kind is ChangeKind.SAME and found.first_change_ms is None
    assert not changed_columns(columns, table.now().columns)
    assert table.rows() == rows
    assert found.commits == table.now().version - before.version
    assert found.commits or name == "nothing to update"


MERGED = "MERGE INTO t USING (SELECT 7L AS id, 'm' AS v) s ON t.id = s.id"
REMOVED = {
    "delete by vector": ["DELETE FROM t WHERE id = 2"],
    "update": ["UPDATE t SET v = 'x' WHERE id = 2"],
    "overwrite of identical data": ["INSERT OVERWRITE t SELECT * FROM t "],
    "TRUNCATE": ["TRUNCATE TABLE t "],
    "delete of what OPTIMIZE made": ["OPTIMIZE t ", "DELETE FROM t WHERE id = 2"],
}  # fmt: skip


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("name", REMOVED)
def test_rows_go_by(base, name, vectors):
    table = base(DV if vectors else "")
    before = table.now()
    for text in REMOVED[name]:
        table.sql(text + " ")
    found = table.changes(before.state)
    assert (found.kind, found.code) == (ChangeKind.SIGNED, "ROWS_REMOVED")
    gone = [file.rows for file in found.removed]
    if None not in gone:  # where Delta read the file, it leaves out what it held
        assert found.rows_added - sum(gone) == len(table.rows()) - 6
    assert found.bytes_removed > 0


def test_what_is_read_of_a_change_data_feed(base):
    """Change rows where a commit has some, else what came and went; nothing where the range may
    have switched the feed on or off."""
    table = base(f"{DV}, 'delta.enableChangeDataFeed' = 'true'")
    before = table.now()
    table.sql("UPDATE t SET v = 'x' WHERE id = 2")
    table.insert("(7, 'n')")
    found = table.changes(before.state)
    written = {
        str(p.relative_to(table.folder)) for p in table.folder.glob("_change_data/*.parquet")
    }
    came = [file.path for file in found.added]
    assert {file.path for file in found.change_rows} == written | {came[-1]}
    assert found.bytes_by_feed == sum(file.bytes for file in found.change_rows) > 0
    assert table.changes(table.now().state).change_rows is None, "nothing changed"
    table.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
    assert table.changes(before.state).change_rows is None


def test_rows_alone_come_by_a_merge_that_inserts(base):
    """Its commit says that it is no blind append."""
    table = base(DV)
    before = table.now()
    table.sql(MERGED.replace("t.id", f"{table.name}.id") + " WHEN NOT MATCHED THEN INSERT *")
    found = table.changes(before.state)
    assert (found.kind, found.code, found.rows_added) == (ChangeKind.APPENDS, None, 1)
    table.sql(MERGED.replace("t.id", f"{table.name}.id") + " WHEN MATCHED THEN UPDATE SET v = 'n'")
    # a vector over the row that came: together they add a row
    both = table.changes(before.state)
    assert (both.kind, both.rows_added) == (ChangeKind.APPENDS, 1)


def test_an_append_whose_file_gets_a_vector(base):
    table = base(DV)
    before = table.now()
    table.insert("(7, 'n'), (8, 'n'), (9, 'n')")
    table.sql("DELETE FROM t WHERE id = 8")
    found = table.changes(before.state)
    assert (found.kind, found.code, found.rows_added) == (ChangeKind.APPENDS, None, 2)
    [file] = found.added
    assert file.vector[:1] == "u" and "@" in file.vector
    state = table.spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        table.spark._jsparkSession, str(table.folder)
    ).unsafeVolatileSnapshot()
    live = {
        f.path(): f.getDeletionVectorUniqueId()
        for f in state.allFilesViaStateReconstruction().collect()
    }
    assert live[file.path].get() == file.vector, "as Delta itself spells it"
    assert "2 commits appended 2 rows in 1 file" in str(found.detail)


def test_an_append_that_is_compacted(base):
    table = base()
    before = table.now()
    table.insert("(7, 'n'), (8, 'n')")
    [file] = table.changes(before.state).added
    table.sql("OPTIMIZE t ")
    found = table.changes(before.state)
    assert (found.kind, found.code) == (ChangeKind.APPENDS, "RANGE_REWRITTEN")
    assert found.added == (file,) and found.rows_added == 2
    assert table.changes(table.now().state).kind is ChangeKind.SAME


def test_bounds_of_whole_numbers_in_appended_files(base):
    table = base("'delta.columnMapping.mode' = 'name'")
    before = table.now()
    table.sql(
        "ALTER TABLE t ADD COLUMNS (n INT, f DOUBLE, d DECIMAL(5,0), s STRUCT<a: INT>, b BOOLEAN)"
    )
    values = "1, 2.0, 3, named_struct('a', 4), true"
    table.sql(f"INSERT INTO t VALUES (-7, 'x', {values}), (9223372036854775807, 'y', {values})")
    table.sql("INSERT INTO t SELECT NULL, '5', NULL, NULL, NULL, NULL, NULL")
    names = {
        f["name"]: f["metadata"]["delta.columnMapping.physicalName"].lower()
        for f in json.loads(table.now().columns)["fields"]
    }
    found = table.changes(before.state)
    assert found.bounds_added(names["id"]) == (-7, 9223372036854775807)
    assert found.bounds_added(names["n"]) == (0, 1)
    assert found.bounds_added(names["v"]) is None and found.bounds_added(names["f"]) is None
    assert found.bounds_added("id") == (
        found.bounds_added(names["id"]) if names["id"] == "id" else None
    )


def test_partition_values_and_files_with_odd_names(base):
    table = base(partitioned="PARTITIONED BY (v)")
    before = table.now()
    table.insert("(7, 'a b%c=ü'), (8, NULL)")
    found = table.changes(before.state)
    assert {f.partition["v"] for f in found.added} == {"a b%c=ü", None}
    table.sql("DELETE FROM t WHERE v = 'b'")
    assert table.changes(before.state).kind is ChangeKind.SIGNED


def test_a_log_that_was_cleaned_up(base, spark):
    table = base()
    before = table.now()
    table.insert("(7, 'n')")
    kept = table.now()
    table.insert("(8, 'n')")
    table.rows()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        spark._jsparkSession, str(table.folder)
    ).checkpoint()
    log = table.folder / "_delta_log"
    for version in range(before.version, kept.version + 1):
        (log / f"{version:020d}.json").unlink()
    forget_logs(spark)
    found = table.changes(before.state)
    assert (found.kind, found.code) == (ChangeKind.UNKNOWN, "LOG_CLEANED")
    assert found.first_change_ms == 0 and str(kept.version) in str(found.detail)
    # that the commit of the state itself is gone makes no other history
    assert table.changes(kept.state).kind is ChangeKind.APPENDS


@pytest.mark.parametrize("timed", ["by the file", "in the commit"])
def test_a_folder_that_was_put_back_from_a_copy(base, spark, tmp_path, timed):
    table = base("'delta.enableInCommitTimestamps' = 'true'" if timed == "in the commit" else "")
    shutil.copytree(table.folder, tmp_path / "copy")
    table.insert("(7, 'lost')")
    lost = table.now()
    shutil.rmtree(table.folder)
    shutil.copytree(tmp_path / "copy", table.folder)
    forget_logs(spark)
    for read in (partial(commits_of, spark), table.local.commits):
        behind = changes_between(table.now(), lost.state, read)
        assert behind.code == "HISTORY_REWRITTEN", "the table is before that version now"
    table.insert("(7, 'other')")
    assert table.now().version == lost.version
    assert table.changes(lost.state).code == "HISTORY_REWRITTEN"
    table.insert("(8, 'more')")
    found = table.changes(lost.state)
    assert (found.kind, found.code) == (ChangeKind.UNKNOWN, "HISTORY_REWRITTEN")


def test_a_table_created_again_in_its_place(base):
    table = base()
    before = table.now()
    table.spark.sql(f"CREATE OR REPLACE {table.create}")
    table.insert("(1, 'a'), (2, 'a'), (3, 'a')")
    found = table.changes(before.state)
    assert (found.kind, found.code) == (ChangeKind.UNKNOWN, "TABLE_RECREATED")


def test_more_commits_than_are_read(base):
    table = base()
    before = table.now()
    for number in range(3):
        table.sql(f"ALTER TABLE t SET TBLPROPERTIES ('a' = '{number}')")

    def never(table, version):
        raise AssertionError("nothing is read")

    found = changes_between(table.now(), before.state, never, most_commits=2)
    assert (found.kind, found.code, found.commits) == (ChangeKind.UNKNOWN, "TOO_FAR_BEHIND", 3)
    read = partial(commits_of, table.spark)
    assert changes_between(table.now(), before.state, read, most_commits=3).kind is ChangeKind.SAME


def test_a_log_that_is_larger_than_is_held(base, monkeypatch):
    table = base()
    before = table.now()
    table.insert("(7, 'n')")
    for module in (base_commits, local_log, tables):
        monkeypatch.setattr(module, "MOST_BYTES", 100)
    found = table.changes(before.state)
    assert (found.kind, found.code) == (ChangeKind.UNKNOWN, "TOO_FAR_BEHIND")


def test_actions_that_nobody_knows(base, spark):
    table = base()
    before = table.now()
    actions = [
        {"commitInfo": {"operation": "x"}},
        {"rowFilter": {"v": "a"}},
        {"txn": {"appId": "a", "version": 1}},
    ]
    path = table.folder / "_delta_log" / f"{before.version + 1:020d}.json"
    path.write_text("".join(json.dumps(a) + "\n" for a in actions))
    found = changes_between(
        TableAt("t", before.location, before.table_id, before.version + 1, 0),
        before.state,
        table.local.commits,
    )
    assert (found.kind, found.code) == (
        ChangeKind.UNKNOWN,
        "UNKNOWN_ACTION",
    ) and "rowFilter" in str(found.detail)


def test_a_log_that_cannot_be_read_is_no_answer(base, tmp_path):
    table = base()
    now = table.now()
    ahead = TableAt("t", now.location, now.table_id, now.version + 1, 0, "txn:x")
    for read in (partial(commits_of, table.spark), LocalLog(f"file:{tmp_path}/nowhere").commits):
        found = changes_between(ahead, now.state, read)
        assert found.kind is ChangeKind.UNKNOWN and found.code in ("LOG_UNREADABLE", "LOG_CLEANED")
    newest = max((table.folder / "_delta_log").glob("*.json"))
    newest.write_text("{no json")
    since = BaseState(now.table_id, now.version - 1, "", now.timestamp_ms)
    assert table.local.commits(now, since.version).refused == "LOG_UNREADABLE"


def test_when_the_first_row_changed(base):
    table = base()
    before = table.now()
    table.sql("OPTIMIZE t ")
    time.sleep(0.02)
    table.insert("(7, 'n')")
    first = table.now().timestamp_ms
    time.sleep(0.02)
    table.insert("(8, 'n')")
    assert table.changes(before.state).first_change_ms == first


def test_a_range_is_read_once_and_extended_by_what_came_after(base):
    table = base()
    before = table.now()
    asked: list[tuple[int, int]] = []

    def read(at, version):
        asked.append((version, at.version))
        return commits_of(table.spark, at, version)

    known = Ranges(read)
    for number in range(3):
        table.insert(f"({10 + number}, 'n')")
        now = table.now()
        for _ in range(2):
            assert known.changes(now, before.state).rows_added == number + 1
    start = before.version
    assert asked == [(start, start + 1), (start + 1, start + 2), (start + 2, start + 3)]
    # an older look is still known, and the newest one is gone on from
    table.sql("DELETE FROM t WHERE id = 10")
    assert known.changes(table.now(), before.state).rows_added == 2
    assert asked[-1] == (start + 3, start + 4)


def test_a_known_range_of_a_lost_history_is_not_extended(base, spark, tmp_path):
    table = base()
    before = table.now()
    known = Ranges(partial(commits_of, table.spark))
    shutil.copytree(table.folder, tmp_path / "copy")
    table.insert("(7, 'lost'), (8, 'lost')")
    assert known.changes(table.now(), before.state).rows_added == 2
    shutil.rmtree(table.folder)
    shutil.copytree(tmp_path / "copy", table.folder)
    forget_logs(spark)
    table.insert("(7, 'found')")
    table.insert("(8, 'found')")
    found = known.changes(table.now(), before.state)
    assert found.rows_added == 2 and len(found.added) == 2
    assert found == changes_between(table.now(), before.state, table.local.commits)


def test_a_state_without_a_commit_of_its_own_is_not_remembered(base):
    """As of a version that a query itself asks for: the number may stand for another one later."""
    table = base()
    before = table.now()
    table.insert("(7, 'n')")
    asked = []

    def read(at, version):
        asked.append(version)
        return commits_of(table.spark, at, version)

    known, now = Ranges(read), table.now()
    nameless = TableAt(now.name, now.location, now.table_id, now.version, None)
    for _ in range(2):
        assert known.changes(nameless, before.state).rows_added == 1
    assert len(asked) == 2


def test_an_unreadable_range_is_asked_for_again(base):
    table = base()
    before = table.now()
    table.insert("(7, 'n')")
    answers = iter(
        [base_commits.unreadable("away"), commits_of(table.spark, table.now(), before.version)]
    )
    known = ranges.Ranges(lambda at, version: next(answers))
    assert known.changes(table.now(), before.state).code == "LOG_UNREADABLE"
    assert known.changes(table.now(), before.state).kind is ChangeKind.APPENDS
    assert known.changes(table.now(), before.state).kind is ChangeKind.APPENDS


def test_a_log_that_moves_while_it_is_read_is_not_believed(base):
    table = base()
    before = table.now()
    table.insert("(7, 'n')")
    now = table.now()
    other = TableAt(
        now.name, now.location, now.table_id, now.version, now.timestamp_ms, "txn:another"
    )
    assert changes_between(other, before.state, table.local.commits).code == "LOG_UNREADABLE"
