"""Groups that are sent to the tasks that write them before they are put together: one shuffle where
Spark plans two.

Each task that reads the base groups its own rows, so of a group there are up to as many parts as
there are tasks. Spark deals parts out to all cores, puts them together, and then sends the groups
to where they are written. Where those who write get about equal shares of the parts, they may as
well put them together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import SparkSession

from cachemgr.jvm.loader import java_class, session_of
from cachemgr.refresh.full.layout import Layout

# So many parts one task puts together in less time than a shuffle more takes.
FEW_PARTS: Final = 500_000


def is_even(
    layouts: Sequence[Layout],
    groups: Mapping[int, float],
    base_rows: float,
    tasks: int,
    cores: int,
) -> bool:
    """Whether no task that writes would put together much more than its share.

    Args:
        layouts: Where the sets of a cube are written, each in one of these.
        groups: The expected groups of each set, by grouping id.
        base_rows: Rows of the joined base.
        tasks: How many tasks read the base.
        cores: How many tasks run at once.
    """
    parts: Counter[tuple[int, int]] = Counter()
    for number, layout in enumerate(layouts):
        for grouping_id, split in layout.splits.items():
            files = len(split.bounds) + 1
            of_each = int(min(base_rows, groups[grouping_id] * tasks) / files)
            for file in range(files):
                parts[number, split.first + file] += of_each
    return max(parts.values()) <= max(FEW_PARTS, parts.total() / cores)


def shuffle_once(session: SparkSession) -> None:
    """Has a session of ours plan so wherever groups are laid out by `spread`."""
    java_class(session, "ShuffleOnce").set(session_of(session))
