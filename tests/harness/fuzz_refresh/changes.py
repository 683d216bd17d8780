"""What may happen to the base tables, drawn at random as statements."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.harness.fuzz_refresh.layouts import CATS, DAYS, FACT, KEYS, Layout, create, insert
from tests.harness.fuzz_refresh.steps import Change

# (kind, statements), or None where the tables are not made for it
Drawn = tuple[str, tuple[str, ...]] | None
Draws = Callable[["Scene", str], Drawn]


@dataclass
class Scene:
    """What a change is drawn from.

    Args:
        rng: The source of chance.
        layout: How the tables were made.
        columns: The columns that a table has now, with their types.
        wild: NULL keys, keys of no dimension and extreme values may come.
        number: The last row number given.
        undo: What puts a table right again, done a few steps later: (steps to wait, change).
    """

    rng: random.Random
    layout: Layout
    columns: Callable[[str], Mapping[str, str]]
    wild: bool
    number: int = 1000
    undo: list[tuple[int, Change]] = field(default_factory=list)

    def numbers(self, most: int) -> range:
        """Numbers for new rows."""
        first = self.number + 1
        self.number += self.rng.randrange(1, most + 1)
        return range(first, self.number + 1)

    def rows(self, most: int) -> str:
        """An INSERT of new rows of the fact."""
        columns = self.columns(FACT)
        return insert(self.rng, FACT, columns, self.numbers(most), wild=self.wild)

    @property
    def mapped(self) -> bool:
        """Whether the fact's columns may be renamed and dropped."""
        return "delta.columnMapping.mode" in self.layout.properties


def draw(scene: Scene, among: Mapping[Draws, int] | None = None) -> Change | None:
    """A random change; None if what was drawn does not suit these tables.

    Args:
        scene: What it is drawn from.
        among: Kinds of changes with their weights; None for all of them.
    """
    kinds, weights = zip(*(among or _CHANGES).items(), strict=True)
    drawn = scene.rng.choices(kinds, weights)[0]
    if drawn in DIMENSIONS:
        table = scene.rng.choice(scene.layout.dims)
        found = drawn(scene, table)
    else:
        table, found = FACT, drawn(scene, FACT)
    if found is None or not scene.columns(table):
        return None
    return Change(found[0], table, found[1], scene.rng.random() < 0.3)


# -- rows of the fact --------------------------------------------------------------------------


def _append(scene: Scene, table: str) -> Drawn:
    return "append", (scene.rows(8),)


def _append_many(scene: Scene, table: str) -> Drawn:
    return "append", tuple(scene.rows(3) for _ in range(scene.rng.randrange(2, 5)))


def _append_strays(scene: Scene, table: str) -> Drawn:
    """A row that does not find its own in a dimension; some steps later it is deleted."""
    if not {"shop", "item", "cat", "qty", "amt"} <= scene.columns(FACT).keys():
        return None
    number = scene.numbers(1)[0]
    keys = {"shop": "1", "item": "1", scene.rng.choice(("shop", "item")): "99"}
    if scene.rng.random() < 0.3:
        keys = {column: "NULL" if key == "99" else key for column, key in keys.items()}
    undo = Change("delete of strays", FACT, (f"DELETE FROM {FACT} WHERE id = {number}",))
    scene.undo.append((scene.rng.randrange(1, 3), undo))
    return "append of a stray key", (
        f"INSERT INTO {FACT} (id, cat, shop, item, qty, amt) VALUES "
        f"({number}, '{scene.rng.choice(CATS)}', {keys['shop']}, {keys['item']}, 4, 7)",
    )


def _append_nothing(scene: Scene, table: str) -> Drawn:
    return "append nothing", (f"INSERT INTO {FACT} SELECT * FROM {FACT} WHERE id < -1",)


def _append_copies(scene: Scene, table: str) -> Drawn:
    return "append", (f"INSERT INTO {FACT} SELECT * FROM {FACT} WHERE id % 7 = 1",)


