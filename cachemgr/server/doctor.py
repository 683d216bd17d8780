"""Whether everything that a service needs is there and works, and how to fix what does not.

What one check finds broken keeps from looking only those that need it.
"""

from __future__ import annotations

import getpass
import shlex
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Final

from cachemgr.config.service_settings import ServiceSettings, service_settings
from cachemgr.config.substitution import is_substituted
from cachemgr.delta.places import absolute_location, scheme_of
from cachemgr.delta.storage import Files
from cachemgr.errors import CacheManagerError, ErrorCode, SchemaVersionError
from cachemgr.extras import missing
from cachemgr.installation import NAME, install_words
from cachemgr.jvm import runtime
from cachemgr.metastore import migrate, open_metastore
from cachemgr.metastore.file_access import is_alone_in, readers_of
from cachemgr.metastore.masked import held_secrets
from cachemgr.printable import plural
from cachemgr.server.closed_mark import ClosedMark, settings_folder
from cachemgr.server.log_stores import ONE_DRIVER, S3, for_one_driver, log_store_key
from cachemgr.sparks import minor_of

CLOCK_SECONDS: Final = 5.0
OK, WARNING, FAILED, SKIPPED = "OK", "WARNING", "FAILED", "SKIPPED"


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Args:
        check: Its name.
        state: OK, WARNING (it works, within limits that `found` says), FAILED or SKIPPED.
        found: What is there.
        fix: What to do, a command where one does it; empty if nothing, or if `found` says it.
    """

    check: str
    state: str
    found: str
    fix: str = ""


class _Warns(Exception):
    def __init__(self, found: str, fix: str) -> None:
        super().__init__(found)
        self.found, self.fix = found, fix


class _CheckFailed(Exception):
    def __init__(self, found: str, fix: str) -> None:
        super().__init__(found)
        self.found, self.fix = found, fix


Check = tuple[str, Callable[[], str]]
# What a check is of no use without: one cause is told once.
_NEEDS: Final = {
    "metastore file": "metastore",
    "migrations": "metastore",
    "definitions": "migrations",
    "caches": "migrations",
    "clock": "migrations",
    "tokens": "migrations",
    "log store": "migrations",
    "spark_init": "spark",
    "delta": "spark",
}


def examine(checks: Iterator[Check], url: str) -> Iterator[Finding]:
    """Run checks one after the other, without those that need one that failed.

    Args:
        checks: Their names, and what says what it found or raises.
        url: The metastore's.
    """
    well: dict[str, bool] = {}
    for name, check in checks:
        found = _examine(name, check, url) if well.get(_NEEDS.get(name, ""), True) else None
        well[name] = found is not None and found.state in (OK, WARNING)
        yield found or Finding(name, SKIPPED, f"it needs {_NEEDS[name]}")


def _examine(name: str, check: Callable[[], str], url: str) -> Finding:
    from cachemgr.metastore.database import hidden, metastore_url

    try:
        return Finding(name, OK, check())
    except _Warns as error:
        return Finding(name, WARNING, error.found, error.fix)
    except _CheckFailed as error:
        return Finding(name, FAILED, error.found, error.fix)
    except CacheManagerError as error:
        if error.code != ErrorCode.METASTORE_MISSING:
            return Finding(name, FAILED, str(error))  # which says what to do
        found = f"there is no metastore at {hidden(metastore_url(url))}"
        return Finding(name, FAILED, found, _command("db", "upgrade", url=url))
    except Exception as error:  # whatever it is, it is what the doctor is to tell
        first = (str(error).strip() or "no message").splitlines()[0][:300]
        return Finding(name, FAILED, f"{type(error).__name__}: {first}", _general(name))


def light_checks(settings: ServiceSettings) -> Iterator[Check]:
    """What can be looked at without Spark."""
    yield "java", java
    yield "packages", packages
    yield "metastore", lambda: _with_readers(metastore(settings.metastore_url), settings)
    if _who_reads(settings)[1]:
        yield "metastore file", lambda: metastore_file(settings)
    yield "migrations", lambda: migrations(settings.metastore_url)
    yield "definitions", lambda: definitions(settings.metastore_url)
    yield "caches", lambda: caches(settings.metastore_url)
    yield "clock", lambda: clock(settings.metastore_url)
    yield "tokens", lambda: tokens(settings)


def java() -> str:
    """The Java that Spark would take."""
    spark = None
    with suppress(metadata.PackageNotFoundError):
        spark = minor_of(metadata.version("pyspark"))
    found = runtime.java(spark)
    problem = found.problem
    if problem is None and found.major is None:
        problem = f"{found.program} does not tell its version: {found.told}"
    if problem is not None:
        raise _CheckFailed(problem, runtime.FIX)
    return f"{found.program}: {found.told}"


def packages() -> str:
    """The Spark and Delta of this Python, once all that a service imports is there."""
    absent = missing("server", "spark")
    if absent:
        modules = ", ".join(m for modules in absent.values() for m in modules)
        raise _CheckFailed(f"not installed: {modules}", _pip(*install_words(*absent)))
    found = {name: metadata.version(name) for name in ("pyspark", "delta-spark")}
    for wanted in metadata.requires(NAME) or ():
        pinned = wanted.partition(";")[0].strip()
        name, _, version = pinned.partition("==")
        if name in found and found[name] != version:
            raise _CheckFailed(f"{name} is {found[name]}", _pip("install", pinned))
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _pip(*words: str) -> str:
    return shlex.join([sys.executable, "-m", "pip", *words])


def metastore(url: str) -> str:
    """Whether the metastore answers and takes a change."""
    found = migrate.current(url)
    if found is None:
        raise _CheckFailed("the database holds no metastore", _command("db", "upgrade", url=url))
    try:
        with open_metastore(url, create=False) as store:
            store.decisions.prune(datetime(2000, 1, 1, tzinfo=UTC))  # writes nothing
            return (
                f"revision {store.registry.revision()}, {plural(len(store.caches.all()), 'cache')}"
            )
    except SchemaVersionError:
        return f"it answers, at schema version {found}"


def migrations(url: str) -> str:
    """Whether the metastore's tables are those of this program."""
    found, needed = migrate.current(url), migrate.expected()
    if found != needed and found in migrate.known():
        raise _CheckFailed(
            f"schema version {found}, this program needs {needed}",
            _command("db", "upgrade", url=url),
        )
    migrate.check(url)
    return f"schema version {found}"


