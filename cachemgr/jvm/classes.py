"""Classes that are on the driver's class path, by their full names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

HADOOP_PATH: Final = "org.apache.hadoop.fs.Path"

_found: dict[tuple[int, str], Any] = {}


def class_on_path(jvm: Any, name: str) -> Any:
    """A class of Java, Spark, Hadoop or Delta, looked up once.

    `jvm.java.util.ArrayList` would ask the JVM for `java`, `java.util` and the class at each use,
    and for each of the first two it searches all of Spark's jars in vain.

    Args:
        jvm: The view that a session or context has of its JVM.
        name: Full name, as `java.util.ArrayList`.
    """
    key = (id(jvm._gateway_client), name)
    found = _found.get(key)
    if found is None:
        # It keeps the client, whose id can then not come back for another JVM.
        found = _found[key] = getattr(jvm, name)
    return found


def java_list(jvm: Any, items: Iterable[Any]) -> Any:
    """A list of the JVM's."""
    made = class_on_path(jvm, "java.util.ArrayList")()
    for item in items:
        made.add(item)
    return made


def java_map(jvm: Any, items: Mapping[str, Any]) -> Any:
    """A map of the JVM's."""
    made = class_on_path(jvm, "java.util.HashMap")()
    for key, value in items.items():
        made.put(key, value)
    return made