def _set(scene: Scene) -> str:
    columns = scene.columns(FACT)
    wanted = scene.rng.choice((
        ("qty", "qty % 50 + 1"), ("amt", "amt % 1000 - 3"), ("price", "price % 100"),
        ("cat", "'b'"), ("shop", "shop % 3 + 1"), ("w", "0.5D"), ("qty", "NULL"), ("amt", "NULL"),
        ("price", "NULL"), ("flag", "NOT flag"), ("bits", "bits % 16"), ("item", "1"),
        ("spare", "'u'"),
    ))  # fmt: skip
    return " = ".join(wanted if wanted[0] in columns else ("id", "id + 1000"))


def _some(scene: Scene) -> str:
    return f"id % {scene.rng.randrange(3, 9)} = {scene.rng.randrange(3)}"


def _part(scene: Scene) -> str:
    column = scene.layout.partition or "cat"
    literal = scene.rng.choice(CATS) if column == "cat" else scene.rng.choice(DAYS)
    return f"{column} = '{literal}'"


def _update_scattered(scene: Scene, table: str) -> Drawn:
    return "update, scattered", (f"UPDATE {FACT} SET {_set(scene)} WHERE {_some(scene)}",)


def _update_part(scene: Scene, table: str) -> Drawn:
    return "update of a part", (f"UPDATE {FACT} SET {_set(scene)} WHERE {_part(scene)}",)


def _delete_scattered(scene: Scene, table: str) -> Drawn:
    return "delete, scattered", (f"DELETE FROM {FACT} WHERE {_some(scene)}",)


def _delete_part(scene: Scene, table: str) -> Drawn:
    return "delete of a part", (f"DELETE FROM {FACT} WHERE {_part(scene)}",)


def _delete_all(scene: Scene, table: str) -> Drawn:
    return "delete of all", (f"DELETE FROM {FACT}", scene.rows(8))


def _delete_and_back(scene: Scene, table: str) -> Drawn:
    some = _some(scene)
    return "delete and insert again", (
        f"DELETE FROM {FACT} WHERE {some}",
        f"INSERT INTO {FACT} SELECT * FROM {FACT} VERSION AS OF 1 WHERE {some}",
    )


def _merge(scene: Scene, clauses: str) -> str:
    add = scene.rng.choice((0, 1000, 10_000))
    return (
        f"MERGE INTO {FACT} t USING (SELECT id + {add} AS id, max(cat) AS cat, "
        f"max(qty) % 9 AS qty FROM {FACT} WHERE {_some(scene)} AND id IS NOT NULL GROUP BY id) u "
        f"ON t.id = u.id {clauses}"
    )


def _merge_upsert(scene: Scene, table: str) -> Drawn:
    clauses = (
        "WHEN MATCHED THEN UPDATE SET qty = u.qty "
        "WHEN NOT MATCHED THEN INSERT (id, cat, qty, shop, item) VALUES (u.id, u.cat, u.qty, 1, 1)"
    )
    return "merge, upsert", (_merge(scene, clauses),)


def _merge_insert(scene: Scene, table: str) -> Drawn:
    clauses = (
        "WHEN NOT MATCHED THEN INSERT (id, cat, qty, shop, item) VALUES (u.id, u.cat, 3, 2, 2)"
    )
    return "merge, insert only", (_merge(scene, clauses),)


def _merge_delete(scene: Scene, table: str) -> Drawn:
    clauses = "WHEN MATCHED AND t.qty > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET qty = 5"
    return "merge, delete", (_merge(scene, clauses),)


def _overwrite(scene: Scene, table: str) -> Drawn:
    part = scene.rng.choice((_some(scene), f"NOT ({_some(scene)})"))
    return "overwrite", (
        f"INSERT OVERWRITE {FACT} SELECT * FROM {FACT} WHERE {part}",
        scene.rows(8),
    )


def _overwrite_same(scene: Scene, table: str) -> Drawn:
    return "overwrite by the same", (f"INSERT OVERWRITE {FACT} SELECT * FROM {FACT}",)


