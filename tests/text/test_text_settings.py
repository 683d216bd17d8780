"""Under which settings no text is read."""

from __future__ import annotations

import pytest

from cachemgr.text.settings import TextConf, read_settings
from matcher.model.reasons import Reason


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.runSQLOnFiles", "false"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
        ("spark.sql.files.ignoreCorruptFiles", " TRUE "),
        ("spark.sql.ansi.relationPrecedence", "true"),
        ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
    ],
)
def test_settings_under_which_no_text_is_read(key, value):
    found = read_settings({key: value})
    assert isinstance(found, Reason) and key in found.detail
    usual = {"false": "true", "TIMESTAMP_NTZ": "TIMESTAMP_LTZ"}.get(value, "false")
    assert isinstance(read_settings({key: usual}), TextConf)
