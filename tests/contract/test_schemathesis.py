"""The OpenAPI document against the running service: whatever is sent, the status, the headers and
the body are what the document says, whoever asks.

`make fuzz-api` asks more of each operation than these tests do.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.processes import Service

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
EXAMPLES = int(os.environ.get("CACHEMGR_CONTRACT_EXAMPLES", "2"))
SEED = os.environ.get("CACHEMGR_CONTRACT_SEED")
MOST_SENT = 3_000_000
# most requests are an admin's, for they get furthest
ROLES = ("admin", "admin", "operator", "viewer", None)
TIMEOUT = 30
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=SEED is None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
refusals = ["400", "401", "403", "404", "405", "409", "413", "422", "429"]
config = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": refusals}}}
)
# that the committed document is the service's own is a test of its own
api = schemathesis.openapi.from_path(
    Path(__file__).parents[2] / "docs" / "openapi.json", config=config
)
turn = itertools.count()


def length(value: Any) -> int:
    """About how many characters a body has."""
    if isinstance(value, dict):
        return sum(length(k) + length(v) for k, v in value.items())
    if isinstance(value, list):
        return sum(map(length, value))
    return len(value) if isinstance(value, str) else 4


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """No body of a gigabyte: 10,001 definitions of 100,000 characters. That bodies above two
    megabytes are refused is a test of its own."""
    return length(case.body) < MOST_SENT


@api.parametrize()
@bounded
def test_contract(case, service: Service):
    query = case.query if isinstance(case.query, dict) else {}
    if isinstance(query.get("waitSeconds"), int | float):
        query["waitSeconds"] = min(query["waitSeconds"], 0.1)
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
