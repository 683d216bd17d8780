"""The declared tables, views and facts that the text door resolves names against.

Read from `CREATE SCHEMA`, `CREATE TABLE`, `CREATE VIEW` and `USE` statements in Spark's dialect.
NOT NULL, PRIMARY KEY, UNIQUE and FOREIGN KEY are taken as facts. A foreign key is a
record-preserving join only when it is declared RELY and refers to exactly a primary or unique key;
where one of its columns may be NULL, only as a LEFT JOIN. Each weaker case could lose or multiply
rows. Lookup ignores case.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from matcher.model.errors import InputCode, SqlInputError
from matcher.model.ir import RecordPreservingJoin
from matcher.sql.expressions.types import UNKNOWN, type_of
from matcher.sql.parse import parse_tokens
from matcher.sql.table_paths import folder_in_text

DEFAULT_SCHEMA = "default"
DEFAULT_CATALOG = "spark_catalog"


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column; `type` in catalog spelling."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` refer to `referenced` of the table `target` (empty: its primary key)."""

    name: str
    columns: tuple[str, ...]
    target: tuple[str, ...]
    referenced: tuple[str, ...]
    rely: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A base table. `key` is the lower-case qualified name, `name` how it is shown and rendered.

    `place` is what caches know it by, where that is not its qualified name.
    """

    key: str
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[frozenset[str], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    place: str = ""

    def column(self, name: str) -> Column | None:
        """The column of that name in any case, or None."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class View:
    """A view: its query's text, the column names given in its head, and the schema that was
    current."""

    key: str
    name: str
    text: str
    column_names: tuple[str, ...] = ()
    current: str = DEFAULT_SCHEMA


