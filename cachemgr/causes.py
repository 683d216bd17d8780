"""What made Spark fail, in plain words, and whether it was no more than a storage that could not be
asked.

Py4J says "An error occurred while calling o1037.save." for a full disk and a wrong place alike;
what happened stands in the innermost causes.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from typing import Any, Final

_MOST_CAUSES: Final = 20
_FULL: Final = (
    r"No space left on device|the disk is full|ENOSPC|[Dd]isk quota exceeded|"
    r"QuotaExceededException|Status Code: 507|Insufficient Storage"
)
_DENIED: Final = (
    r"AccessControlException|AccessDenied|Access Denied|[Pp]ermission denied|403 Forbidden|"
    r"Status Code: 40[13]\b|401 Unauthorized|AuthorizationPermissionMismatch|"
    r"AuthorizationFailure|ExpiredToken|token has expired|InvalidAccessKeyId|"
    r"SignatureDoesNotMatch|NoAuthWithAWSException|CredentialInitializationException|"
    r"Unable to load credentials|failed to authenticate the request"
)
_TIMEOUT: Final = (
    r"SocketTimeoutException|ConnectTimeoutException|ApiCallTimeoutException|"
    r"ApiCallAttemptTimeoutException|HttpTimeoutException|Read timed out|[Cc]onnect timed out|"
    r"Connection timed out|ETIMEDOUT"
)
_AWAY: Final = (
    r"Status Code: 5\d\d|\b50[0234] (?:Internal Server Error|Bad Gateway|Service|Slow|Gateway)|"
    r"Status Code: 429|429 Too Many Requests|Slow ?Down|ServiceUnavailable|Service Unavailable|"
    r"AWSServiceThrottledException|AWSStatus500Exception|AWSClientIOException|"
    r"SdkClientException|Unable to execute HTTP request|NoHttpResponseException|"
    r"java\.net\.(?:ConnectException|NoRouteToHostException|UnknownHostException|SocketException)|"
    r"Connection refused|Connection reset|No route to host|Network is unreachable|"
    r"StandbyException|SafeModeException|NameNode is in safe mode|RetriableException|"
    r"BlockMissingException|Input/output error|Stale (?:NFS )?file handle|"
    r"Transport endpoint is not connected|Read-only file system|Too many open files|"
    r"Host is down|Resource temporarily unavailable"
)
# What a storage says that cannot be asked, or takes nothing, at this moment: of what is gone it
# says nothing.
_STORAGE: Final = (
    (_FULL, "the disk is full"),
    (_DENIED, "permission denied"),
    (_TIMEOUT, "the storage did not answer in time"),
    (_AWAY, "the storage is not available"),
)
# What is said of a failure, by the first of these that fits any of its causes.
_PLAIN: Final = (
    *_STORAGE[:2],
    # a limit that somebody has set does not pass by itself
    (r"File too large|EFBIG", "no file may grow any larger there"),
    (
        r"No FileSystem for scheme|UnsupportedFileSystemException|"
        r"FileSystem.{0,200}UnsupportedOperationException",
        "the location is of a storage that this Spark cannot write",
    ),
    (r"DELTA_VIOLATE_CONSTRAINT|DELTA_NOT_NULL_CONSTRAINT|CHECK constraint", "a CHECK constraint"),
    (r"OutOfMemoryError", "Spark ran out of memory"),
    (r"DELTA_CANNOT_MODIFY_APPEND_ONLY", "the table takes appended rows only"),
    *_STORAGE[2:],
)
_ERRNO: Final = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EIO,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.EMFILE,
        errno.ENFILE,
        errno.EAGAIN,
        errno.ENOTCONN,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
    }
)
_CLASS: Final = re.compile(r"^(?:[\w$]+\.)+[\w$]+(?::\s*|$)")


def cause_of(error: BaseException) -> str:
    """One line that says what went wrong.

    Args:
        error: What a refresh failed with.
    """
    return in_plain_words(texts_of(error)) or type(error).__name__


def were_jobs_cancelled(error: BaseException) -> bool:
    """Whether somebody cancelled the jobs: by Ctrl-C over a statement, at which PySpark cancels all
    of the application, or by hand.

    Args:
        error: What a refresh or a job failed with.
    """
    return "SPARK_JOB_CANCELLED" in str(error)


def is_storage_trouble(error: BaseException) -> bool:
    """Whether a storage could not be asked, or took nothing: it denied, did not answer, or is full.
    That may pass by itself, and says nothing of what lies there.

    Args:
        error: What something failed with.
    """
    found: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if found is None:
            break
        if isinstance(found, OSError) and found.errno in _ERRNO:
            return True
        if tell_of_storage(texts_of(found)):
            return True
        found = found.__cause__
    return False


def tell_of_storage(texts: Sequence[str]) -> bool:
    """`is_storage_trouble` by what a chain of causes says.

    Args:
        texts: What each says.
    """
    return any(re.search(pattern, text) for pattern, _ in _STORAGE for text in texts)


def in_plain_words(texts: Sequence[str]) -> str:
    """What a chain of causes comes to.

    Args:
        texts: What each says, the outermost first.

    Returns:
        The innermost cause that says anything, after a word for people where there is one; empty if
        none says anything.
    """
    said = [line for text in texts if (line := _CLASS.sub("", _first(text)))]
    if not said:
        return ""
    for pattern, plain in _PLAIN:
        for text in reversed(texts):
            if re.search(pattern, text, re.DOTALL):
                return f"{plain}: {_CLASS.sub('', _first(text)) or said[-1]}"
    return said[-1]


def texts_of(error: BaseException) -> list[str]:
    """What an error says and what each of its causes does, those in the JVM included, the outermost
    first.

    Args:
        error: Any.
    """
    # Py4J's errors and those that PySpark makes of them, named by what they have: this is also
    # called where there is no Spark
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return [str(error)]
    found: list[str] = []
    while java is not None and len(found) < _MOST_CAUSES:
        found.append(str(java.toString()))
        java = java.getCause()
    return found


def _first(text: str) -> str:
    return next((line.strip()[:500] for line in text.splitlines() if line.strip()), "")
