"""REST's words are those of the vocabulary."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from cachemgr.api import catalog_models, models
from cachemgr.vocabulary import FreshnessKind, RefreshMode, RunState


def words(model: Any, field: str) -> set[str]:
    annotation = model.model_fields[field].annotation
    found = {arg for part in (annotation, *get_args(annotation)) for arg in get_args(part)}
    return {word for word in found if isinstance(word, str)}


@pytest.mark.parametrize(
    ("model", "field", "wanted"),
    [
        (models.NewRefresh, "mode", set(RefreshMode)),
        (models.Refresh, "state", {*RunState, "PENDING"}),
        (catalog_models.ServedCache, "freshness", set(FreshnessKind)),
    ],
)
def test_rest_knows_the_same_words(model: Any, field: str, wanted: set[str]) -> None:
    assert words(model, field) == {str(word) for word in wanted}


def test_the_ddl_spells_modes_in_words() -> None:
    assert [mode.words for mode in RefreshMode] == [
        "AUTO", "FULL", "INCREMENTAL", "INCREMENTAL ONLY",
    ]  # fmt: skip
