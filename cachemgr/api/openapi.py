"""The REST interface as OpenAPI 3.1, for docs/openapi.json: `python -m cachemgr.api.openapi`."""

from __future__ import annotations

import json
from typing import Any, cast

from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState


def document() -> dict[str, Any]:
    """The document; it depends on the code alone."""
    # nothing is asked of the state to describe the routes
    return create_app(cast(ApiState, None)).openapi()


def text() -> str:
    """The document as it is committed."""
    return json.dumps(document(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(text(), end="")