def definitions(url: str) -> str:
    """Whether the stored texts mean the same in every process."""
    with open_metastore(url, create=False) as store:
        caches, joins = store.caches.all(), store.joins.all()
    texts = {f"cache {c.qualified_name}": c.definition for c in caches}
    texts |= {f"join {j.name}": j.definition for j in joins}
    held = [name for name, text in texts.items() if is_substituted(text)]
    if held:
        raise _CheckFailed(
            f"{', '.join(held)}: the definition holds ${{…}}, which is no longer substituted; "
            "what was put in there at its creation may show to everybody in its plan",
            "create it again with the values written out; if a secret was put in, change that",
        )
    secret = held_secrets(caches)
    if secret:
        raise _CheckFailed(
            f"{'; '.join(secret)} holds what looks like a password or key; it is masked where "
            "it is shown",
            "create the cache again without it, and change that password or key",
        )
    return f"{len(texts)} definitions"


def caches(url: str) -> str:
    """Whether some cache answers nothing since its files are gone."""
    with open_metastore(url, create=False) as store:
        found = store.caches.all()
    damaged = [cache for cache in found if cache.damaged is not None]
    if damaged:
        first = damaged[0]
        raise _CheckFailed(
            f"{len(damaged)} of {len(found)} are damaged: {first.qualified_name}: {first.damaged}",
            f"cachemgr cache refresh {first.qualified_name}",
        )
    return f"{len(found)}, none of them damaged"


def clock(url: str) -> str:
    """This machine's clock against the database's, which leases are timed by."""
    with open_metastore(url, create=False) as store:
        before = datetime.now(UTC)
        theirs = store.clock.now()
        after = datetime.now(UTC)
    off = (theirs - (before + (after - before) / 2)).total_seconds()
    if abs(off) > CLOCK_SECONDS:
        raise _CheckFailed(
            f"it is {abs(off):.0f} s {'behind' if off > 0 else 'ahead of'} the database's",
            "let both machines keep time by NTP; freshness is promised by their clocks",
        )
    return f"{abs(off):.1f} s off the database's"


def tokens(settings: ServiceSettings) -> str:
    """Whether the service may listen where it is told to."""
    url = settings.metastore_url
    with open_metastore(url, create=False) as store:
        known, had = store.tokens.has_any(), store.tokens.had_any()
    where = f"{settings.host}:{settings.port}"
    fix = _command("token", "create", "--role", "admin", _user(), url=url)
    if known:
        return f"{where}, by token"
    if not settings.is_loopback:
        raise _CheckFailed(f"{where} can be reached by other machines, and there is no token", fix)
    if not had and (marks := ClosedMark(url, settings_folder()).found()):
        raise _CheckFailed(
            f"there is no token, though a service asked for tokens here before ({marks[0]}): the "
            "metastore was lost, emptied or put back from an old copy; nobody is let in",
            fix,
        )
    if had or settings.auth == "required":
        raise _CheckFailed("no token is good any more, or there is none: nobody is let in", fix)
    return f"{where}, open to this machine, no token is asked for"


