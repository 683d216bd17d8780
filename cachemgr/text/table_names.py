"""Which table a name in a text stands for.

Names are those of the catalog when a cache or join was made or last refreshed; only tables that a
cache or join still reads count. A name that stands for two places is known under neither. By its
folder each of them is known.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from cachemgr.base_state import TableAt
from cachemgr.delta.columns import read_columns
from matcher.sql.schema import DEFAULT_CATALOG, Schema, Table
from matcher.sql.table_paths import folder_of

_Name = tuple[str, str, str]
_MAX_SCHEMAS: Final = 256


class Names:
    """The tables that texts may name.

    Args:
        tables: What was noted down.
        places: Where live caches and joins read.
        before: What texts were read by until now. Where nothing changed that they are read by, the
            schemas stay the same objects: what was learned of texts holds on.
    """

    def __init__(
        self,
        tables: Iterable[TableAt],
        places: Collection[str],
        before: Names | None = None,
    ) -> None:
        self.tables: dict[str, TableAt] = {}
        self._noted: dict[str, TableAt] = {}
        self._places: dict[_Name, set[str]] = defaultdict(set)
        self._schemas: dict[tuple[str, str], Schema] = {}
        self._lock = threading.Lock()
        # those without a name first: the others' names are what people know them by
        for table in sorted(tables, key=_is_named):
            if table.location not in places:
                continue
            parts = table.name.split(".") if _is_named(table) else []
            self._noted[table.location] = table
            self.tables[table.location] = table if before is None else before._newer(table)
            if len(parts) == 2:
                parts = [DEFAULT_CATALOG, *parts]
            if len(parts) == 3:
                catalog, schema, name = (part.lower() for part in parts)
                self._places[catalog, schema, name].add(table.location)
        for key, old in {} if before is None else dict(before._schemas).items():
            made = self._schema(*key)
            self._schemas[key] = old if made == old else made

    def _newer(self, table: TableAt) -> TableAt:
        """A table as it was noted down, with the columns that were seen since."""
        noted, now = self._noted.get(table.location), self.tables.get(table.location)
        if noted is None or now is None or now.columns == noted.columns:
            return table
        same = (noted.table_id, noted.columns) == (table.table_id, table.columns)
        return replace(table, columns=now.columns) if same else table

    def twice(self) -> tuple[str, ...]:
        """The names that stand for two places."""
        found = (".".join(name) for name, places in self._places.items() if len(places) > 1)
        return tuple(sorted(found))

    def schema(self, catalog: str, current: str) -> Schema:
        """What the text door resolves names against.

        Args:
            catalog: The session's current catalog.
            current: Its current schema.
        """
        key = (catalog.lower(), current.lower())
        found = self._schemas.get(key)
        if found is None:
            with self._lock:
                if len(self._schemas) >= _MAX_SCHEMAS:
                    self._schemas = {}
                found = self._schemas[key] = self._schema(*key)
        return found

    def mentioned(self, sql: str) -> list[TableAt]:
        """The tables whose last names stand somewhere in a text."""
        text = sql.lower()
        return [t for t in self.tables.values() if _last_name(t) in text]

    def take_over(self, heads: Mapping[str, TableAt]) -> None:
        """Go by the columns that the tables have now."""
        with self._lock:
            moved = {p: replace(self.tables[p], columns=h.columns) for p, h in heads.items()}
            self.tables = {**self.tables, **moved}
            self._schemas = {}

    def _schema(self, catalog: str, current: str) -> Schema:
        tables: dict[str, Table] = {}
        paths: dict[str, Table] = {}
        # without a scheme a text means the file system that its Spark has by default
        local = all(place.startswith("file:") for place in self.tables)
        for place, record in self.tables.items():
            if local or not place.startswith("file:"):
                columns = read_columns(record.columns)
                paths[folder_of(place)] = Table(place, record.name, columns, place=place)
        for (where, schema, name), places in self._places.items():
            if len(places) == 1:
                (place,) = places
                record = self.tables[place]
                key = f"{schema}.{name}" if where == catalog else f"{where}.{schema}.{name}"
                columns = read_columns(record.columns)
                tables[key] = Table(key, record.name, columns, place=place)
        return Schema(tables, current=current, catalog=catalog, paths=paths)


def _is_named(table: TableAt) -> bool:
    """False of one that caches and joins read by its folder alone."""
    return table.name != table.location


def _last_name(table: TableAt) -> str:
    """What a text over a table has somewhere, in lower case."""
    name = table.name.rpartition(".") if _is_named(table) else folder_of(table.name).rpartition("/")
    return name[2].lower()
