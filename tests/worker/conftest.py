"""The star of the refresh tests, for workers."""

from __future__ import annotations

from tests.refresh.conftest import star

__all__ = ["star"]
