"""The storage that commands look into: this machine's, or by a Spark that is started for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from cachemgr.config.service_settings import service_settings
from cachemgr.delta.places import absolute_location, is_local
from cachemgr.delta.storage import Files, LocalFiles
from cachemgr.extras import require

if TYPE_CHECKING:
    from cachemgr.spark.host import SparkHost


@contextmanager
def storage(
    metastore: str, location: Sequence[str] | None
) -> Iterator[tuple[list[str], Callable[[str], Files]]]:
    """Root folders, and the files of each.

    Args:
        metastore: The metastore that the caches belong to.
        location: What the command line names; None takes the setting.

    Raises:
        MissingExtraError: One is not on this machine, and Spark is not installed.
    """
    settings = service_settings(metastore_url=metastore)
    local = LocalFiles()

    with ExitStack() as stack:

        @cache
        def host() -> SparkHost:
            from cachemgr.spark.host import host_of

            started = host_of(settings)
            stack.callback(started.stop)
            return started

        def files_of(root: str) -> Files:
            if is_local(root):
                return local
            require(f"the storage of {root}", "spark")
            from cachemgr.delta.hadoop_files import HadoopFiles

            return HadoopFiles(host().plain())

        yield [absolute_location(root) for root in location or [settings.location]], files_of
