"""A comparison that fails shows the rows of both sides."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.refresh.by_change.by_change_plans")