def metastore_file(settings: ServiceSettings) -> str:
    """Whether more users of this machine can read the metastore than the settings name."""
    who, fix = _who_reads(settings)
    if fix:
        raise _CheckFailed(f"it can be read by {who}", fix)
    return f"it can be read by {who}"


def _with_readers(told: str, settings: ServiceSettings) -> str:
    who, _ = _who_reads(settings)
    return f"{told}; it can be read by {who}" if who else told


def _who_reads(settings: ServiceSettings) -> tuple[str, str]:
    """Who on this machine can read a SQLite metastore, and what to do if those are too many."""
    from cachemgr.metastore.database import metastore_url

    try:
        url = metastore_url(settings.metastore_url)
        path = str(url.database)
        if url.get_backend_name() != "sqlite" or not Path(path).is_file():
            return "", ""
        found = readers_of(Path(path))
    except (CacheManagerError, OSError):  # another check says so
        return "", ""
    owner, group = found.owner, found.group
    if found.everybody:
        who = f"{owner} and everybody else on this machine ({found.mode})"
        return who, shlex.join(["chmod", "o-rwx", path])
    if not group or is_alone_in(group, owner):
        return f"{owner} alone ({found.mode})", ""
    who = f"{owner} and the members of group {group} ({found.mode})"
    if group == settings.sqlite_group:
        return who, ""
    return who, f"{shlex.join(['chmod', 'g-rwx', path])}, or name the group in sqlite_group"


def log_store(settings: ServiceSettings, conf: Mapping[str, str]) -> str:
    """Whether each table on S3 may have several writers.

    Args:
        settings: Where the caches lie.
        conf: Spark's settings.
    """
    with open_metastore(settings.metastore_url, create=False) as store:
        tables = [t.location for t in store.tables.noted()]
        caches = [c.location for c in store.caches.all()]
    places = {*map(absolute_location, (settings.location, *settings.locations)), *tables, *caches}
    found = for_one_driver(places, conf)
    if found:
        keys = ", ".join(map(log_store_key, found))
        raise _Warns(
            f"{', '.join(found.values())}: Delta's {ONE_DRIVER} is safe while one driver alone "
            "writes to a table; commits of two at once can be lost",
            f"let one process write to each table, or set {keys} in every Spark that writes to a "
            "log store for several, such as io.delta.storage.S3DynamoDBLogStore: "
            "docs/service.md#tables-on-s3",
        )
    on_s3 = [place for place in places if scheme_of(place) in S3]
    return "set for several drivers" if on_s3 else "nothing lies on S3"


def storage(settings: ServiceSettings, files: Files) -> str:
    """Whether files can be written, read, listed, renamed and deleted under the root."""
    root = absolute_location(settings.location)
    folder, name = f"{root}/_relational_caches/doctor", f"{uuid.uuid4().hex}.json"
    path = f"{folder}/{name}"
    fix = f"let this user read, write and delete under {root}, or set another location"
    try:
        files.write(path, "ä")  # by writing another name and renaming it
        seen = files.read(path) == "ä" and name in files.names(folder)
        files.delete(path)
        stays = name in files.names(folder)
    except Exception as error:
        raise _CheckFailed(f"{root}: {str(error).splitlines()[0][:200]}", fix) from error
    if not seen or stays:
        raise _CheckFailed(f"{root}: what was written is not there, or stays", fix)
    return root


def _command(*words: str, url: str) -> str:
    """A command on a metastore, as it can be pasted into a shell: the metastore is named if it is
    not the one that all commands find, without its password, which is no remedy's to show."""
    from cachemgr.metastore.database import metastore_url

    option: list[str] = []
    if url != service_settings().metastore_url:
        shown = metastore_url(url)._replace(password=None).render_as_string(hide_password=False)
        option = ["--metastore", shown]
    return shlex.join(["cachemgr", *words, *option])


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return "admin"


def _general(name: str) -> str:
    return {
        "spark": "see the lines of Spark above; check spark_master and spark_conf",
        "spark_init": "correct the statements of the setting spark_init",
        "delta": "check the Delta packages, and the rights on the location",
    }.get(name, "`cachemgr --debug doctor` shows more")