@dataclass(frozen=True, slots=True)
class Schema:
    """Declared tables and views by key, and the names of the current schema and catalog.

    A key is `schema.table` in the current catalog, `catalog.schema.table` in another one. `paths`
    are Delta tables by the folder that a text may name: see `matcher.sql.table_paths`.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    schemas: frozenset[str] = frozenset({DEFAULT_SCHEMA})
    current: str = DEFAULT_SCHEMA
    catalog: str = DEFAULT_CATALOG
    paths: Mapping[str, Table] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> Schema:
        """Read a script of declarations.

        Args:
            text: CREATE SCHEMA, CREATE TABLE, CREATE VIEW and USE statements.

        Raises:
            SqlInputError: a statement that does not parse, is of another kind, or contradicts one
                before it.
        """
        return _Reader(text).read()

    def find(self, parts: Iterable[str], current: str | None = None) -> Table | View | None:
        """The table or view that a name of one to three parts means; its catalog may lead."""
        key = self.key_of(parts, current)
        return None if key is None else self.views.get(key) or self.tables.get(key)

    def at_path(self, parts: Sequence[str]) -> Table | None:
        """The Delta table that ``delta.`/path` `` means."""
        if len(parts) != 2 or parts[0].lower() != "delta" or not self.paths:
            return None
        return self.paths.get(folder_in_text(parts[1]))

    def key_of(self, parts: Iterable[str], current: str | None = None) -> str | None:
        """The key that `parts` would have; None for a name of more than three."""
        lower = [p.lower() for p in parts]
        if len(lower) == 3:
            if lower[0] != self.catalog:
                return ".".join(lower)
            lower = lower[1:]
        if len(lower) == 1:
            bare = lower[0]
            # a temporary view has no schema and hides a table of the same name
            return bare if bare in self.views else f"{(current or self.current).lower()}.{bare}"
        return ".".join(lower) if len(lower) == 2 else None

    def similar(self, name: str) -> str | None:
        """The declared table or view whose name is nearest to `name`, for a did-you-mean."""
        shown = {key.rsplit(".", 1)[-1]: value.name for key, value in self._all()}
        close = difflib.get_close_matches(name.lower(), shown, n=1)
        return shown[close[0]] if close else None

    def joins(self) -> tuple[RecordPreservingJoin, ...]:
        """The record-preserving joins that follow from the declared keys, validated by
        declaration."""
        return tuple(join for table in self.tables.values() for join in self._joins_of(table))

    def _all(self) -> Iterator[tuple[str, Table | View]]:
        yield from self.tables.items()
        yield from self.views.items()

    def _joins_of(self, table: Table) -> Iterator[RecordPreservingJoin]:
        for key in table.foreign_keys:
            target = self.find(key.target)
            if not key.rely or not isinstance(target, Table):
                continue
            referenced = key.referenced or target.primary_key
            columns = [table.column(c) for c in key.columns]
            others = [target.column(c) for c in referenced]
            unique = {frozenset(target.primary_key), *target.unique_keys} - {frozenset()}
            if (
                len(columns) != len(others)
                or any(c is None for c in columns)
                or frozenset(r.lower() for r in referenced) not in unique
            ):
                continue
            pairs = zip(columns, others, strict=True)
            names = tuple((c.name, o.name) for c, o in pairs if c is not None and o is not None)
            # joined on unequal types a key could be found twice, or not at all
            if all(c and o and c.type == o.type for c, o in zip(columns, others, strict=True)):
                yield RecordPreservingJoin(
                    *(key.name, table.key, target.key, names),
                    finds_each=not any(c.nullable for c in columns if c),
                )


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tables: dict[str, Table] = {}
        self.views: dict[str, View] = {}
        self.schemas: set[str] = {DEFAULT_SCHEMA}
        self.current = DEFAULT_SCHEMA

    def read(self) -> Schema:
        for statement, source in _statements(self.text):
            if isinstance(statement, exp.Use):
                self.current = statement.this.name.lower()
            elif isinstance(statement, exp.Create):
                self._create(statement, source)
            else:
                raise SqlInputError(
                    InputCode.SCHEMA_STATEMENT_NOT_SUPPORTED,
                    f"the schema holds {statement.sql('spark')[:60]!r}: "
                    "only CREATE SCHEMA, CREATE TABLE, CREATE VIEW and USE are read there",
                )
        return Schema(self.tables, self.views, frozenset(self.schemas), self.current)

    def _create(self, statement: exp.Create, source: str) -> None:
        kind = str(statement.args.get("kind") or "").upper()
        if kind in ("SCHEMA", "DATABASE"):
            name = statement.this
            self.schemas.add(name.name.lower() or name.db.lower())
        elif kind == "TABLE":
            self._create_table(statement)
        elif kind == "VIEW":
            self._create_view(statement, source)
        else:
            raise SqlInputError(
                InputCode.SCHEMA_STATEMENT_NOT_SUPPORTED,
                f"CREATE {kind} is not read in a schema: declare tables with CREATE TABLE",
            )

    def _name(self, table: exp.Table, temporary: bool = False) -> tuple[str, str]:
        parts = [p.name for p in table.parts]
        if len(parts) == 3 and parts[0].lower() == "spark_catalog":
            parts = parts[1:]
        if len(parts) > 2:
            raise SqlInputError(
                InputCode.CATALOG_NOT_SUPPORTED,
                f"{'.'.join(parts)} is in another catalog: name it as schema.table",
            )
        if temporary and len(parts) == 1:
            return parts[0].lower(), parts[0]
        schema = parts[0] if len(parts) == 2 else self.current
        if schema.lower() not in self.schemas:
            raise SqlInputError(
                InputCode.SCHEMA_NOT_FOUND,
                f"schema {schema} of {'.'.join(parts)} is not declared: "
                f"put CREATE SCHEMA {schema} before it",
            )
        key = f"{schema}.{parts[-1]}".lower()
        return key, parts[-1] if schema.lower() == DEFAULT_SCHEMA else f"{schema}.{parts[-1]}"

    def _taken(self, key: str, name: str, statement: exp.Create) -> bool:
        if key not in self.tables and key not in self.views:
            return False
        if statement.args.get("replace"):
            self.tables.pop(key, None)
            self.views.pop(key, None)
            return False
        if statement.args.get("exists"):
            return True
        raise SqlInputError(
            InputCode.TABLE_ALREADY_EXISTS, f"{name} is declared twice: remove one of the two"
        )

    def _create_table(self, statement: exp.Create) -> None:
        head = statement.this
        if not isinstance(head, exp.Schema) or statement.args.get("expression") is not None:
            raise SqlInputError(
                InputCode.COLUMNS_MISSING,
                f"CREATE TABLE {head.sql('spark')[:60]} lists no columns: list each with its type",
            )
        key, name = self._name(head.this)
        if self._taken(key, name, statement):
            return
        self.tables[key] = _table(key, name, head)

    def _create_view(self, statement: exp.Create, source: str) -> None:
        head = statement.this
        names: tuple[str, ...] = ()
        if isinstance(head, exp.Schema):
            names = tuple(c.name for c in head.expressions)
            head = head.this
        properties = statement.args.get("properties")
        temporary = properties is not None and properties.find(exp.TemporaryProperty) is not None
        key, name = self._name(head, temporary)
        if self._taken(key, name, statement):
            return
        query = statement.args.get("expression")
        if query is None:
            raise SqlInputError(InputCode.VIEW_WITHOUT_QUERY, f"view {name} has no query")
        self.views[key] = View(key, name, _query_text(source), names, self.current)


def _statements(text: str) -> list[tuple[exp.Expr, str]]:
    """Each statement with its own text."""
    try:
        tokens = sqlglot.tokenize(text, read="spark")
        parsed = [s for s in parse_tokens(tokens, text) if s is not None]
        chunks: list[list[Token]] = [[]]
        for token in tokens:
            if token.token_type == TokenType.SEMICOLON:
                chunks.append([])
            else:
                chunks[-1].append(token)
    except SqlglotError as error:
        raise syntax_error(error, "the schema") from error
    sources = [text[c[0].start : c[-1].end + 1] for c in chunks if c]
    parsed = [s for s in parsed if not isinstance(s, exp.Semicolon)]
    return list(zip(parsed, sources, strict=True))


def _query_text(source: str) -> str:
    """The query of a CREATE VIEW as written: what follows the AS outside of parentheses."""
    depth = 0
    for token in sqlglot.tokenize(source, read="spark"):
        if token.token_type in (TokenType.L_PAREN, TokenType.R_PAREN):
            depth += 1 if token.token_type == TokenType.L_PAREN else -1
        elif depth == 0 and token.token_type == TokenType.ALIAS:
            return source[token.end + 1 :].strip()
    return source


def syntax_error(error: SqlglotError, what: str) -> SqlInputError:
    """A parse error of sqlglot as ours, with line and column.

    Args:
        error: what the parser or tokenizer raised.
        what: what was read, for the message.
    """
    found = getattr(error, "errors", None)
    if not found:
        return SqlInputError(
            InputCode.SYNTAX_ERROR, f"{what} does not parse: {str(error).splitlines()[0]}"
        )
    first = found[0]
    line, col = first.get("line"), first.get("col")
    token = first.get("highlight") or ""
    return SqlInputError(
        InputCode.SYNTAX_ERROR,
        f"{what} does not parse at '{token}' (line {line}, column {col}): {_plain(first)}",
        line,
        col,
    )


def _plain(problem: dict[str, object]) -> str:
    """The parser's description without its own token dump."""
    return str(problem.get("description")).split(" but got <")[0]


