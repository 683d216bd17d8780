"""One query over held rows, computed by us and by Spark over the same rows in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cachemgr.delta.tables import PinnedSet
from cachemgr.jvm.classes import class_on_path, java_map
from cachemgr.jvm.loader import java_class, session_of
from tests.harness.local.grammar import COLUMNS
from tests.spark_session import INTERPRETED

BOUNDS: Final = "1000000,100000,100000000,0"
ROWS: Final = 1_500
_PRUNING: Final = "spark.sql.inMemoryColumnarStorage.partitionPruning"
# what may change how Spark itself computes, or what it means
SETTINGS: Final = {
    "spark.sql.ansi.enabled": ("true", "true", "false"),
    "spark.sql.codegen.wholeStage": ("true", "false"),
    "spark.sql.codegen.factoryMode": ("FALLBACK", "FALLBACK", "NO_CODEGEN"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.session.timeZone": ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("true", "true", "false"),
}


@dataclass(frozen=True)
class Judged:
    """What came out.

    Attributes:
        local: Whether we computed the rows.
        refused: Why not, if so.
        spared: Whether Spark raises an error as it is set, and gives our rows where it generates no
            code and passes over blocks: what is evaluated for nothing differs. Or whether its rows
            depend on the order of those that it reads.
        raised: Whether Spark raised an error.
        wrong: What differs; None if nothing does.
    """

    local: bool
    refused: str | None
    raised: bool
    spared: bool
    wrong: str | None


class Judge:
    """Holds a table of edge values, and asks both.

    Args:
        spark: A session of our own, whose settings are changed.
        seed: Draws the rows.
    """

    def __init__(self, spark: SparkSession, seed: int) -> None:
        self._spark = spark
        # its statistics leave NaN out, and with it rows of `f = NaN`
        spark.conf.set(_PRUNING, "false")
        spark.conf.set("spark.sql.inMemoryColumnarStorage.batchSize", "512")  # our blocks
        self._pins = java_class(spark, "Pins")
        rng = Random(seed)
        rows = ", ".join(self._row(rng) for _ in range(60))
        names = ", ".join(COLUMNS)
        casts = ", ".join(f"CAST({n} AS {kind}) AS {n}" for n, (kind, _) in COLUMNS.items())
        # sorted, so that blocks differ; more than one block
        frame = spark.sql(
            f"SELECT {casts} FROM VALUES {rows} AS v({names}) "
            f"CROSS JOIN range({ROWS // 60}) ORDER BY s, i"
        )
        plan = self._pins.pin(session_of(spark), frame._jdf, "edge values")
        held = self._pins.hold(session_of(spark), plan, 1 << 30)
        assert held > 0, "the table is not held"
        self._pin = PinnedSet(plan, self._pins.rows(plan), self._pins.bytes(plan), held)

    @staticmethod
    def _row(rng: Random) -> str:
        values = (
            "NULL" if rng.random() < 0.15 else rng.choice(edges) for _, edges in COLUMNS.values()
        )
        return f"({', '.join(values)})"

    def close(self) -> None:
        """Let go of the table."""
        self._pins.drop(self._pin.plan)

    def settings(self, rng: Random) -> dict[str, str]:
        """Draw the session's settings for the next queries, and set them."""
        drawn = {key: rng.choice(values) for key, values in SETTINGS.items()}
        self.set(drawn)
        return drawn

    def set(self, settings: Mapping[str, str]) -> None:
        """Set what may change how Spark computes, by its keys."""
        for key, value in settings.items():
            self._spark.conf.set(key, value)

    def judge(self, text: str) -> Judged | None:
        """Ask both; None where Spark does not accept the text."""
        jvm, session = self._spark._jvm, session_of(self._spark)
        tables = java_class(self._spark, "Tables")
        try:
            frame = tables.select(session, text, java_map(jvm, {"t0": self._pin.plan}))
        except (PySparkException, Py4JJavaError):
            return None
        wanted, error = _rows(frame)
        plan = frame.queryExecution().analyzed()
        tried = java_class(self._spark, "local.LocalAnswer").ofAnalysed(session, plan, BOUNDS)
        if tried.rows() is None:
            return Judged(False, tried.refused(), error is not None, False, None)
        made = class_on_path(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(
            session, tried.rows()
        )
        got, own = _rows(made)
        if error is None:
            wrong = _difference(text, wanted, got, own)
            if wrong is not None and self._depends_on_order(text, wanted):
                return Judged(True, None, False, True, None)
            return Judged(True, None, False, False, wrong)
        wanted, still = self._interpreted(text)
        if still is None:
            return Judged(True, None, True, True, _difference(text, wanted, got, own))
        return Judged(True, None, True, False, f"Spark raises {error}, and we do not")

    def _depends_on_order(self, text: str, wanted: list[str]) -> bool:
        """Whether Spark itself has other rows where those that it reads come the other way round:
        sums of floats do. Sets with such columns are not pinned, and not held."""
        session = session_of(self._spark)
        select = java_class(self._spark, "Tables").select
        turned = select(
            session,
            "SELECT * FROM t0 ORDER BY s DESC, i DESC",
            java_map(self._spark._jvm, {"t0": self._pin.plan}),
        )
        tables = java_map(self._spark._jvm, {"t0": turned.queryExecution().analyzed()})
        rows, _ = _rows(select(session, text, tables))
        return Counter(rows) != Counter(wanted)

    def _interpreted(self, text: str) -> tuple[list[str], str | None]:
        session = self._spark.newSession()
        for key in SETTINGS:
            session.conf.set(key, self._spark.conf.get(key))
        for key, value in (*INTERPRETED.items(), (_PRUNING, "true")):
            session.conf.set(key, value)
        tables = java_map(self._spark._jvm, {"t0": self._pin.plan})
        select = java_class(self._spark, "Tables").select
        return _rows(select(session_of(session), text, tables))


def _rows(frame: Any) -> tuple[list[str], str | None]:
    """The bytes of a Dataset's rows, in which -0.0 and 0.0 are two things, and each NaN the
    same; or what Spark raises."""
    try:
        rows = frame.queryExecution().executedPlan().executeToIterator()
        text: str = rows.mkString(" ")
    except (PySparkException, Py4JJavaError) as error:
        return [], str(error).split("\n")[0][:200]
    return text.replace("fff8000000000000", "7ff8000000000000").split(" ") if text else [], None


def _difference(text: str, wanted: Any, got: Any, own: str | None) -> str | None:
    if own is not None:
        return f"our rows cannot be read: {own}"
    if "ORDER BY" in text and Counter(wanted) == Counter(got):
        return None if wanted == got else "the order"  # by all keys, so that there is one
    if Counter(wanted) == Counter(got):
        return None
    missing, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    return f"missing {list(missing)[:2]}, extra {list(extra)[:2]}"
