"""The settings of the service: where they come from, what is refused, their table in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cachemgr.config.service_settings import ServiceSettings, service_settings
from cachemgr.errors import ConfigurationError

DOCS = Path(__file__).parents[2] / "docs" / "service.md"


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No settings of this machine's."""
    monkeypatch.chdir(tmp_path)
    for name in ServiceSettings.model_fields:
        monkeypatch.delenv(f"CACHEMGR_{name.upper()}", raising=False)
    monkeypatch.delenv("CACHEMGR_CONFIG", raising=False)


def test_defaults():
    found = service_settings()
    assert (found.host, found.port, found.is_loopback) == ("127.0.0.1", 8470, True)


def test_a_flag_wins_over_the_environment_and_that_over_the_file(monkeypatch, tmp_path):
    (tmp_path / "cachemgr.toml").write_text(
        'port = 1001\nhost = "0.0.0.0"\nlease_seconds = 7\n[spark_conf]\n"spark.x" = "1"\n'
    )
    monkeypatch.setenv("CACHEMGR_PORT", "1002")
    monkeypatch.setenv("CACHEMGR_HOST", "::1")
    found = service_settings(port=1003, host=None)
    assert (found.port, found.host, found.lease_seconds) == (1003, "::1", 7)
    assert found.spark_conf == {"spark.x": "1"}


def test_a_file_by_name(monkeypatch, tmp_path):
    (tmp_path / "other.toml").write_text("port = 5")
    monkeypatch.setenv("CACHEMGR_CONFIG", str(tmp_path / "other.toml"))
    assert service_settings().port == 5
    monkeypatch.setenv("CACHEMGR_CONFIG", str(tmp_path / "nothing.toml"))
    with pytest.raises(ConfigurationError, match=r"nothing\.toml"):
        service_settings()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PORT", "70000", "port"),
        ("PORT", "http", "port"),
        ("LEASE_SECONDS", "1", "lease_seconds"),
        ("LOG_LEVEL", "loud", "log_level"),
        ("SPARK_CONF", "{", "CACHEMGR_SPARK_CONF is not JSON"),
        ("SPARK_INIT", "SELECT 1", "CACHEMGR_SPARK_INIT is not JSON"),
        ("SPARK_CONF", '{"a": {"b": 1}}', "spark_conf.a"),
    ],
)
def test_values_that_are_not_accepted(monkeypatch, name, value, said):
    monkeypatch.setenv(f"CACHEMGR_{name}", value)
    with pytest.raises(ConfigurationError) as caught:
        service_settings()
    assert caught.value.code == "BAD_SETTING" and said in str(caught.value)


def test_what_is_wrong_with_the_file(tmp_path):
    (tmp_path / "cachemgr.toml").write_text("colour = 'red'")
    with pytest.raises(ConfigurationError, match="colour"):
        service_settings()
    (tmp_path / "cachemgr.toml").write_text("port = ")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        service_settings()


def test_a_password_is_not_shown():
    with pytest.raises(ConfigurationError) as caught:
        service_settings(metastore_url=["postgresql://u:hunter2@h/d"])
    assert "hunter2" not in str(caught.value)
    for conf in ({"spark.hadoop.fs.s3a.secret.key": ["hunter2"]}, {"x": ["jdbc:x://u:hunter2@h"]}):
        with pytest.raises(ConfigurationError) as caught:
            service_settings(spark_conf=conf)
        assert "hunter2" not in str(caught.value)


def test_every_setting_is_in_the_docs():
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", DOCS.read_text(), flags=re.MULTILINE)
    told = {name: (default, text) for name, default, text in rows}
    for name, field in ServiceSettings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "" if default is None else f"`{default}`"
        assert told.pop(name) == (shown or "none", field.description)
    assert not told
