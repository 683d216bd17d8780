"""The settings that Spark and Delta Lake register, as they say of themselves.

`python -m tests.config.spark_registry` writes anew what the program knows of their values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import cachemgr.config.judged as package
from cachemgr.config.judged.judge import judge
from cachemgr.config.judged.kinds import Kind
from cachemgr.config.result_settings import TIME_ZONE

FILE: Final = Path(package.__file__).parent / "spark_defaults.json"
_OBJECTS: Final = (
    "org.apache.spark.sql.internal.StaticSQLConf$",
    "org.apache.spark.sql.hive.HiveUtils$",
    "org.apache.spark.sql.delta.sources.DeltaSQLConf$",
)
_UNDEFINED: Final = "<undefined>"


@dataclass(frozen=True)
class Entry:
    """One setting: `default` is None where it has none, `fallback` the setting that stands for it
    where it is not set; `java` is Spark's own object."""

    key: str
    default: str | None
    fallback: str | None
    alternatives: tuple[str, ...]
    java: Any

    def read(self, text: str) -> str | None:
        """A value as Spark reads it, written out again; None if Spark refuses it."""
        optional = self.java.getClass().getSimpleName() == "OptionalConfigEntry"
        converter = self.java.rawValueConverter() if optional else self.java.valueConverter()
        try:
            value = converter.apply(text)
            written = value if optional else self.java.stringConverter().apply(value)
        except (Py4JJavaError, PySparkException):
            return None
        return str(written).lower() if isinstance(written, bool) else str(written)

    def spelled(self) -> str:
        """How Spark reads its values: booleans, numbers, words without regard to case, or texts;
        empty for times and sizes."""
        if self.read(" TRUE ") == "true" and self.read("x") is None:
            return "booleans"
        if self.read("10s") is not None and self.read("x") is None:
            return ""
        if self.read(" 7 ") in ("7", "7.0") and self.read("x") is None:
            return "numbers"
        name = self.default or ""
        if name and self.read(name.lower()) == self.read(name.upper()) is not None:
            return "words"
        return "texts"


def entries(spark: Any) -> dict[str, Entry]:
    """All settings that the SQL, Hive and Delta of a session register, by key.

    Args:
        spark: A session with Delta.
    """
    jvm = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in _OBJECTS:  # what is in them is registered as they are made
        jvm.java.lang.Class.forName(name, True, loader)
    found = _conf(jvm).getConfigEntries().iterator()
    return {entry.key: entry for entry in map(_entry, _each(found))}


def removed(spark: Any) -> set[str]:
    """The settings that Spark had once."""
    return {pair._1() for pair in _each(_conf(spark._jvm).removedSQLConfigs().iterator())}


def _conf(jvm: Any) -> Any:
    return getattr(getattr(jvm, "org.apache.spark.sql.internal.SQLConf$"), "MODULE$")


def _each(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()


def _entry(java: Any) -> Entry:
    default = java.defaultValueString()
    falls_back = java.getClass().getSimpleName() == "FallbackConfigEntry"
    return Entry(
        java.key(),
        None if default == _UNDEFINED else default,
        java.fallback().key() if falls_back else None,
        tuple(_each(java.alternatives().iterator())),
        java,
    )


def values(found: Mapping[str, Entry]) -> dict[str, dict[str, str | None]]:
    """What the program knows of the values of settings that may change rows.

    Args:
        found: All settings.

    Raises:
        ValueError: One is a time or a size, which nobody compares as Spark reads it yet.
    """
    told: dict[str, dict[str, str | None]] = {}
    for key, entry in sorted(found.items()):
        if judge(key).kind is not Kind.RESULTS or key == TIME_ZONE:  # each machine has its own
            continue
        group = entry.spelled()
        if not group:
            raise ValueError(f"{key} is a time or a size")
        told.setdefault(group, {})[key] = entry.default
    return told


def main() -> None:
    """Write the file."""
    from tests.spark_session import spark_session

    with spark_session() as spark:
        text = json.dumps(values(entries(spark)), indent=1, sort_keys=True)
    FILE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
