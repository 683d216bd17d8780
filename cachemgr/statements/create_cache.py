"""From a CREATE statement and Spark's analysis of its SELECT to the record that is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from cachemgr.cache_spec import CacheSpec
from cachemgr.config.cache_properties import is_of_mapping, refuse_own
from cachemgr.config.substitution import refuse_substitution
from cachemgr.ddl.statements import CreateRelationalCache, QualifiedName
from cachemgr.delta.places import cache_location, storage_place
from cachemgr.errors import DefinitionError, ErrorCode
from cachemgr.metastore.records import CacheRecord, GroupingSetRecord, new_id
from cachemgr.secrets import refuse_secrets
from cachemgr.sparks import SPARK
from cachemgr.statements.engine import Definition
from matcher.model.codec import PLAN_VERSION, decode_plan, encode_plan
from matcher.model.expr import Col
from matcher.model.ir import Output

# Of each part of a name, as in catalogs; what a database indexes is bounded too.
LONGEST_NAME: Final = 255


def build_record(
    statement: CreateRelationalCache,
    namespace: str,
    definition: Definition,
    location_root: str,
    owner: str,
) -> CacheRecord:
    """The record of a new cache.

    Args:
        statement: The CREATE.
        namespace: Where its name points to.
        definition: Its SELECT, analysed.
        location_root: `spark.cachemgr.location`; a LOCATION in the statement goes first.
        owner: Who creates it.

    Returns:
        The record, with an id and a place of its own.

    Raises:
        DefinitionError: A clause names a column that the cache does not have, or is not for cubes;
            or the SELECT holds what Spark would substitute.
    """
    refuse_secrets_in(statement)
    # its user's session has put in what it knows; no other may put anything in later
    refuse_substitution(statement.select.text, f"the SELECT of cache {statement.name}")
    refuse_properties(str(statement.name), statement.spec.properties)
    partitioned_by, cluster_by = matched_columns(statement, definition)
    if statement.spec.location is not None:
        what = f"LOCATION of cache {statement.name}"
        location_root = storage_place(statement.spec.location, what)
    cache_id = new_id()
    return CacheRecord(
        id=cache_id,
        namespace=namespace,
        name=statement.name.last,
        definition=statement.select.text,
        definition_hash=hashlib.sha256(statement.select.text.encode()).hexdigest(),
        location=cache_location(location_root, cache_id),
        columns=definition.columns,
        spec=replace(statement.spec, partitioned_by=partitioned_by, cluster_by=cluster_by),
        context={
            "catalog": definition.catalog,
            "schema": definition.schema,
            SPARK: definition.spark,
        },
        settings=definition.settings,
        plan=encode_plan(definition.plan),
        plan_version=PLAN_VERSION,
        depends_on=definition.reads,
        owner=owner,
    )


def refuse_secrets_in(statement: CreateRelationalCache) -> None:
    """Refuse a CREATE that holds a credential.

    Raises:
        ConfigurationError: Names the clauses that do, not what stands there.
    """
    texts = {"the SELECT": statement.select.text, **statement.spec.texts}
    refuse_secrets(f"cache {statement.name}", texts, statement.spec.properties)


def refuse_name(name: QualifiedName, of: str = "cache", namespace: str = "") -> None:
    """Refuse a name that could not be told from another one, not be typed, or not be asked for at
    every door: names are shown and looked up as text with dots between their parts, stand in the
    paths of URLs and in hints, and are indexed by the metastore.

    Args:
        name: The one that something is to get.
        of: What it is a name of, for the message.
        namespace: Where it points to; empty if all of that is in the name.

    Raises:
        DefinitionError: A part holds a dot, a slash or a character that does not print, begins or
            ends with a blank, or is too long.

    >>> refuse_name(QualifiedName(("sales", "by year")))
    >>> try:
    ...     refuse_name(QualifiedName(("a.b",)))
    ... except DefinitionError as error:
    ...     print(error.message)
    'a.b' in the name of a cache has a dot: take another name
    """
    for part in (*namespace.split("."), *name.parts):
        what = _why_not_a_name(part)
        if what:
            shown = part if len(part) <= LONGEST_NAME else f"{part[:20]}…"
            raise DefinitionError(
                ErrorCode.NAME_NOT_ALLOWED,
                f"{shown!r} in the name of a {of} {what}: take another name",
            )


def _why_not_a_name(part: str) -> str:
    """Why no name can have a part; empty if one can."""
    if "." in part:
        return "has a dot"
    if "/" in part:
        return "has a slash, which the path of a URL cannot carry"
    if not part.isprintable():
        return "has a character that does not print"
    if part != part.strip():
        return "begins or ends with a blank, which headers and hints lose"
    if len(part) > LONGEST_NAME:
        return f"has {len(part)} characters, and {LONGEST_NAME} are the most"
    return ""


def refuse_properties(name: str, properties: Mapping[str, str]) -> None:
    """Refuse table properties under which each refresh would fail, or not do what it says, and
    those of ours that mean nothing.

    Args:
        name: The cache's name, for the message.
        properties: Those of CREATE or ALTER.

    Raises:
        DefinitionError: Names the property, and what to do.
    """
    refuse_own(name, properties)
    for key, value in properties.items():
        why = _why_not_allowed(key, value.strip().lower())
        if why:
            raise DefinitionError(
                ErrorCode.PROPERTY_NOT_ALLOWED,
                f"cache {name}: the table property {key} cannot be set, since {why}: leave it out",
            )


def _why_not_allowed(key: str, value: str) -> str:
    """Why no cache's table can have a property; empty if one can. The value in lower case."""
    spelled = key.lower()
    if spelled == "delta.appendonly" and value == "true":
        return "a refresh replaces rows"
    if is_of_mapping(key) and value != "none":
        return "the files and the log of a cache's table name its columns as they are"
    if spelled.startswith("delta.constraints."):
        return "the rows are the SELECT's, and those that it refuses would stop each refresh"
    return ""


