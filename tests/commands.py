"""Each command of `cachemgr`, and what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# The words of each command, where it needs some; those that read a file read one of `FILES`.
CONNECTED = {
    "explain": "'SELECT 1'",
    "export": "",
    "diff": "-f definitions.yaml",
    "apply": "-f definitions.yaml --yes",
    "cache list": "",
    "cache show": "c",
    "cache create": "'CREATE RELATIONAL CACHE c AS SELECT 1'",
    "cache refresh": "c --wait",
    "cache cancel": "0123",
    "cache history": "c",
    "cache why": "c",
    "cache why-full": "c",
    "cache layout": "c",
    "cache enable": "c",
    "cache disable": "c",
    "cache pause": "c",
    "cache resume": "c",
    "cache drop": "c --yes",
    "cache grants": "c",
    "cache grant": "c ann",
    "cache revoke": "c ann",
    "join list": "",
    "join create": "'CREATE RECORD PRESERVING JOIN j'",
    "join validate": "j",
    "join drop": "j --yes",
    "table list": "",
    "table restrict": "t",
    "table unrestrict": "t",
    "select list": "",
    "select grant": "t ann",
    "select revoke": "t ann",
}
NEEDING = {
    "demo": ("spark",),
    "sidecar": ("spark",),
    "sql": ("spark",),
    "serve": ("server", "spark"),
    "worker": ("server", "spark"),
    "query": ("results",),
}
# In this order, of which the first makes the metastore: what each says.
BASE = {
    "db upgrade": "metastore is at",
    "db current": "this program needs",
    "db check": "metastore is as described",
    "db records": "the records are as this metastore says",
    "db rebuild": "[NOTHING_TO_REBUILD]",
    "token create": "token",
    "token list": "ann",
    "token revoke": "[TOKEN_NOT_FOUND]",
    "doctor": "schema version",
    "jar": "relational-cache-",
}
WORDS = {
    "token create": ["ann"],
    "token revoke": ["no-such"],
    "doctor": ["--no-spark"],
    "jar": ["--spark", "4.1"],
}
# What commands of `CONNECTED` need without a service.
HERE = ("server", "spark")
# Files that commands read.
FILES = {
    "s.sql": "CREATE TABLE t (region STRING, amount DECIMAL(10, 2));",
    "c.sql": "CREATE RELATIONAL CACHE by_region AS SELECT region, SUM(amount) AS amount FROM t "
    "GROUP BY region;",
    "q.sql": "SELECT SUM(amount) AS amount FROM t",
    "definitions.yaml": "version: 1\ncaches: []\njoins: []\n",
}
# `explain` over them, without a metastore.
OFFLINE = ("--schema", "s.sql", "--caches", "c.sql", "--query", "q.sql")


def names_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of the commands inside of one."""
    if not hasattr(command, "commands"):
        yield " ".join(path)
        return
    for name, inner in command.commands.items():
        yield from names_of(inner, (*path, name))
