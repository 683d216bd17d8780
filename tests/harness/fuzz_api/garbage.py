# ruff: noqa: E501 (tables of odd values)
"""Requests that are none: broken heads, bodies that end too early or never, JSON that nobody should
send, tricks in paths, and each parameter of each operation with values that are hard to take."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tests.harness.fuzz_api.costly import NAMES, named
from tests.harness.fuzz_api.texts import mutated, queries, statements

_DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "openapi.json"
_TEXTS: Final = (
    "", " ", "x", "\0", "\ud800", "\udc00x", "\ufeff", "\u202e", "\U0001f600", "a" * 300, "a" * 5000,
    "cube", "default.cube", "a.b.c.d", ".", "..", "../../etc/passwd", "..%2f..%2fetc", "%00", "%ff",
    "%", "{}", "{0}", "${x}", "'; DROP TABLE caches --", '"', "\\", "`", "a`b", "/", "//", "?", "#",
    "null", "true", "NaN", "Infinity", "-1", "0", "1e309", "9" * 30, "9" * 5000, "1.5", "0x10", "٣",
    "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "2026-02-30T00:00:00Z",
    "2026-01-31T24:00:00Z", "2026-01-31T12:00:00+99:99", "2026-01-31T12:00:60Z", "²", "\r\nX: y",
    "EVERY 1 SECOND", "EVERY 99999999999999 DAYS", "CRON '* * * * *'", "MAX STALENESS UNLIMITED", *NAMES,
)  # fmt: skip
_NUMBERS: Final = (0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**30, 10**4000, 0.5, 1e308, -0.0)
_MANY_DIGITS: Final = "@digits"  # written into a body as a number that Python cannot read
_JSON_TEXTS: Final = (
    b"", b"{", b"nul", b"NaN", b"-Infinity", b"1e400", b'"', b'"\\ud800"', b'{"sql": "\\ud800 \\udc00"}',
    b'{"sql": "SELECT \\ud800"}', b'{"sql": "SELECT 1", "sql": 1}', b'{"\\ud800": 1}', b"\xff\xfe{\0}\0",
    b"\xef\xbb\xbf{}", b'{"sql": "\xff\xfe"}', b'{"sql": "\xed\xa0\x80"}', b"[]" * 10, b'{"a":' * 9999,
    b'{"sql": "SELECT 1", "settings": {"\\ud800": "\\udfff"}}',
    b'{"sql": "SELECT 1", "settings": {"spark.sql.session.timeZone": "\\udfff"}}', b'{"sql": 1e999}', b"[" * 200_000,
    b'{"sql": ' + b"9" * 5000 + b"}", b'{"version": ' + b"9" * 5000 + b"}", b"\0" * 100, b"{} {}",
    b'{"definitions": ' + b'{"caches": [' * 500 + b"]}" * 500 + b"}", b'{"ddl": "' + b"(" * 900_000 + b'"}',
    b'{"sql": "' + b"SELECT (" * 200_000 + b'"}', b'{"sql": "' + b"\\u0000" * 1000 + b'"}',
)  # fmt: skip
_TYPES: Final = (
    "application/json", "application/json", "application/json; charset=utf-16", "text/plain", "",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data",
    "application/json, text/html", "\xff", "application/" + "j" * 9000, "application/json;" * 99,
)  # fmt: skip
_HEADERS: Final = (
    "X", "X:", ": x", " folded: x", "X: a\r\n b", "X: \0", "X\0: a", "X: \xff\xfe", "X y: z", "X: " + "a" * 70000,
    "Content-Length: -1", "Content-Length: abc", "Content-Length: 1, 2", "Content-Length: +5", "Content-Length: \xb2",
    "Content-Length: " + "9" * 25, "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 99999999",
    "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: \x0bchunked",
    "Host: ", "Host: a\r\nHost: b", "Host: [::1", "Host: [x]:99999999", "Host: evil.example", "Host: \xff",
    "Origin: null", "Origin: http://[", "Origin: //x", "Origin: http://\xff", "Connection: upgrade\r\nUpgrade: websocket",
    "Upgrade: h2c", "Expect: 100-continue", "Expect: x", "Connection: close", "Connection: \xff", "Cookie: " + "a=b;" * 5000,
    "Authorization:", "Authorization: Bearer", "Authorization: Bearer  ", "Authorization: Bearer \xff\xfe", "Authorization: Basic eA==",
    "Authorization: Bearer " + "x" * 60000, "Authorization: bearer a b", "Authorization: x", "Idempotency-Key: ", "Idempotency-Key: \xff",
    "Idempotency-Key: " + "k" * 129, "Idempotency-Key: key", "X-Request-Id: \xff", "X-Request-Id: " + "a" * 65, "X-Request-Id: ../../x",
    "Accept: \xff", "Range: bytes=0-1", "X-HTTP-Method-Override: DELETE", "X-Forwarded-For: \xff", "Forwarded: for=x",
    "Accept-Encoding: " + "gzip," * 3000, *(f"X-{n}: y\r\nX-{n}: z" for n in range(3)), "\r\n".join(f"X-{n}: y" for n in range(900)),
)  # fmt: skip
_CHUNKS: Final = (
    b"zz\r\nx\r\n0\r\n\r\n", b"-1\r\nx\r\n0\r\n\r\n", b"5\r\nab\r\n0\r\n\r\n", b"ffffffffffffffffffff\r\nx", b"5", b"5\r\n",
    b"2;" + b"e" * 9000 + b"\r\n{}\r\n0\r\n\r\n", b"2\r\n{}\r\n0\r\nX: y\r\n\r\n", b"2\r\n{}XX0\r\n\r\n", b"0\r\n\r\n", b"2\n{}\n0\n\n",
    b"2\r\n{}\r\n", b"1\r\n{\r\n" * 5000, b"100000\r\n" + b"x" * 0x100000 + b"\r\n" + b"200000\r\n" + b"x" * 0x200000 + b"\r\n0\r\n\r\n",
    b"\xff\r\n", b"0x2\r\n{}\r\n0\r\n\r\n", b" 2 \r\n{}\r\n0\r\n\r\n",
)  # fmt: skip
_METHODS: Final = ("GET", "GET", "POST", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE",
    "CONNECT", "get", "G\xff", "PRI", "X" * 9000, "", "GET GET")  # fmt: skip
_VERSIONS: Final = ("HTTP/1.1",) * 12 + (
    "HTTP/1.0",
    "HTTP/2.0",
    "HTTP/9.9",
    "HTTP/1.1 x",
    "http/1.1",
    "",
    "\xff",
)
# that wait for something, or start what takes long: fuzzed with little of either
_WAITING: Final = "waitSeconds"


@cache
def operations() -> list[tuple[str, str, Mapping[str, Any]]]:
    """Method, path and description of all operations."""
    document = json.loads(_DOCUMENT.read_text())
    paths = document["paths"].items()
    return [(m.upper(), path, o) for path, methods in paths for m, o in methods.items()]


@cache
def _texts() -> tuple[list[str], list[str]]:
    return statements(), queries()


def request(choose: random.Random, token: str) -> bytes:
    """All bytes of one connection, or of its beginning.

    Args:
        choose: All choices come from it.
        token: A good one, for those requests that are to get far.
    """
    return choose.choice(_KINDS)(choose, token)


def _head(
    choose: random.Random,
    token: str,
    method: str,
    target: str,
    headers: list[str],
    length: int | None,
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *headers]
    if choose.random() < 0.95:
        lines.append(f"Authorization: Bearer {token}")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _operation(choose: random.Random, token: str) -> bytes:
    """An operation with hard values in its parameters and its body."""
    return _call(choose, token, ["Connection: close"])


def _call(choose: random.Random, token: str, headers: list[str]) -> bytes:
    method, path, operation = choose.choice(operations())
    for part in operation.get("parameters", ()):
        if part["in"] == "path":
            value = choose.choice(_TEXTS)
            escaped = quote(value.encode("utf-8", "surrogatepass"), safe="")
            path = path.replace(
                "{" + part["name"] + "}", escaped if choose.random() < 0.9 else value
            )
    query = []
    for part in operation.get("parameters", ()):
        if part["in"] == "query" and choose.random() < 0.6:
            value = "0.1" if part["name"] == _WAITING else _query_value(choose)
            query.append(f"{part['name']}={value}")
    body = b""
    if "requestBody" in operation:
        body = _body(choose, operation)
    target = path + ("?" + "&".join(query) if query else "")
    target = target.replace(" ", "%20").replace("\r", "").replace("\n", "")
    target = quote(target.encode("utf-8", "surrogatepass"), safe="%/?&=:#[]@!$'()*+,;\"`\\{}|<>^")
    kind = "application/json" if choose.random() < 0.9 else choose.choice(_TYPES)
    return (
        _head(choose, token, method, target, [*headers, f"Content-Type: {kind}"], len(body)) + body
    )


def _query_value(choose: random.Random) -> str:
    value = choose.choice((*_TEXTS, *map(_number, _NUMBERS)))
    if choose.random() < 0.2:
        made = json.dumps(choose.choice((["caches", value], [value], {"a": value}, value)))
        value = base64.urlsafe_b64encode(made.encode("utf-8", "surrogatepass")).decode()
    return quote(value.encode("utf-8", "surrogatepass"), safe="")


def _number(value: float) -> str:
    return f"1{'0' * 4000}" if value == 10**4000 else str(value)


def _body(choose: random.Random, operation: Mapping[str, Any]) -> bytes:
    if choose.random() < 0.15:
        return choose.choice(_JSON_TEXTS)
    ddl, sql = _texts()
    name = operation["operationId"]
    value: dict[str, Any] = {
        "createCache": {"ddl": _statement(choose, ddl)},
        "createJoin": {"ddl": _statement(choose, ddl)},
        "updateCache": {
            "version": 1,
            "refresh": "EVERY 1 HOUR",
            "freshness": "STRICT",
            "paused": True,
        },
        "startRefresh": {"mode": "FULL"},
        "restrictTable": {"table": choose.choice(_TEXTS)},
        "grantSelect": {"table": choose.choice(_TEXTS), "principal": choose.choice(_TEXTS)},
        "planDefinitions": _definitions(choose),
        "applyDefinitions": _definitions(choose),
    }.get(name, {"sql": mutated(choose, sql, most=20_000), "settings": {}, "candidates": 3})
    for _ in range(choose.choice((0, 0, 1, 1, 2))):
        value = _changed(choose, value)
    digits = choose.choice(("9" * 4301, "-" + "9" * 9000, "1" * 5000 + ".5", "1e" + "9" * 5000))
    return json.dumps(value).replace(f'"{_MANY_DIGITS}"', digits).encode()


def _statement(choose: random.Random, ddl: list[str]) -> str:
    return named(choose) if choose.random() < 0.2 else mutated(choose, ddl, most=20_000)


def _definitions(choose: random.Random) -> dict[str, Any]:
    ddl, sql = _texts()
    caches = [
        {
            "name": choose.choice(_TEXTS),
            "definition": mutated(choose, sql, most=3000),
            "refresh": choose.choice(_TEXTS),
            "freshness": choose.choice(_TEXTS),
            "properties": {choose.choice(_TEXTS): choose.choice(_TEXTS)},
        }
        for _ in range(choose.randrange(3))
    ]
    joins = [{"name": "j", "ddl": mutated(choose, ddl, most=3000)}]
    return {"definitions": {"version": 1, "caches": caches, "joins": joins}, "prune": False}


def _changed(choose: random.Random, value: Any) -> Any:
    """A JSON value with something hard somewhere in it."""
    if isinstance(value, dict) and value and choose.random() < 0.85:
        key = choose.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key or choose.random() < 0.9}
        if choose.random() < 0.1:
            return {**rest, choose.choice(_TEXTS): choose.choice(_TEXTS)}
        return {**rest, key: _changed(choose, value[key])}
    if isinstance(value, list) and value and choose.random() < 0.7:
        return [*value[1:], _changed(choose, value[0])]
    kinds: tuple[Any, ...] = (
        None, True, [], {}, [[]], choose.choice(_TEXTS), choose.choice(_TEXTS), choose.choice(_NUMBERS[:8]),
        float("nan"), float("inf"), _MANY_DIGITS, _MANY_DIGITS, [value] * 3, {"a": value}, "x" * 100_000, list(range(2000)),
    )  # fmt: skip
    return choose.choice(kinds)


def _raw_head(choose: random.Random, token: str) -> bytes:
    """A head that is hardly one."""
    method, target = choose.choice(_METHODS), choose.choice(_TARGETS)
    first = f"{method} {target} {choose.choice(_VERSIONS)}"
    odd = [choose.choice(_HEADERS) for _ in range(choose.randrange(4))]
    lines = [first, *(["Host: localhost"] if choose.random() < 0.9 else []), *odd]
    if choose.random() < 0.7:
        lines.append(f"Authorization: Bearer {token}")
    end = choose.choice(("\r\n", "\r\n", "\r\n", "\n", "\r"))
    data = (end.join(lines) + end * 2).encode("latin-1", "replace")
    body = choose.choice((b"", b"", b"{}", choose.choice(_JSON_TEXTS), choose.choice(_CHUNKS)))
    return data + body


def _bad_chunks(choose: random.Random, token: str) -> bytes:
    headers = ["Transfer-Encoding: chunked", "Content-Type: application/json"]
    path = choose.choice(("/api/v1/rewrite", "/api/v1/caches", "/healthz"))
    return _head(choose, token, "POST", path, headers, None) + choose.choice(_CHUNKS)


def _bad_length(choose: random.Random, token: str) -> bytes:
    """A body that is longer or shorter than it says."""
    body = choose.choice((b"{}", choose.choice(_JSON_TEXTS)))
    said = max(0, len(body) + choose.choice((-1, 1, 5, 1000, 10**6, 10**9, 10**15)))
    headers = ["Content-Type: application/json"]
    return _head(choose, token, "POST", "/api/v1/rewrite", headers, said) + body


def _no_http(choose: random.Random, token: str) -> bytes:
    return choose.choice(
        (
            choose.randbytes(choose.randrange(1, 3000)),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + choose.randbytes(300),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\r\n" * 5000,
            b"GET " + b"a" * 300_000,
            b"\0" * 70_000,
            b"GET /healthz HTTP/1.1\r\n",
        )
    )


def _several(choose: random.Random, token: str) -> bytes:
    """Requests one behind the other on one connection."""
    return b"".join(_call(choose, token, []) for _ in range(choose.randrange(2, 6)))


_TARGETS: Final = (
    "/healthz", "/healthz/", "//healthz", "/readyz?x=1&x=2", "/metrics", "/api/v1/caches", "/api/v1/caches/",
    "/api/v1/caches/..", "/api/v1/../../etc/passwd", "/api/v1/caches/%2e%2e", "/api/v1/caches/%00", "/%ff", "/api//v1/caches",
    "/api/v1/caches/a%2fb", "/api/v1/caches/%ff%fe", "/api/v1/caches/%ED%A0%80", "/api/v1/caches?pageToken=%ff", "*", "",
    "http://evil.example/api/v1/caches", "/api/v1/caches;x=y", "/api/v1/caches?pageSize=²", "/\xff\xfe", "/api/v1/caches#x",
    "/api/v1/caches/" + "a" * 9000, "/" + "a/" * 9000, "/api/v1/caches?" + "a=b&" * 3000, "/api/v1/caches?like=%25%00", "localhost:80",
    "/api/v1/caches/a/grants/..%2f..", "/api/v1/caches/a/grants/%ED%A0%80", "/api/v1/refreshes/%0d%0aX:%20y", "?", "/?%", "/%", "/%zz",
)  # fmt: skip
Maker = Callable[[random.Random, str], bytes]
_KINDS: Final[tuple[Maker, ...]] = (
    _operation, _operation, _operation, _operation, _operation, _operation, _raw_head, _raw_head, _bad_chunks,
    _bad_length, _no_http, _several,
)  # fmt: skip
