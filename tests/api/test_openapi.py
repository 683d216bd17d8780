"""The committed OpenAPI document is what the code serves."""

from __future__ import annotations

from pathlib import Path

from cachemgr.api import openapi

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_the_committed_document_is_what_is_served():
    assert COMMITTED.read_text() == openapi.text(), (
        "REST has changed: python -m cachemgr.api.openapi > docs/openapi.json, and look at the diff"
    )


def test_every_operation_has_a_name_a_text_and_the_errors_of_all():
    found = openapi.document()
    assert found["openapi"].startswith("3.1")
    names = []
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            names.append(operation["operationId"])
            assert operation["description"], (path, method)
            assert {"401", "403", "404", "422", "503"} <= set(operation["responses"])
    assert len(names) == len(set(names)) > 20
