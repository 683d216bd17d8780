"""Passwords, keys and tokens: what counts as one, and texts with them masked.

A cache's definition, comment, place and properties are shown to every viewer and stand in each
export, so a credential has no place there: `refuse_secrets` refuses one.
One that was let in by an older release stays where it is, since a cache must go on being refreshed
and answering by its own text, and is masked wherever it is shown.

What counts as a credential, wherever it stands:

- the password of a URL (`scheme://user:password@host`) or of an Oracle one (`user/password@host`);
- a parameter of a URL by a telling name (`?password=…`, `;pwd=…`, `&sig=…`);
- what has the form of an access key or token of AWS, Azure, Google, Databricks, GitHub, GitLab,
  Slack or Stripe, a JSON web token, a private key in PEM, `Bearer …`, or a token of the service.

Beyond that `password=…`, `pwd=…`, `secret_key=…` and the like, as connection strings have them; in
SQL only within constants and comments, since `WHERE password = 'x'` is a comparison like any other;
and there the key that is given to AES_ENCRYPT or AES_DECRYPT as a constant. Placeholders (`***`,
`<password>`, `null`) are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cachemgr.errors import ConfigurationError, ErrorCode

MASK: Final = "***"
_NAMES: Final = (
    r"(?:password|passwd|passphrase|pwd|pw|"
    r"(?:client|app|api|shared|consumer)[._-]?secret|secret|"
    r"(?:secret|access|account|shared[._-]?access|api|auth|private|storage|encryption)"
    r"(?:[._-]?(?:access|account))?[._-]?key|"
    r"(?:auth|access|sas|refresh|session|id|security|bearer|api)[._-]?token|"
    r"shared[._-]?access[._-]?signature)"
)
# hosts and ports of what has no password in its URLs; a path may hold an @
_SCHEME: Final = re.compile(r"[A-Za-z][\w+.-]*$")
_WITHOUT_PASSWORD: Final = ("hdfs", "viewfs", "webhdfs", "swebhdfs", "abfs", "abfss", "file")


def _unless_port(match: re.Match[str]) -> str:
    scheme = _SCHEME.search(match.string, max(0, match.start() - 16), match.start())
    has_none = scheme is not None and scheme[0].lower() in _WITHOUT_PASSWORD
    is_port = has_none and re.match(r"\d+/", match["password"])
    return match[0] if is_port else f"://{match['user']}:{MASK}@"


def _unless_placeholder(match: re.Match[str]) -> str:
    value = match["value"]
    quote = value[0] if value[0] in "'\"" else ""
    return match[0] if _is_placeholder(value) else f"{match['name']}{quote}{MASK}{quote}"


def _is_placeholder(value: str) -> bool:
    bare = value.strip("'\"")
    return bare.lower() in ("", "null", "none", "true", "false", "?") or bool(
        re.fullmatch(r"[*.…]+|[xX]{3,}|<[^>]*>|\{.*\}|\$\{?.*|%s", bare)
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    """What is put in place of a credential of one kind. One of the `signs`, in lower case, stands
    in each text that holds such a credential: most texts hold none, and are looked at in vain."""

    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str] = rf"\1{MASK}"


_NAMED: Final = ("pass", "pw", "secret", "key", "token", "sig")
_ANYWHERE: Final = (
    # object stores, whose URLs have a bucket for a host: what stands before an @ is a key
    _Rule(
        ("://",),
        re.compile(r"(?i)\b((?:s3[an]?|gs|oss|cosn?|obs)://)[^/@\s'\"`]{1,512}(?=@)"),
    ),
    # a URL's password: postgresql://ann:secret@db/x, whatever is in it
    _Rule(
        ("://",),
        re.compile(r"://(?P<user>[^/\s:@'\"`]{0,256}):(?P<password>(?:(?!://)[^\s'\"`]){1,512})@"),
        _unless_port,
    ),
    _Rule(
        ("jdbc:oracle",),
        re.compile(r"(?i)(\bjdbc:oracle:\w{1,20}:[^/\s'\"@]{1,256}/)[^@\s'\"]{1,256}(?=@)"),
    ),
    # the same as a parameter, or a signature of object storage
    _Rule(
        (*_NAMED, "x-amz-credential", "x-goog-credential"),
        re.compile(
            rf"(?i)(?P<name>[?&;](?:ssl)?(?:{_NAMES}|sig|signature|token|x-amz-(?:signature|"
            r"credential|security-token)|x-goog-(?:signature|credential))=)(?P<value>[^&;\s'\"`]+)"
        ),
        _unless_placeholder,
    ),
    # a token of the service, which begins with its id
    _Rule(("cachemgr_",), re.compile(r"\b(cachemgr_[0-9a-f]+_)[0-9a-f]+")),
    _Rule(("bearer",), re.compile(r"(?i)\b(bearer\s+)[a-z0-9._~+/=-]{8,}")),
    # keys and tokens that tell themselves by their form
    _Rule(("akia", "asia"), re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b")),
    _Rule(
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        re.compile(r"\b(gh[pousr]_)[A-Za-z0-9]{30,}\b"),
    ),
    _Rule(
        ("github_pat_", "glpat-", "xox", "dapi"),
        re.compile(r"\b(github_pat_|glpat-|xox[abeoprs]-|dapi)[\w-]{20,}"),
    ),
    _Rule(("k_live_", "k_test_"), re.compile(r"\b([sr]k_(?:live|test)_)[A-Za-z0-9]{16,}\b")),
    _Rule(("aiza",), re.compile(r"\b(AIza)[\w-]{35}")),
    _Rule(("eyj",), re.compile(r"(?<![\w-])(eyJ)[\w-]{8,512}\.[\w-]{8,}\.[\w-]*")),
    _Rule(
        ("private key-----",),
        re.compile(
            r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
        ),
    ),
)
# as a connection string of libpq, ODBC or JDBC has it, or as JSON
_PAIRS: Final = (
    _Rule(
        _NAMED,
        re.compile(
            rf"(?i)(?P<name>(?<![A-Za-z0-9])(?:ssl)?{_NAMES}\s?=\s?)"
            r"(?P<value>'(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s'\"`;&,)]+)"
        ),
        _unless_placeholder,
    ),
    _Rule(
        _NAMED,
        re.compile(rf"(?i)(?P<name>\"(?:[\w.-]*[._-])?{_NAMES}\"\s*:\s*)(?P<value>\"[^\"]+\")"),
        _unless_placeholder,
    ),
)
# What is no code: constants, names in backticks, comments.
_TEXTS_IN_SQL: Final = re.compile(
    r"'(?P<a>(?:[^'\\]|\\.?|'')*+)(?:'|\Z)|\"(?P<b>(?:[^\"\\]|\\.?|\"\")*+)(?:\"|\Z)|"
    r"`(?P<c>(?:[^`]|``)*+)(?:`|\Z)|--(?P<d>[^\n]*)|/\*(?P<e>.*?)(?:\*/|\Z)",
    re.S,
)
_CIPHER_KEY: Final = re.compile(
    r"(?i)(?P<name>\b(?:try_)?aes_(?:en|de)crypt\s*\([^(),]*(?:\([^()]*\)[^(),]*)*,\s*)"
    r"(?P<value>'(?:[^'\\]|\\.|'')+'|\"(?:[^\"\\]|\\.|\"\")+\")"
)
_SECRET_KEY: Final = re.compile(
    r"(?i)secret|passw|credential|access[._-]?key|account[._-]?key|auth[._-]?token|sas[._-]?token|"
    r"api[._-]?key|private[._-]?key"
)
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SECRET_WORDS: Final = frozenset({"pw", "pwd", "passwd", "pass", "passphrase", "token", "apikey"})


def masked(text: str) -> str:
    """A text for people (a message, a comment, a line of a log) without passwords and tokens.

    >>> masked("postgresql://ann:secret@db/x?sslpassword=y")
    'postgresql://ann:***@db/x?sslpassword=***'
    >>> masked("s3a://KEY@bucket/t"), masked("abfss://box@account/t")
    ('s3a://***@bucket/t', 'abfss://box@account/t')
    >>> masked("host=db user=ann password='se cret' dbname=x")
    "host=db user=ann password='***' dbname=x"
    """
    return _applied(_PAIRS, _applied(_ANYWHERE, text))


def _applied(rules: Iterable[_Rule], text: str) -> str:
    lower = text.casefold()
    for rule in rules:
        if any(sign in lower for sign in rule.signs):
            text = rule.pattern.sub(rule.replacement, text)
    return text


def masked_sql(text: str) -> str:
    """SQL without the passwords and tokens in it; its comparisons stay as they are.

    >>> masked_sql("SELECT a FROM t WHERE password = 'x' AND url <> 'host=h password=y'")
    "SELECT a FROM t WHERE password = 'x' AND url <> 'host=h password=***'"
    """
    lower = text.casefold()
    if "crypt" in lower:
        text = _CIPHER_KEY.sub(_unless_placeholder, text)
    if any(sign in lower for sign in _NAMED):
        text = _TEXTS_IN_SQL.sub(_masked_part, text)
    return _applied(_ANYWHERE, text)


def _masked_part(match: re.Match[str]) -> str:
    inner = next(match[name] for name in "abcde" if match[name] is not None)
    shown = _applied(_PAIRS, inner)
    return match[0] if shown == inner else match[0].replace(inner, shown, 1)


def masked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties or settings without the values that are secret, by their keys or themselves.

    >>> masked_properties({"pw": "hunter2", "owner": "ann"})
    {'pw': '***', 'owner': 'ann'}
    """
    return {key: _masked_value(key, value) for key, value in properties.items()}


