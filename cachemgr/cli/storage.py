"""The storage that commands look into: this machine's, or by a Spark that is started for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cachemgr.config.service_settings import service_settings
from cachemgr.delta.places import absolute_location, is_local
from cachemgr.delta.storage import Files, LocalFiles


@contextmanager
def storage(
    metastore: str, location: Sequence[str] | None
) -> Iterator[tuple[list[str], Callable[[str], Files]]]:
    """Root folders, and the files of each.

    Args:
        metastore: The metastore that the caches belong to.
        location: What the command line names; None takes the setting.
    """
    from cachemgr.delta.hadoop_files import HadoopFiles
    from cachemgr.spark.host import host_of

    settings = service_settings(metastore_url=metastore)
    host = host_of(settings)
    local = LocalFiles()

    def files_of(root: str) -> Files:
        return local if is_local(root) else HadoopFiles(host.plain())

    try:
        yield [absolute_location(root) for root in location or [settings.location]], files_of
    finally:
        host.stop()