def _overwrite_dynamic(scene: Scene, table: str) -> Drawn:
    if not scene.layout.partition:
        return None
    return "overwrite, dynamic", (
        "SET spark.sql.sources.partitionOverwriteMode = dynamic",
        f"INSERT OVERWRITE {FACT} SELECT * FROM {FACT} WHERE {_part(scene)} AND {_some(scene)}",
        "SET spark.sql.sources.partitionOverwriteMode = static",
    )


def _replace_where(scene: Scene, table: str) -> Drawn:
    part = _part(scene)
    return "overwrite, replaceWhere", (
        f"INSERT INTO {FACT} REPLACE WHERE {part} SELECT * FROM {FACT} WHERE {part} AND "
        f"{_some(scene)}",
    )


# -- commits without a change of rows, and of the past -----------------------------------------


def _optimize(scene: Scene, table: str) -> Drawn:
    return "optimize", (f"OPTIMIZE {FACT}",)


def _optimize_part(scene: Scene, table: str) -> Drawn:
    if not scene.layout.partition:
        return None
    return "optimize of a partition", (f"OPTIMIZE {FACT} WHERE {_part(scene)}",)


def _append_and_optimize(scene: Scene, table: str) -> Drawn:
    return "append and optimize", (scene.rows(4), f"OPTIMIZE {FACT}", scene.rows(4))


def _purge(scene: Scene, table: str) -> Drawn:
    return "purge of vectors", (f"REORG TABLE {FACT} APPLY (PURGE)",)


def _vacuum(scene: Scene, table: str) -> Drawn:
    return "vacuum", (f"!vacuum {FACT}",)


def _checkpoint(scene: Scene, table: str) -> Drawn:
    return "checkpoint", (f"!checkpoint {FACT}",)


def _restore(scene: Scene, table: str) -> Drawn:
    version = scene.rng.randrange(1, 12)
    return "restore", (f"RESTORE TABLE {FACT} TO VERSION AS OF {version}",)


def _recreate(scene: Scene, table: str) -> Drawn:
    again = create(scene.layout, FACT)
    return "drop and create", (
        f"DROP TABLE {FACT}", f"!remove {FACT}", again,
        scene.rows(20), scene.rows(9), scene.rows(9),
    )  # fmt: skip


def _replace(scene: Scene, table: str) -> Drawn:
    """What a nightly job does: the same log, another table."""
    again = create(scene.layout, FACT).replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1)
    return "create or replace", (again, scene.rows(20), scene.rows(9))


def _replace_as(scene: Scene, table: str) -> Drawn:
    """What dbt does for each table, by its own rows; some columns may be wider then, or new."""
    change = scene.rng.choice(("the same", "the same", "wider", "more columns", "fewer columns"))
    shown = [_wider(c, t) if change == "wider" else c for c, t in scene.columns(table).items()]
    if change == "more columns":
        scene.number += 1
        shown.append(f"1 AS more{scene.number}")
    if change == "fewer columns":
        shown = [c for c in shown if c not in ("spare", "w")]
    clauses = create(scene.layout, table).partition(") USING delta")[2]
    where = f" WHERE {_some(scene)} OR id IS NULL" if scene.rng.random() < 0.3 else ""
    return f"create or replace as, {change}", (
        f"CREATE OR REPLACE TABLE {table} USING delta{clauses} AS SELECT {', '.join(shown)} "
        f"FROM {table}{where if table == FACT else ''}",
        *([scene.rows(6)] if table == FACT else []),
    )


def _wider(column: str, type_: str) -> str:
    wider = {"INT": "BIGINT", "SMALLINT": "INT", "DECIMAL(10,2)": "DECIMAL(14,2)"}.get(type_)
    return f"CAST({column} AS {wider}) AS {column}" if wider else column


def _copy(scene: Scene, table: str) -> Drawn:
    """A copy is made; some steps later it is put back, and the table goes on from there."""
    back = (f"!put back {FACT}", scene.rows(6), scene.rows(2))
    later = Change("put back from a copy", FACT, back[: scene.rng.randrange(1, 4)])
    scene.undo.append((scene.rng.randrange(2, 6), later))
    return "copy", (f"!copy {FACT}",)