def _masked_value(key: str, value: str) -> str:
    if names_secret(key) and not _is_placeholder(value):
        return MASK
    return masked(value)


def names_secret(key: str) -> bool:
    """Whether the name of a setting or property says that its value is secret."""
    if _SECRET_KEY.search(key):
        return True
    words = [word.lower() for word in _WORDS.findall(key)]
    return bool(words) and words[-1] in _SECRET_WORDS


# Where SQL stands, in which a comparison is none; all other places are held to the stricter rule.
_SQL: Final = frozenset({"the SELECT", "the table's name", "its text"})


def secret_places(texts: Mapping[str, str], properties: Mapping[str, str]) -> tuple[str, ...]:
    """Where a credential stands among the texts of a cache or another statement.

    Args:
        texts: Each by the name of its place: `the SELECT` and the like hold SQL, clauses do not.
        properties: TBLPROPERTIES.

    Returns:
        The places, as a person would call them; never what stands there.

    >>> secret_places({"COMMENT": "pw=hunter2", "the SELECT": "SELECT 1"}, {"pw": "y"})
    ('COMMENT', "TBLPROPERTIES ('pw')")
    """
    found = [
        place
        for place, text in texts.items()
        if (masked_sql if place in _SQL else masked)(text) != text
    ]
    found += [
        f"TBLPROPERTIES ('{masked(key)}')"
        for key, value in properties.items()
        if _masked_value(key, value) != value or masked(key) != key
    ]
    return tuple(found)


def refuse_secrets(what: str, texts: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """Refuse what would show a credential to everybody.

    Args:
        what: Whose they are: a cache or another thing with its name.
        texts: See `secret_places`.
        properties: See `secret_places`.

    Raises:
        ConfigurationError: Names the places, not what stands there.
    """
    found = secret_places(texts, properties)
    if found:
        raise ConfigurationError(
            ErrorCode.SECRET_IN_DEFINITION,
            f"{what}: {', '.join(found)} holds what looks like a password or key, and everybody "
            "can read it there: give keys to the storage as settings of the Spark application "
            "(spark.hadoop.…), and leave them out here",
        )