def matched_columns(
    statement: CreateRelationalCache, definition: Definition
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of PARTITIONED BY and CLUSTER BY as the cache spells them.

    Args:
        statement: The CREATE.
        definition: Its SELECT, analysed.

    Returns:
        Both lists.

    Raises:
        DefinitionError: A column does not exist, or CLUSTER BY stands on a cube.
    """
    spec = statement.spec
    if spec.cluster_by and definition.plan.is_cube:
        raise DefinitionError(
            ErrorCode.CLUSTER_BY_ON_CUBE,
            f"cache {statement.name}: CLUSTER BY ({', '.join(spec.cluster_by)}) cannot be "
            "used on a cube, whose table is partitioned by its grouping id and sorted inside each "
            "set: leave it out, or use PARTITIONED BY",
        )
    kinds = layout_columns(definition.plan.as_shown())
    known = {column.lower(): column for column in kinds}
    name = str(statement.name)
    partition_by = _known(name, "PARTITIONED BY", spec.partitioned_by, known)
    if partition_by and len(set(partition_by)) == len(definition.columns):
        raise DefinitionError(
            ErrorCode.PARTITIONED_BY_ALL,
            f"cache {name}: PARTITIONED BY names all of its columns: leave one out",
        )
    for column in partition_by:
        if not may_partition(kinds[column]):
            raise DefinitionError(
                ErrorCode.PARTITION_TYPE,
                f"cache {name}: PARTITIONED BY names {column}, a {kinds[column].upper()}, whose "
                "values are not kept exactly as folder names ('' becomes NULL, times are local): "
                "partition by a number or a date, or leave it out",
            )
    return partition_by, _known(name, "CLUSTER BY", spec.cluster_by, known)


def layout_columns(shown: Iterable[Output]) -> dict[str, str]:
    """The columns that PARTITIONED BY and CLUSTER BY may name, and their types.

    Args:
        shown: The cache's outputs, each over stored columns.
    """
    return {o.name: o.expr.type for o in shown if isinstance(o.expr, Col) and o.expr.name == o.name}


def may_partition(type_: str) -> bool:
    """Whether a table may be partitioned by a column of a type.

    >>> may_partition("date"), may_partition("string")
    (True, False)
    """
    return not type_.startswith(_NO_PARTITION_TYPES)


def order_told(spec: CacheSpec, definition: Definition) -> str:
    """What becomes of the ORDER BY of a definition, for people; empty where it has none.

    Args:
        spec: The clauses.
        definition: The SELECT, analysed.
    """
    if definition.why_not_ordered:
        return f"the order of its ORDER BY is not kept: {definition.why_not_ordered}"
    columns = definition.plan.cluster_by
    for clause, written in (
        ("PARTITIONED BY", spec.partitioned_by),
        ("CLUSTER BY", spec.cluster_by),
    ):
        if columns and written:
            return f"the order of its ORDER BY is not kept: {clause} lays its table out"
    return (
        f"its table is clustered by {', '.join(columns)}, as its ORDER BY asks" if columns else ""
    )


_NO_PARTITION_TYPES = ("string", "char", "varchar", "timestamp", "float", "double", "binary")


def _known(
    name: str, clause: str, columns: Iterable[str], known: dict[str, str]
) -> tuple[str, ...]:
    found = []
    for column in columns:
        if column.lower() not in known:
            raise DefinitionError(
                ErrorCode.UNKNOWN_COLUMN,
                f"cache {name}: {clause} names {column}, which is no column of the cache's table: "
                f"these are {', '.join(known.values())}, and an output that is computed of them, "
                "or has no name of its own, is none of them: select what it is computed of, with a "
                "name by AS",
            )
        found.append(known[column.lower()])
    return tuple(found)


def grouping_set_records(record: CacheRecord) -> tuple[GroupingSetRecord, ...]:
    """The grouping sets of a new cache, each stored once."""
    plan = decode_plan(dict(record.plan or {}))
    keys = plan.keys or ()
    return tuple(
        GroupingSetRecord(stored.grouping_id, ordinal, tuple(keys[i].name for i in stored.keys))
        for ordinal, stored in enumerate(plan.grouping_sets)
    )
