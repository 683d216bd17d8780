"""Every operation of the OpenAPI document against every kind of token, and the table of roles in
docs/security.md."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import httpx
from sqlalchemy import text

from cachemgr.api import openapi
from cachemgr.errors import DefinitionError
from cachemgr.roles import Role

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
DOCUMENT = openapi.document()
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
TABLE = {
    name: role
    for names, role in re.findall(r"^\| (`.*?`) \| (none|viewer|operator|admin) \|$", PAGE, re.M)
    for name in re.findall(r"`(\w+)`", names)
}
BODY = {"sql": "SELECT 1", "ddl": "x", "version": 1, "table": "t", "paused": True}


class NoSuchTable:
    """Statements that Spark cannot analyse."""

    def execute(self, statement: str, principal: str):
        raise DefinitionError("TABLE_OR_VIEW_NOT_FOUND", "there is no such table: name another")


def send(url: str, token: str | None, name: str) -> httpx.Response:
    method, path, operation = OPERATIONS[name]
    body = {"json": BODY} if "requestBody" in operation else {}
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.request(
        method, url + re.sub(r"\{\w+\}", "x", path), headers=headers, timeout=30, **body
    )


def test_the_document_and_the_page_say_the_same_role_of_each_operation():
    assert TABLE == {name: found[2]["x-least-role"] for name, found in OPERATIONS.items()}, (
        "an operation has come, gone, or has another role: say so in docs/security.md"
    )


def test_every_operation_answers_whom_it_may(serve, store):
    url = serve(statements=NoSuchTable())
    void, good = _void(store), {r: store.tokens.create("ann", r)[1] for r in Role}
    wrong = []
    for name, (_, _, operation) in OPERATIONS.items():
        least = TABLE[name]
        for kind, token in void.items():
            status = send(url, token, name).status_code
            if (status == 401) is not (least != "none"):
                wrong.append((name, kind, status))
        for role, token in good.items():
            before = store.registry.revision()
            answer = send(url, token, name)
            refused = least != "none" and not role.covers(Role(least))
            fine = answer.status_code == 403 if refused else answer.status_code not in (401, 403)
            documented = str(answer.status_code) in operation["responses"]
            moved = refused and store.registry.revision() != before
            if not fine or not documented or moved or answer.status_code >= 500:
                wrong.append((name, role.value, answer.status_code, answer.text))
    assert wrong == []


def _void(store) -> dict[str, str | None]:
    """Tokens of an admin that are not good, or none."""
    found = {"none": None, "unknown": "cachemgr_" + "0" * 32 + "_" + "0" * 48}
    revoked, found["revoked"] = store.tokens.create("ann", Role.ADMIN)
    store.tokens.revoke(revoked.id)
    hour = timedelta(hours=1)
    expired, found["expired"] = store.tokens.create("ann", Role.ADMIN, expires_in=hour)
    with store.engine.begin() as connection:
        query = text("UPDATE tokens SET expires_at = created_at WHERE id = :id")
        connection.execute(query, {"id": expired.id})
    return found
