"""Files of this machine as a storage that fails by script; see `FlakyFileSystem.java`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SCHEME: Final = "flaky:"
# Each with what people are told of it.
TROUBLE: Final = {
    "denied": "permission denied: ",
    "unavailable": "the storage is not available: ",
    "timeout": "the storage did not answer in time: ",
    "away": "the storage is not available: ",
    "full": "the disk is full: ",
}
_CLASS: Final = "relationalcache.tests.FlakyFileSystem"
# Delta's own for other storages takes Hadoop's FileContext, which asks a class of its own.
_LOG: Final = ("spark.delta.logStore.flaky.impl", "io.delta.storage.LocalLogStore")


@dataclass(frozen=True)
class Flaky:
    """The storage, in good health until its script says otherwise.

    Args:
        script: What it reads before each operation.
    """

    script: Path

    def says(self, *lines: str) -> None:
        """What it does from now on, as lines of its script; none for good health."""
        written = self.script.with_suffix(".new")
        written.write_text("".join(f"{line}\n" for line in lines))
        written.replace(self.script)

    @contextlib.contextmanager
    def saying(self, *lines: str) -> Iterator[None]:
        """The same for a while."""
        self.says(*lines)
        try:
            yield
        finally:
            self.says()


def settings(script: Path) -> Mapping[str, str]:
    """What a Spark is configured with that has it.

    Args:
        script: Its script, which need not be there.
    """
    return {
        "spark.hadoop.fs.flaky.impl": _CLASS,
        "spark.hadoop.fs.flaky.script": str(script),
        _LOG[0]: _LOG[1],
    }


def has_flaky_files(spark: Any) -> bool:
    """Whether the class is there: `make test` compiles it, where there is a compiler of Java."""
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.getResource(f"{_CLASS.replace('.', '/')}.class") is not None


@contextlib.contextmanager
def flaky_files(spark: Any, script: Path) -> Iterator[Flaky]:
    """Have the Spark of the tests know it for a while, before anybody enables caches there.

    Args:
        spark: Any session of it.
        script: Where its script is to be.
    """
    hadoop, conf = (
        spark.sparkContext._jsc.hadoopConfiguration(),
        spark.sparkContext._jsc.sc().conf(),
    )
    told = {k.removeprefix("spark.hadoop."): v for k, v in settings(script).items()}
    told.pop(_LOG[0])
    told["fs.flaky.impl.disable.cache"] = "true"  # each test has a script of its own
    conf.set(*_LOG)
    for key, value in told.items():
        hadoop.set(key, value)
    try:
        yield Flaky(script)
    finally:
        for key in told:
            hadoop.unset(key)