@dataclass(slots=True)
class _Head:
    """What CREATE TABLE says of a table, gathered column by column and constraint by constraint."""

    key: str
    name: str
    columns: list[Column] = field(default_factory=list)
    primary: tuple[str, ...] = ()
    unique: list[frozenset[str]] = field(default_factory=list)
    foreign: list[ForeignKey] = field(default_factory=list)

    def add_column(self, item: exp.ColumnDef | exp.Identifier) -> None:
        if item.args.get("kind") is None:
            raise SqlInputError(
                InputCode.TYPE_MISSING, f"column {item.name} of {self.name} has no type"
            )
        not_null = False
        # equal there is not the same: no expression may use it
        type_ = UNKNOWN if _is_collated(item) else type_of(item.args["kind"])
        for constraint in item.args.get("constraints") or ():
            kind = constraint.kind
            if isinstance(kind, exp.NotNullColumnConstraint):
                not_null = not kind.args.get("allow_null")
            elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
                self.primary, not_null = (item.name,), True
            elif isinstance(kind, exp.UniqueColumnConstraint):
                self.unique.append(frozenset({item.name.lower()}))
            elif isinstance(kind, exp.Reference):
                self.foreign.append(_foreign_key("", self.key, (item.name,), kind))
        self.columns.append(Column(item.name, type_, not not_null))

    def add_constraint(self, label: str, part: exp.Expr) -> None:
        if isinstance(part, exp.PrimaryKey):
            self.primary = tuple(_names(part.expressions))
        elif isinstance(part, exp.UniqueColumnConstraint) and part.this is not None:
            self.unique.append(frozenset(n.lower() for n in _names(part.this.expressions)))
        elif isinstance(part, exp.ForeignKey):
            columns = tuple(_names(part.expressions))
            self.foreign.append(_foreign_key(label, self.key, columns, part.args["reference"]))

    def table(self) -> Table:
        in_foreign = [c for f in self.foreign for c in f.columns]
        in_unique = [c for u in self.unique for c in u]
        _check_columns(self.name, self.columns, [*self.primary, *in_foreign, *in_unique])
        primary = tuple(p.lower() for p in self.primary)
        # a primary key is never NULL, said or not
        known = tuple(
            Column(c.name, c.type, c.nullable and c.name.lower() not in primary)
            for c in self.columns
        )
        return Table(self.key, self.name, known, primary, tuple(self.unique), tuple(self.foreign))


