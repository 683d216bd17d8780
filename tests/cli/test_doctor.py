"""`cachemgr doctor`: each thing that can be wrong is found, and told how to fix."""

from __future__ import annotations

import grp
import json
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from cachemgr.cache_spec import CacheSpec
from cachemgr.cli import main
from cachemgr.metastore import migrate, open_metastore
from cachemgr.metastore.database import make_engine
from cachemgr.metastore.database import metastore_url as parsed
from cachemgr.metastore.models import VERSION_TABLE
from cachemgr.metastore.records import CacheRecord


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith("CACHEMGR_")]:
        monkeypatch.delenv(name)


def doctor(url: str, *words: str, code: int) -> dict[str, dict[str, str]]:
    command = ["doctor", "--metastore", url, "-o", "json", *words]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return {line["check"]: line for line in json.loads(done.stdout)}


def test_all_is_well(metastore_url):
    found = doctor(metastore_url, "--no-spark", code=0)
    assert {n: f["state"] for n, f in found.items()} == {
        "java": "OK", "packages": "OK", "metastore": "OK", "migrations": "OK",
        "definitions": "OK", "caches": "OK", "clock": "OK", "tokens": "OK", "storage": "OK",
        "log store": "OK", "spark": "SKIPPED", "delta": "SKIPPED",
    }  # fmt: skip
    assert not any(f["fix"] for f in found.values())


def test_what_is_left_out_without_spark_is_said(metastore_url, monkeypatch):
    monkeypatch.setenv("CACHEMGR_SPARK_INIT", '["USE s"]')
    assert doctor(metastore_url, "--no-spark", code=0)["spark_init"]["state"] == "SKIPPED"


def test_an_old_metastore(empty_metastore_url):
    migrate.upgrade(empty_metastore_url, "0001")
    found = doctor(empty_metastore_url, "--no-spark", code=1)
    assert found["metastore"]["state"] == "OK"
    assert found["migrations"]["state"] == "FAILED"
    assert "cachemgr db upgrade" in found["migrations"]["fix"]


def test_a_metastore_of_a_later_release(empty_metastore_url):
    migrate.upgrade(empty_metastore_url)
    engine = make_engine(parsed(empty_metastore_url))
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    engine.dispose()
    found = doctor(empty_metastore_url, "--no-spark", code=1)
    assert found["migrations"]["state"] == "FAILED"
    assert "install that release or a newer one" in found["migrations"]["found"]
    assert not found["migrations"]["fix"], "the upgrade of this release would refuse"


