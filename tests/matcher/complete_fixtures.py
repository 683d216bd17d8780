"""Write the SQL that comes out today into the text cases; review the difference like code."""

from __future__ import annotations

from cachemgr.text import offline
from tests.matcher.fixture_cases import FOLDER, complete, load


def main() -> None:
    """Rewrite every file of cases in place."""
    for path in sorted(FOLDER.glob("*.sql")):
        if path.name.startswith("_") or path.stem.endswith("__invalid"):
            continue
        results = {}
        for case in load(path):
            found = offline.explain(case.schema, case.caches, case.query, case.conf)
            results[case.title] = found["rewrittenSql"] or case.query
        complete(path, results)


if __name__ == "__main__":
    main()