def _put_back_at_once(scene: Scene, table: str) -> Drawn:
    """The same number of commits from a copy on, other rows."""
    return "put back from a copy", (f"!put back {FACT}", scene.rows(3))


# -- columns and properties --------------------------------------------------------------------


def _add_column(scene: Scene, table: str) -> Drawn:
    scene.number += 1
    type_ = scene.rng.choice(("INT", "STRING", "DECIMAL(12,3)"))
    column = f"more{scene.number}"
    return "add column", (f"ALTER TABLE {FACT} ADD COLUMN {column} {type_}",)


def _change_of(column: str, later: str, scene: Scene) -> Drawn:
    if not scene.mapped or column not in scene.columns(FACT):
        return None
    used = "a column that is read" if column != "spare" else "a column"
    rename = f"ALTER TABLE {FACT} RENAME COLUMN "
    undo = Change(f"rename of {used}", FACT, (f"{rename}{later} TO {column}",))
    scene.undo.append((scene.rng.randrange(2, 5), undo))
    return f"rename of {used}", (f"{rename}{column} TO {later}",)


def _rename_unused(scene: Scene, table: str) -> Drawn:
    return _change_of("spare", "spare2", scene)


def _rename_used(scene: Scene, table: str) -> Drawn:
    return _change_of(scene.rng.choice(("amt", "qty", "shop")), "was", scene)


def _drop_column(scene: Scene, table: str) -> Drawn:
    if not scene.mapped or "spare" not in scene.columns(FACT):
        return None
    return "drop of a column", (
        f"ALTER TABLE {FACT} DROP COLUMN spare",
        f"ALTER TABLE {FACT} ADD COLUMN spare STRING",
    )


def _drop_used(scene: Scene, table: str) -> Drawn:
    if not scene.mapped:
        return None
    column, type_ = scene.rng.choice((("flag", "BOOLEAN"), ("qty", "INT"), ("w", "DOUBLE")))
    back = Change("add column", FACT, (f"ALTER TABLE {FACT} ADD COLUMN {column} {type_}",))
    scene.undo.append((scene.rng.randrange(1, 4), back))
    return "drop of a column that is read", (f"ALTER TABLE {FACT} DROP COLUMN {column}",)


def _widen(scene: Scene, table: str) -> Drawn:
    if "delta.enableTypeWidening" not in scene.layout.properties:
        return None
    column, type_ = scene.rng.choice((("tiny", "INT"), ("tiny", "INT"), ("bits", "BIGINT")))
    used = "a column that is read" if column == "bits" else "a column"
    return f"widening of {used}", (f"ALTER TABLE {FACT} ALTER COLUMN {column} TYPE {type_}",)


def _properties(scene: Scene, table: str) -> Drawn:
    value = scene.rng.randrange(1000)
    return "properties", (f"ALTER TABLE {table} SET TBLPROPERTIES ('note' = '{value}')",)


def _comment(scene: Scene, table: str) -> Drawn:
    return "comment", (f"COMMENT ON TABLE {table} IS 'text {scene.rng.randrange(99)}'",)


def _feed(scene: Scene, table: str) -> Drawn:
    on = scene.rng.choice(("true", "false"))
    text = f"ALTER TABLE {FACT} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = '{on}')"
    return "change data feed", (text,)


# -- dimensions --------------------------------------------------------------------------------


def _dim_append(scene: Scene, table: str) -> Drawn:
    first = KEYS[table] + 1 + scene.rng.randrange(6)
    keys = range(first, first + scene.rng.randrange(1, 3))
    return "append", (insert(scene.rng, table, scene.columns(table), keys, wild=False),)


def _dim_append_known(scene: Scene, table: str) -> Drawn:
    key = scene.rng.randrange(1, KEYS[table] + 1)
    keys = range(key, key + 1)
    undo = Change("delete", table, (f"DELETE FROM {table} WHERE k = {key} AND spare IS NULL",))
    scene.undo.append((scene.rng.randrange(2, 6), undo))
    columns = {c: t for c, t in scene.columns(table).items() if c != "spare"}
    return "append of a known key", (insert(scene.rng, table, columns, keys, wild=False),)