def _table(key: str, name: str, schema: exp.Schema) -> Table:
    head = _Head(key, name)
    for item in schema.expressions:
        if isinstance(item, (exp.ColumnDef, exp.Identifier)):
            head.add_column(item)
        elif isinstance(item, exp.Constraint):
            for part in item.expressions:
                head.add_constraint(item.name, part)
        else:
            head.add_constraint("", item)
    return head.table()


def _is_collated(column: exp.ColumnDef | exp.Identifier) -> bool:
    """True if the column has a collation, or what is inside of its type has one."""
    types = column.find_all(exp.DataType)
    return column.find(exp.CollateColumnConstraint) is not None or any(
        kind.args.get("collate") for kind in types
    )


def _names(nodes: Iterable[exp.Expr]) -> Iterator[str]:
    for node in nodes:
        yield node.name or node.this.name


def _foreign_key(
    label: str, key: str, columns: tuple[str, ...], reference: exp.Reference
) -> ForeignKey:
    target = reference.this
    referenced: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        referenced = tuple(_names(target.expressions))
        target = target.this
    options = " ".join(str(o) for o in reference.args.get("options") or ()).upper().split()
    rely = "RELY" in options and "NORELY" not in options
    name = label or f"{key.rsplit('.', 1)[-1]}_{'_'.join(columns)}_fk"
    return ForeignKey(name, columns, tuple(p.name for p in target.parts), referenced, rely)


def _check_columns(name: str, columns: list[Column], used: list[str]) -> None:
    known: set[str] = set()
    for column in columns:
        if column.name.lower() in known:
            raise SqlInputError(
                InputCode.DUPLICATE_COLUMN, f"table {name} declares column {column.name} twice"
            )
        known.add(column.name.lower())
    for column_name in used:
        if column_name.lower() not in known:
            raise SqlInputError(
                InputCode.COLUMN_NOT_FOUND,
                f"a key of table {name} names column {column_name}, which the table does not have",
            )
