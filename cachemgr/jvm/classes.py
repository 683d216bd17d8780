"""Classes that are on the driver's class path, by their full names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

HADOOP_PATH: Final = "org.apache.hadoop.fs.Path"

_FEW: Final = 4
_MOST_PAIRS: Final = 10  # that Map.of takes
_NUL: Final = "\0"

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


def java_list(jvm: Any, items: Iterable[str]) -> Any:
    """A list of the JVM's.

    Args:
        jvm: The view that a session or context has of its JVM.
        items: Texts. Many are handed over as one: each call takes a tenth of a millisecond, and
            there may be thousands of files.
    """
    texts = list(items)
    if len(texts) > _FEW and all(text and _NUL not in text for text in texts):
        parser = class_on_path(jvm, "org.apache.hadoop.util.StringUtils")
        return parser.getStringCollection(_NUL.join(texts), _NUL)
    found = class_on_path(jvm, "java.util.ArrayList")()
    for text in texts:
        found.add(text)
    return found


def java_map(jvm: Any, items: Mapping[str, Any]) -> Any:
    """A map of the JVM's, to be read: a small one takes one call.

    Args:
        jvm: The view that a session or context has of its JVM.
        items: Its entries, none of them None.
    """
    if len(items) <= _MOST_PAIRS:
        return class_on_path(jvm, "java.util.Map").of(*chain.from_iterable(items.items()))
    made = class_on_path(jvm, "java.util.HashMap")()
    for key, value in items.items():
        made.put(key, value)
    return made
