"""A clause that is declared is known everywhere: one that is left out somewhere is found here."""

from __future__ import annotations

import pytest

from cachemgr.api.document_models import CacheDefinition
from cachemgr.cache_spec import SPEC_FIELDS, CacheSpec, UnreadableTrigger, trigger_json, trigger_of
from cachemgr.ddl import parse, render
from cachemgr.ddl.cache_clauses import CLAUSES
from cachemgr.ddl.single_clauses import spec_as_data, spec_of_data
from cachemgr.ddl.statements import CreateRelationalCache
from cachemgr.metastore.models import CacheRow
from cachemgr.metastore.record_rows import PLAIN_CLAUSES

CREATE = """CREATE RELATIONAL CACHE s.c
  COMMENT 'pw=topsecret'
  PARTITIONED BY (a)
  LOCATION 's3://u:topsecret@b/c'
  TBLPROPERTIES ('z' = '1', 'password' = 'topsecret')
  REFRESH EVERY 1 HOUR FULL
  MAX STALENESS INTERVAL 5 MINUTES
  DISABLE REWRITE
AS SELECT 1 AS a, 2 AS b"""


def spec() -> CacheSpec:
    statement = parse(CREATE)
    assert isinstance(statement, CreateRelationalCache)
    return statement.spec


def test_every_clause_is_read_and_written():
    assert [clause.field for clause in CLAUSES] == list(SPEC_FIELDS)
    assert render(parse(CREATE)) == CREATE


def test_every_clause_is_in_the_definitions_file():
    assert set(SPEC_FIELDS) <= CacheDefinition.model_fields.keys()
    data = spec_as_data(spec())
    assert spec_of_data(data) == spec()
    assert data["refresh"] == "EVERY 1 HOUR FULL"
    assert list(data["properties"]) == ["password", "z"], "two exports are the same text"


def test_every_clause_that_is_stored_as_it_is_has_its_column():
    assert PLAIN_CLAUSES <= set(CacheRow.__table__.columns.keys())


def test_no_clause_shows_a_credential():
    assert "topsecret" in repr(spec())
    assert "topsecret" not in repr(spec().masked())
    assert spec().masked().refresh == spec().refresh


@pytest.mark.parametrize(
    "data", [{"kind": "WHENEVER"}, {"kind": "EVERY"}, {"kind": "EVERY", "seconds": 0}]
)
def test_a_trigger_that_cannot_be_read_stays_as_it_is_stored(data: dict[str, object]):
    trigger = trigger_of(data)
    assert isinstance(trigger, UnreadableTrigger) and trigger.why
    assert trigger_json(trigger) == data