def _dim_update(scene: Scene, table: str) -> Drawn:
    column, value = {
        "shops": ("grp", "'south'"), "items": ("label", "'l1'"), "zones": ("title", "'z'"),
        "promos": ("promo", "'p'"),
    }[table]  # fmt: skip
    key = scene.rng.randrange(1, KEYS[table] + 1)
    return "update", (f"UPDATE {table} SET {column} = {value} WHERE k = {key}",)


def _dim_update_unused(scene: Scene, table: str) -> Drawn:
    return "update of a column that is not read", (f"UPDATE {table} SET spare = 'x' WHERE k > 1",)


def _dim_delete(scene: Scene, table: str) -> Drawn:
    key = scene.rng.randrange(1, KEYS[table] + 1)
    columns = scene.columns(table)
    keys = range(key, key + 1)
    undo = Change("append", table, (insert(scene.rng, table, columns, keys, wild=False),))
    scene.undo.append((scene.rng.randrange(1, 6), undo))
    return "delete", (f"DELETE FROM {table} WHERE k = {key}",)


def _dim_overwrite(scene: Scene, table: str) -> Drawn:
    return "overwrite by the same", (f"INSERT OVERWRITE {table} SELECT * FROM {table}",)


def _dim_optimize(scene: Scene, table: str) -> Drawn:
    return "optimize", (f"OPTIMIZE {table}",)


def _dim_replace_as(scene: Scene, table: str) -> Drawn:
    return _replace_as(scene, table)


# Rows of the fact come, go or change, and the table stays what it is: a refresh can go by any of
# them alone.
ROWS: Final[Mapping[Draws, int]] = {
    _append: 4, _append_copies: 1, _update_scattered: 3, _update_part: 2, _delete_scattered: 2,
    _delete_part: 2, _delete_and_back: 2, _merge_upsert: 2, _merge_insert: 2, _merge_delete: 3,
    _overwrite: 2, _overwrite_same: 2, _overwrite_dynamic: 5, _replace_where: 2,
}  # fmt: skip
# Between two of these a query can read what came since a refresh.
GROWTH: Final[Mapping[Draws, int]] = {
    _append: 10, _append_many: 3, _append_copies: 2, _merge_insert: 6, _append_nothing: 1,
    _properties: 1, _dim_append: 2,
}  # fmt: skip
# What declared joins hold for, and what breaks them and is put right again.
JOINS: Final[Mapping[Draws, int]] = {
    _append: 4, _append_strays: 6, _update_scattered: 2, _delete_scattered: 1, _merge_upsert: 1,
    _dim_append: 1, _dim_append_known: 1, _dim_delete: 1, _dim_update: 1,
}  # fmt: skip
DIMENSIONS: Final[dict[Draws, int]] = {
    _dim_append: 6, _dim_append_known: 3, _dim_update: 5, _dim_update_unused: 2, _dim_delete: 3,
    _dim_overwrite: 1, _dim_optimize: 1, _dim_replace_as: 1,
}  # fmt: skip
_CHANGES: Final[Mapping[Draws, int]] = DIMENSIONS | {
    _append: 24, _append_many: 8, _append_nothing: 2, _append_copies: 3, _append_strays: 3,
    _update_scattered: 5,
    _update_part: 4, _delete_scattered: 5, _delete_part: 4, _delete_all: 1, _delete_and_back: 2,
    _merge_upsert: 3, _merge_insert: 3, _merge_delete: 2, _overwrite: 2, _overwrite_same: 2,
    _overwrite_dynamic: 6, _replace_where: 3, _optimize: 4, _optimize_part: 4,
    _append_and_optimize: 3, _purge: 1, _vacuum: 1, _checkpoint: 1, _restore: 4, _recreate: 1,
    _replace: 2, _replace_as: 5,
    _copy: 3, _put_back_at_once: 2, _add_column: 2, _rename_unused: 4, _rename_used: 4,
    _drop_column: 3, _drop_used: 2, _widen: 3, _properties: 3, _comment: 2, _feed: 3,
}  # fmt: skip
