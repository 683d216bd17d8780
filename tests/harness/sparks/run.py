"""What a Spark makes of `cases`, one line for each: `make sparks` writes down what all minors that
are served make of them, and where they differ.

    python -m tests.harness.sparks.run          the answers of the Spark that is installed here
    python -m tests.harness.sparks.run --write FILE…   puts such answers of several into ANSWERS
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cachemgr.config.result_settings import changes_results
from tests.harness.sparks.cases import AGGREGATES, EDGES, SCALARS, TAME

ANSWERS: Final = Path(__file__).with_name("answers.txt")
DEFAULTS: Final = ANSWERS.with_name("defaults.json")
SESSIONS: Final = {"ansi": "true", "plain": "false"}


def cases() -> Iterator[tuple[str, str]]:
    """Operator and SQL of each case."""
    for table in (SCALARS, AGGREGATES):
        for op, texts in table.items():
            for text in texts:
                yield op, text


def query(op: str, text: str, session: str) -> str:
    """The query of a case."""
    where = f" WHERE id < {TAME}" if session == "ansi" else ""
    if op in AGGREGATES:
        return f"SELECT id % 3 AS g, {text} AS v FROM edges{where} GROUP BY id % 3 ORDER BY g"
    return f"SELECT id, {text} AS v FROM edges{where} ORDER BY id"


def answer(spark: Any, op: str, text: str, session: str) -> str:
    """A digest of the rows of a case, or the condition of the error that it is."""
    from pyspark.errors import PySparkException

    try:
        frame = spark.sql(query(op, text, session))
        kind = frame.schema["v"].dataType.simpleString()
        # as texts: some days and moments are outside of Python's
        shown = "hex(v)" if kind == "binary" else "CAST(v AS STRING)"
        rows = [kind, *map(repr, frame.selectExpr("*", f"{shown} AS w").drop("v").collect())]
    except PySparkException as error:
        return f"error:{(error.getCondition() or type(error).__name__).split('.')[0]}"
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def answers(spark: Any) -> dict[str, str]:
    """The answers of a Spark: to each case in each session."""
    found = {}
    spark.sql(EDGES)
    for session, ansi in SESSIONS.items():
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        for op, text in cases():
            found[f"{session} {op} {text}"] = answer(spark, op, text, session)
    return found


def defaults(spark: Any) -> dict[str, str]:
    """The defaults of the settings of this Spark that may change rows."""
    kind = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.internal.SQLConf$")
    entries = kind.getField("MODULE$").get(None).getConfigEntries().iterator()
    found = {}
    while entries.hasNext():
        entry = entries.next()
        if changes_results(entry.key()):
            found[entry.key()] = entry.defaultValueString()
    return dict(sorted(found.items()))


def stored_defaults() -> dict[str, dict[str, str]]:
    """By setting the defaults by minor, of those minors that have it."""
    found: dict[str, dict[str, str]] = json.loads(DEFAULTS.read_text("utf-8"))
    return found


def write_defaults(by_minor: Mapping[str, Mapping[str, str]]) -> None:
    """Write down the settings whose defaults differ, or that some minor does not have."""
    keys = sorted({key for told in by_minor.values() for key in told})
    found = {
        key: {minor: told[key] for minor, told in sorted(by_minor.items()) if key in told}
        for key in keys
    }
    differing = {
        key: told
        for key, told in found.items()
        if len(told) < len(by_minor) or len(set(told.values())) > 1
    }
    DEFAULTS.write_text(json.dumps(differing, indent=1) + "\n", "utf-8")


def stored() -> dict[str, dict[str, str]]:
    """By case the answers by minor, as they were written down."""
    lines = ANSWERS.read_text("utf-8").splitlines()
    minors = lines[0].split()
    found = {}
    for line in lines[1:]:
        digests, _, case = line.partition("\t")
        told = digests.split()
        found[case] = dict(
            zip(minors, told * len(minors) if len(told) == 1 else told, strict=False)
        )
    return found


def write(by_minor: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Write down the answers of several minors; gives the cases in which they differ."""
    minors = sorted(by_minor)
    lines, differing = [" ".join(minors)], []
    for case in by_minor[minors[0]]:
        told = [by_minor[minor][case] for minor in minors]
        lines.append(f"{told[0] if len(set(told)) == 1 else ' '.join(told)}\t{case}")
        if len(set(told)) > 1:
            differing.append(case)
    ANSWERS.write_text("\n".join(lines) + "\n", "utf-8")
    return differing


def main() -> None:
    """Write down, or print the answers as JSON."""
    if sys.argv[1:2] == ["--write"]:
        told = [json.loads(Path(name).read_text("utf-8")) for name in sys.argv[2:]]
        write_defaults({each["minor"]: each["defaults"] for each in told})
        for case in write({each["minor"]: each["answers"] for each in told}):
            print(f"differs: {case}")
        return
    import pyspark

    from cachemgr.sparks import minor_of
    from tests.spark_session import spark_session

    with spark_session() as spark:
        found, set_ = answers(spark), defaults(spark)
    minor = minor_of(pyspark.__version__)
    print(json.dumps({"minor": minor, "answers": found, "defaults": set_}))


if __name__ == "__main__":
    main()
