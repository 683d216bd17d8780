"""The OpenAPI document against the running service: whatever is sent, the status, the headers and
the body are what the document says, whoever asks.

`make fuzz-api` asks more of each operation than these tests do.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.processes import Service

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
EXAMPLES = int(os.environ.get("CACHEMGR_CONTRACT_EXAMPLES", "2"))
SEED = os.environ.get("CACHEMGR_CONTRACT_SEED")
# most requests are an admin's, for they get furthest
ROLES = ("admin", "admin", "operator", "viewer", None)
TIMEOUT = 30
bounded = settings(
    max_examples=EXAMPLES,
    derandomize=SEED is None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
refusals = ["400", "401", "403", "404", "405", "409", "413", "422", "429"]
config = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": refusals}}}
)


def document() -> dict[str, Any]:
    """The committed document, which is the service's own by a test of its own, without a limit
    that schemathesis can only pass by a body of a gigabyte: 10,001 definitions of 100,000
    characters each, made when tests are collected. Bodies above two megabytes have their test."""
    path = Path(__file__).parents[2] / "docs" / "openapi.json"
    found: dict[str, Any] = json.loads(path.read_text())
    for name in ("caches", "joins"):
        del found["components"]["schemas"]["Definitions"]["properties"][name]["maxItems"]
    return found


api = schemathesis.openapi.from_dict(document(), config=config)
turn = itertools.count()


@api.parametrize()
@bounded
def test_contract(case, service: Service):
    query = case.query if isinstance(case.query, dict) else {}
    if isinstance(query.get("waitSeconds"), int | float):
        query["waitSeconds"] = min(query["waitSeconds"], 0.1)
    # a list without items is not sent, so that nobody can refuse it
    assume(all(value not in ([], {}, [[]], [{}]) for value in query.values()))
    role = ROLES[next(turn) % len(ROLES)]
    address = service.replica.address
    if role is None:
        answer = case.call(base_url=address, timeout=TIMEOUT)
        case.validate_response(answer, checks=[not_a_server_error])
        assert answer.status_code >= 400 or not case.path.startswith("/api/")
        return
    case.call_and_validate(
        base_url=address,
        headers={"Authorization": f"Bearer {service.tokens[role]}"},
        # a text that is a string need not be SQL, nor a name that of a cache
        excluded_checks=[positive_data_acceptance],
        timeout=TIMEOUT,
    )
