"""Where the rows of statements are, by the settings of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachemgr.config.service_settings import ServiceSettings
from cachemgr.delta.places import absolute_location
from cachemgr.extras import require

if TYPE_CHECKING:
    from cachemgr.results.folders import Results


def results_of(settings: ServiceSettings) -> Results | None:
    """Where the rows of statements are; None where the service runs none.

    Args:
        settings: Of a process.

    Raises:
        ConfigurationError: Nothing can be kept there.
        MissingExtraError: pyarrow is not installed.
    """
    if settings.results_location is None:
        return None
    require("results_location", "results")
    from cachemgr.results.folders import Results

    return Results(absolute_location(settings.results_location))
