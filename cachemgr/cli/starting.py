"""What a person is told while Spark starts."""

from __future__ import annotations

from typing import Final

STARTING: Final = "Starting Spark (10 to 20 s on a quiet machine)"
STARTING_THERE: Final = "The service starts its Spark (10 to 20 s on a quiet machine)"
