"""What a release consists of, file by file."""

from __future__ import annotations

import hashlib
import json
import tarfile
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import pytest

from cachemgr.jvm.jar import jar_for
from cachemgr.sparks import DELTA, MINORS
from tests.installation import EXTRAS, PROJECT, installed_by
from tests.installed.conftest import build
from tests.processes import ROOT

pytestmark = pytest.mark.slow
VERSION = PROJECT["version"]
PACKAGES = ("cachemgr", "matcher", "scheduler", "migrations")


def _files(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def _modules() -> set[str]:
    found = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {str(file.relative_to(ROOT)) for file in found}


def test_the_wheel_has_each_module_and_jar_and_nothing_of_the_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        assert {n for n in names if n.endswith(".py")} == _modules()
        for minor in MINORS:
            jar = jar_for(minor)
            assert files.read(str(jar.relative_to(ROOT))) == jar.read_bytes()
    assert {n.partition("/")[0] for n in names} == {
        *PACKAGES, f"relational_cache-{VERSION}.dist-info"
    }  # fmt: skip


def test_the_sdist_has_each_module_too(release: Path) -> None:
    with tarfile.open(release / f"relational_cache-{VERSION}.tar.gz") as files:
        names = {n.partition("/")[2] for n in files.getnames()}
    assert _modules() <= names and {"LICENSE", "README.md", "CHANGELOG.md"} <= names
    assert not any(n.startswith(("tests/", "bench/")) for n in names)


@pytest.mark.parametrize("minor", MINORS)
def test_each_jar_has_coordinates_of_maven(release: Path, minor: str) -> None:
    artifact = f"relational-cache-spark_{minor}_2.13"
    place = release / "maven" / "relationalcache" / artifact / VERSION
    stem = f"{artifact}-{VERSION}"
    assert (place / f"{stem}.jar").read_bytes() == jar_for(minor).read_bytes()
    for name in (f"{stem}.jar", f"{stem}.pom"):
        for kind in ("sha1", "sha256"):
            digest = hashlib.new(kind, (place / name).read_bytes()).hexdigest()
            assert (place / f"{name}.{kind}").read_text() == digest
    pom = ElementTree.parse(place / f"{stem}.pom").getroot()
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    told = [pom.findtext(f"m:{n}", None, space) for n in ("groupId", "artifactId", "version")]
    assert told == ["relationalcache", artifact, VERSION]
    (needed,) = pom.findall("m:dependencies/m:dependency", space)
    assert [child.text for child in needed] == [
        "io.delta", f"delta-spark_{minor}_2.13", DELTA, "provided",
    ]  # fmt: skip


def test_the_bill_of_materials_has_what_is_installed_and_the_jars(release: Path) -> None:
    bill = json.loads((release / f"relational-cache-{VERSION}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["version"] == VERSION
    purls = {component["purl"] for component in bill["components"]}
    python = {p.removeprefix("pkg:pypi/").partition("@")[0] for p in purls if ":pypi/" in p}
    wanted = [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]
    assert python == installed_by(wanted)
    for minor in MINORS:
        jar = f"pkg:maven/relationalcache/relational-cache-spark_{minor}_2.13@{VERSION}?type=jar"
        assert {jar, f"pkg:maven/io.delta/delta-spark_{minor}_2.13@{DELTA}?type=jar"} <= purls
        (told,) = (c for c in bill["components"] if c["purl"] == jar)
        digest = hashlib.sha256(jar_for(minor).read_bytes()).hexdigest()
        assert told["hashes"] == [{"alg": "SHA-256", "content": digest}]
    needs = {d["ref"]: d.get("dependsOn", []) for d in bill["dependencies"]}
    assert {ref for refs in needs.values() for ref in refs} <= set(needs)
    assert str(ROOT) not in json.dumps(bill)


def test_the_same_commit_gives_the_same_bytes(release: Path, tmp_path: Path) -> None:
    build(tmp_path / "again")
    assert _files(tmp_path / "again") == _files(release)
