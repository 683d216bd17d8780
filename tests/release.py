"""What a release consists of: `python -m tests.release FOLDER`, which `make dist` runs.

A wheel and the sdist that it is built from, the jars in the layout of a Maven repository, and a
bill of materials (CycloneDX) of what is installed with all extras. The same commit gives the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name

from cachemgr.jvm.jar import jar_for
from cachemgr.sparks import DELTA, MINORS
from tests.installation import EXTRAS, PROJECT, ROOT, installed_by

VERSION = PROJECT["version"]
GROUP = "relationalcache"
POM = """\
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <name>{artifact}</name>
  <description>{description}</description>
  <licenses>
    <license>
      <name>{license}</name>
      <distribution>repo</distribution>
    </license>
  </licenses>
  <dependencies>
    <dependency>
      <groupId>io.delta</groupId>
      <artifactId>delta-spark_{minor}_2.13</artifactId>
      <version>{delta}</version>
      <scope>provided</scope>
    </dependency>
  </dependencies>
</project>
"""


def artifact_of(minor: str) -> str:
    """The name of a jar among Maven's, after those of Delta."""
    return f"{PROJECT['name']}-spark_{minor}_2.13"


def write_packages(folder: Path) -> None:
    """The sdist, and the wheel that is built from it and from nothing beside it."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    # a wheel names the version of what has built it
    environment = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


Component = dict[str, Any]


def write_jars(folder: Path) -> list[tuple[Component, Component]]:
    """Each jar with its POM and their checksums.

    Returns:
        Each and the Delta that it needs, as components of a bill of materials.
    """
    found = []
    for minor in MINORS:
        artifact, jar = artifact_of(minor), jar_for(minor)
        place = folder / GROUP / artifact / VERSION
        place.mkdir(parents=True)
        shutil.copyfile(jar, place / f"{artifact}-{VERSION}.jar")
        pom = POM.format(
            group=GROUP, artifact=artifact, version=VERSION, minor=minor, delta=DELTA,
            description=escape(PROJECT["description"]), license=PROJECT["license"],
        )  # fmt: skip
        (place / f"{artifact}-{VERSION}.pom").write_text(pom, "utf-8")
        for file in sorted(place.iterdir()):
            for name in ("sha1", "sha256"):
                digest = hashlib.new(name, file.read_bytes()).hexdigest()
                file.with_name(f"{file.name}.{name}").write_text(digest, "ascii")
        delta = component("io.delta", f"delta-spark_{minor}_2.13", DELTA)
        found.append((component(GROUP, artifact, VERSION, jar), delta))
    return found


def component(group: str, name: str, version: str, jar: Path | None = None) -> Component:
    """A jar in a bill of materials."""
    purl = f"pkg:maven/{group}/{name}@{version}?type=jar"
    found = {
        "bom-ref": purl, "type": "library", "group": group, "name": name, "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}], "purl": purl,
    }  # fmt: skip
    if jar is not None:
        content = hashlib.sha256(jar.read_bytes()).hexdigest()
        found["hashes"] = [{"alg": "SHA-256", "content": content}]
    return found


def write_bill(file: Path, jars: list[tuple[Component, Component]]) -> None:
    """The bill of materials: what an installation with all extras consists of, and the jars."""
    command = [
        sys.executable, "-m", "cyclonedx_py", "environment", "--mc-type", "library",
        "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--short-PURLs",
        sys.executable,
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    bill = json.loads(done.stdout)
    # what it says of a package's needs has those of all its extras, asked for or not
    wanted = [*PROJECT["dependencies"], *(text for texts in EXTRAS.values() for text in texts)]
    kept = installed_by(wanted)
    components = [c for c in bill["components"] if canonicalize_name(c["name"]) in kept]
    root, refs = bill["metadata"]["component"]["bom-ref"], {c["bom-ref"] for c in components}
    told = {d["ref"]: refs.intersection(d.get("dependsOn", [])) for d in bill["dependencies"]}
    needs = {ref: told[ref] for ref in (root, *refs)}
    for jar, delta in jars:
        components += [jar, delta]
        needs[root].add(jar["bom-ref"])
        needs |= {jar["bom-ref"]: {delta["bom-ref"]}, delta["bom-ref"]: set()}
    bill["components"] = components
    bill["dependencies"] = [
        {"ref": ref, **({"dependsOn": sorted(on)} if on else {})}
        for ref, on in sorted(needs.items())
    ]
    text = json.dumps(bill, indent=1, sort_keys=True) + "\n"
    wrong = JsonStrictValidator(SchemaVersion.from_version(bill["specVersion"])).validate_str(text)
    if wrong is not None:
        raise ValueError(f"the bill of materials is no CycloneDX: {wrong}")
    file.write_text(text, "utf-8")


def main(folder: Path) -> None:
    """Write all of them, into a folder that has nothing of an earlier time then."""
    if folder.exists() and any(folder.iterdir()) and not any(folder.glob("*.cdx.json")):
        sys.exit(f"{folder} has something else than a release in it: name another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if "SOURCE_DATE_EPOCH" not in os.environ:
        told = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        done = subprocess.run(told, capture_output=True, text=True)
        if done.returncode == 0:
            os.environ["SOURCE_DATE_EPOCH"] = done.stdout.strip()
    write_packages(folder)
    jars = write_jars(folder / "maven")
    write_bill(folder / f"{PROJECT['name']}-{VERSION}.cdx.json", jars)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