def test_remedies_can_be_pasted(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    url = f"sqlite:///{folder / 'metastore.db'}"
    done = CliRunner().invoke(main, ["doctor", "--metastore", url, "--no-spark"])
    assert done.exit_code == 1
    (line,) = {n.strip() for n in done.stdout.splitlines() if "db upgrade" in n}
    run = [sys.executable, "-c", "from cachemgr.cli import main; main()", *shlex.split(line)[1:]]
    subprocess.run(run, check=True, timeout=120)
    doctor(url, "--no-spark", code=0)


def test_a_remedy_names_no_metastore_that_commands_find_anyway(monkeypatch, tmp_path):
    url = f"sqlite:///{tmp_path / 'metastore.db'}"
    monkeypatch.setenv("CACHEMGR_METASTORE_URL", url)
    found = doctor(url, "--no-spark", "--host", "0.0.0.0", code=1)
    assert found["metastore"]["fix"] == "cachemgr db upgrade"
    migrate.upgrade(url)
    found = doctor(url, "--no-spark", "--host", "0.0.0.0", code=1)["tokens"]
    words = shlex.split(found["fix"])
    assert words[:5] == ["cachemgr", "token", "create", "--role", "admin"] and len(words) == 6
    assert CliRunner().invoke(main, words[1:]).exit_code == 0
    doctor(url, "--no-spark", "--host", "0.0.0.0", code=0)


def test_a_database_that_is_down_and_secrets(tmp_path):
    found = doctor("postgresql://ann:secret@127.0.0.1:9/x", "--no-spark", code=1)
    assert found["metastore"]["state"] == "FAILED"
    for check, needed in {"migrations": "metastore", "clock": "migrations"}.items():
        assert (found[check]["state"], found[check]["found"]) == ("SKIPPED", f"it needs {needed}")
    assert found["java"]["state"] == found["storage"]["state"] == "OK"
    assert "secret" not in json.dumps(found)


def test_no_java(metastore_url, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    found = doctor(metastore_url, "--no-spark", code=1)["java"]
    assert found["state"] == "FAILED" and "/nowhere" in found["found"]
    assert "JAVA_HOME" in found["fix"]


def test_an_old_java(metastore_url, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "java"
    program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = doctor(metastore_url, "--no-spark", code=1)["java"]
    assert found["state"] == "FAILED" and "11.0.2" in found["found"]


def test_a_clock_that_is_off(metastore_url, monkeypatch):
    late = datetime.now(UTC) + timedelta(seconds=40)
    monkeypatch.setattr("cachemgr.metastore.clock.database_moment", lambda session: late)
    found = doctor(metastore_url, "--no-spark", code=1)["clock"]
    assert "behind the database's" in found["found"] and "NTP" in found["fix"]


def test_listening_without_tokens(metastore_url):
    from cachemgr.roles import Role

    found = doctor(metastore_url, "--no-spark", "--host", "0.0.0.0", code=1)["tokens"]
    assert found["state"] == "FAILED" and "token create" in found["fix"]
    with open_metastore(metastore_url) as store:
        store.tokens.create("ann", Role.ADMIN)
    doctor(metastore_url, "--no-spark", "--host", "0.0.0.0", code=0)


def test_a_place_that_cannot_be_written(metastore_url, tmp_path):
    (tmp_path / "file").write_text("in the way")
    found = doctor(metastore_url, "--no-spark", "--location", str(tmp_path / "file"), code=1)
    assert found["storage"]["state"] == "FAILED" and "location" in found["storage"]["fix"]


def test_settings_that_are_wrong_are_one_line(monkeypatch):
    monkeypatch.setenv("CACHEMGR_PORT", "many")
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 1 and "BAD_SETTING" in done.stderr and done.stdout == ""


def test_a_stored_text_that_was_substituted_once(metastore_url):
    values = {"definition_hash": "h", "location": "/c", "columns": (), "plan_version": "2"}
    with open_metastore(metastore_url) as store:
        for name, text in (("plain", "SELECT 1"), ("leaky", "SELECT '${env:HOME}'")):
            cache = CacheRecord(namespace="default", name=name, definition=text, **values)
            store.caches.create(cache, now=store.clock.now())
    found = doctor(metastore_url, "--no-spark", code=1)["definitions"]
    assert found["state"] == "FAILED" and "cache default.leaky" in found["found"]
    assert "plain" not in found["found"] and "create it again" in found["fix"]


def test_a_setting_that_is_none_names_the_one_that_was_meant(tmp_path):
    (tmp_path / "cachemgr.toml").write_text('metastore = "sqlite:///x.db"\n')
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 1 and "did you mean metastore_url?" in done.stderr


ONE, SEVERAL = "io.delta.storage.S3SingleDriverLogStore", "io.delta.storage.S3DynamoDBLogStore"


@pytest.mark.parametrize(
    ("conf", "state"),
    [
        ({}, "WARNING"),
        ({"spark.delta.logStore.s3a.impl": ONE}, "WARNING"),
        ({"spark.delta.logStore.s3a.impl": SEVERAL}, "OK"),
        ({"spark.delta.logStore.gs.impl": SEVERAL}, "WARNING"),
        ({"spark.delta.logStore.class": SEVERAL}, "OK"),
    ],
)
def test_a_log_store_for_one_driver_is_warned_of(metastore_url, monkeypatch, conf, state):
    monkeypatch.setenv("CACHEMGR_SPARK_CONF", json.dumps(conf))
    words = ("--no-spark", "--location", "s3a://bucket/caches")
    found = doctor(metastore_url, *words, code=0)["log store"]
    assert found["state"] == state
    assert ("one driver alone" in found["found"]) is (state == "WARNING")
    assert ("set spark.delta.logStore.s3a.impl" in found["fix"]) is (state == "WARNING")


def test_every_place_that_is_written_to_counts(metastore_url, monkeypatch):
    monkeypatch.setenv("CACHEMGR_LOCATIONS", '["s3://more/caches"]')
    found = doctor(metastore_url, "--no-spark", code=0)["log store"]
    assert found["state"] == "WARNING" and "s3://more/caches" in found["found"]
    assert "spark.delta.logStore.s3.impl" in found["fix"]


@pytest.mark.skipif(os.geteuid() != 0, reason="another group is root's to give")
def test_who_could_read_the_metastore_is_said(tmp_path):
    url = f"sqlite:///{tmp_path / 'm.db'}"
    migrate.upgrade(url)
    found = doctor(url, "--no-spark", code=0)
    assert "it can be read by" in found["metastore"]["found"]
    assert "alone (-rw-------)" in found["metastore"]["found"] and "metastore file" not in found
    os.chmod(tmp_path / "m.db", 0o666)  # the doctor itself tightens what is everybody's
    os.chown(tmp_path / "m.db", -1, next(g.gr_gid for g in grp.getgrall() if g.gr_mem or g.gr_gid))
    found = doctor(url, "--no-spark", code=1)
    assert "members of group" in found["metastore file"]["found"]
    assert found["metastore file"]["fix"].startswith(f"chmod g-rwx {tmp_path}/m.db")


def test_a_metastore_that_lost_its_tokens(tmp_path):
    url = f"sqlite:///{tmp_path / 'm.db'}"
    migrate.upgrade(url)
    assert "open to this machine" in doctor(url, "--no-spark", code=0)["tokens"]["found"]
    (tmp_path / "m.db.closed").touch()
    found = doctor(url, "--no-spark", code=1)["tokens"]
    assert "asked for tokens here before" in found["found"] and "token create" in found["fix"]


def test_a_cache_that_holds_a_password(metastore_url):
    with open_metastore(metastore_url) as store:
        record = CacheRecord("s", "c", "SELECT 1", "h", "file:/c", spec=CacheSpec("pw=topsecret"))
        store.caches.create(record, now=store.clock.now())
    found = doctor(metastore_url, "--no-spark", code=1)["definitions"]
    assert "cache s.c: COMMENT" in found["found"] and "topsecret" not in json.dumps(found)
