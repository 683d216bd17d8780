"""What the answer about a cache's layout looks like."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cachemgr.api.models import _Model


class Layout(_Model):
    """One layout, and what it would have cost by the filters that were logged."""

    clause: str
    partitioned_by: list[str]
    cluster_by: list[str]
    files: Annotated[int, Field(description="Files of the table.")]
    files_opened: Annotated[float, Field(description="By one hit, on average.")]
    bytes_opened: Annotated[float, Field(description="How large these are.")]
    seconds: Annotated[
        float | None, Field(description="Always null: what is reckoned is no time.")
    ] = None
    is_current: bool
    is_best: bool


class ColumnUse(_Model):
    """How many hits compared a column with constants."""

    column: str
    hits: int


class LayoutAdvice(_Model):
    """Which layout of a cache's table the logged filters speak for."""

    cache: str
    hits: Annotated[int, Field(description="Those whose filters were logged.")]
    local_hits: Annotated[
        int, Field(description="Those of them whose rows were computed without a Spark job.")
    ]
    columns: list[ColumnUse]
    layouts: Annotated[
        list[Layout], Field(description="The best first; none where nothing was reckoned.")
    ]
    statement: Annotated[
        str | None, Field(description="What makes the best one; null if the cache has it.")
    ]
    note: str
