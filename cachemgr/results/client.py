"""Statements of a service, as those who want their rows use them: submitted once, waited for, and
read to the end though the connection breaks meanwhile."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import pyarrow as pa

from cachemgr.config.service_address import checked_service_url, checked_token, error_told
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.results.formats import MARK

_WAIT_SECONDS: Final = 30.0
_ANSWER_SECONDS: Final = 60.0
# A service that is started again is back within that.
_PATIENCE_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 1.0
_OVER: Final = frozenset({"FINISHED", "FAILED", "CANCELED", "EXPIRED", "UNKNOWN"})
Statement = Mapping[str, Any]


class _CutOff(Exception):
    """The service cannot be reached, or has stopped in the middle of an answer."""


@dataclass
class StatementClient:
    """Statements of one principal at one service.

    Args:
        server: The service's URL.
        token: A token of the service; None for one that is open.
        patience: Seconds that a service which does not answer is asked again for.

    `submitted` is the id of the last statement that was submitted, once it is known.

    Raises:
        ConfigurationError: The URL or the token can be none.
    """

    server: str
    token: str | None = None
    patience: float = _PATIENCE_SECONDS
    submitted: str | None = field(default=None, init=False)
    _http: httpx.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checked_service_url(self.server)
        checked_token(self.token or "", "the token")
        self._http = httpx.Client(
            base_url=f"{self.server}/api/v1",
            headers={"Authorization": f"Bearer {self.token}"} if self.token else {},
            timeout=_ANSWER_SECONDS,
        )

    def __enter__(self) -> StatementClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def submit(
        self,
        sql: str,
        *,
        key: str | None = None,
        wait_seconds: float = _WAIT_SECONDS,
        **asked: Any,
    ) -> Statement:
        """Have a statement run; sent twice, where an answer was lost, it runs once.

        Args:
            sql: The statement.
            key: Under which it runs once, however often it is submitted; one of its own if not
                given.
            wait_seconds: How long to wait for its end.
            asked: More of the request: maxRows, schema, settings, ….

        Returns:
            The statement as it stands.

        Raises:
            CacheManagerError: What the service says.
        """
        body = {"sql": sql, "waitSeconds": wait_seconds, **asked}
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        self.submitted = None
        try:
            found = self._asked("POST", "/statements", json=body, headers=headers)
            self.submitted = found["id"]
            return found
        except KeyboardInterrupt:
            # it may run, and nobody knows its id yet: its key tells
            with suppress(CacheManagerError):
                now = self._asked(
                    "POST", "/statements", json={**body, "waitSeconds": 0}, headers=headers
                )
                self.submitted = now["id"]
                self.give_up(now["id"])
            raise

    def get(self, statement_id: str, *, wait_seconds: float = 0) -> Statement:
        """A statement as it stands; raises CacheManagerError.

        Args:
            statement_id: Its id.
            wait_seconds: How long to wait for its end.
        """
        wait = {"waitSeconds": wait_seconds}
        return self._asked("GET", f"/statements/{statement_id}", params=wait)

    def cancel(self, statement_id: str) -> Statement:
        """Cancel a statement; raises CacheManagerError where it is over already."""
        return self._asked("POST", f"/statements/{statement_id}/cancel")

    def give_up(self, statement_id: str) -> None:
        """Cancel a statement, or give its result back, whichever it is; says nothing of trouble,
        for its time ends by itself.

        Args:
            statement_id: Its id.
        """
        for method, path in (("POST", "cancel"), ("DELETE", "result")):
            with suppress(httpx.HTTPError):
                if self._http.request(method, f"/statements/{statement_id}/{path}").is_success:
                    return

    def leave(self, statement: Statement) -> None:
        """Give up a statement that is not wanted any more; one that has written stays as it is, for
        whoever looks what it did.

        Args:
            statement: As it was seen last.
        """
        if statement["state"] != "FINISHED" or statement.get("written") is None:
            self.give_up(statement["id"])

    def finished(
        self, statement: Statement, told: Callable[[Statement], None] | None = None
    ) -> Statement:
        """A statement once it has finished.

        Args:
            statement: As it was submitted.
            told: Called with each state that is seen meanwhile.

        Raises:
            CacheManagerError: It has no result: its error.
        """
        while statement["state"] not in _OVER:
            if told is not None:
                told(statement)
            try:
                statement = self.get(statement["id"], wait_seconds=_WAIT_SECONDS)
            except CacheManagerError as lost:
                asked = f"it was asked about the statement {statement['id']}"
                raise CacheManagerError(lost.code, f"{lost.message}; {asked}") from None
        if statement["state"] != "FINISHED":
            error = statement["error"] or {"type": None, "message": "it has no result any more"}
            raise CacheManagerError(
                error["type"] or ErrorCode.STATEMENT_FAILED,
                f"the statement {statement['id']} is {statement['state']}: {error['message']}",
            )
        return statement

    def batches(self, statement_id: str) -> Iterator[pa.RecordBatch]:
        """The rows of a statement that has finished, about a megabyte at a time; one batch at
        least.

        Args:
            statement_id: Its id.

        Raises:
            CacheManagerError: What the service says, or that it is gone for longer than `patience`.
        """
        wanted, got, mark = self.get(statement_id)["rows"], 0, ""
        tried_until = time.monotonic() + self.patience
        while True:
            try:
                for batch, after in self._streamed(statement_id, mark):
                    mark, tried_until = after, time.monotonic() + self.patience
                    got += batch.num_rows
                    yield batch
                # the end of a stream that was cut off looks like any other
                if got == wanted:
                    break
                raise _CutOff(f"{got} of {wanted} rows came")
            except _CutOff as error:
                if got > wanted or (got and not mark) or time.monotonic() > tried_until:
                    raise self._unreachable(error) from None
                time.sleep(_PAUSE_SECONDS)
        if not wanted:
            yield pa.RecordBatch.from_pylist([], schema=self.schema(statement_id))

    def schema(self, statement_id: str) -> pa.Schema:
        """The schema of its rows; raises CacheManagerError.

        Args:
            statement_id: Its id.
        """
        answer = self._sent("GET", f"/statements/{statement_id}/rows", params={"pageSize": 1})
        schema: pa.Schema = pa.ipc.open_stream(answer.content).schema
        return schema

    def _streamed(self, statement_id: str, mark: str) -> Iterator[tuple[pa.RecordBatch, str]]:
        """Batches, each with where the next one begins."""
        params = {"format": "arrow", **({"pageToken": mark} if mark else {})}
        path = f"/statements/{statement_id}/result"
        try:
            with self._http.stream("GET", path, params=params) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _error(answer, self.server)
                file = pa.PythonFile(_Body(answer.iter_raw()), mode="r")
                reader = pa.ipc.open_stream(file)
                while True:
                    try:
                        batch, more = reader.read_next_batch_with_custom_metadata()
                    except StopIteration:
                        return
                    found = (more or {}).get(MARK.encode())
                    yield batch, "" if found is None else found.decode()
        except (httpx.TransportError, pa.ArrowInvalid, OSError) as error:
            raise _CutOff(str(error) or type(error).__name__) from error

    def _asked(self, method: str, path: str, **more: Any) -> Statement:
        found: Statement = self._sent(method, path, **more).json()
        return found

    def _sent(self, method: str, path: str, **more: Any) -> httpx.Response:
        until = None
        while True:
            try:
                answer = self._http.request(method, path, **more)
                error = _error(answer, self.server) if not answer.is_success else None
                if answer.status_code != 503:
                    break
            except httpx.TransportError as lost:
                error = self._unreachable(lost)
            # an answer that was lost may have been waited for, for as long as the patience lasts
            until = until or time.monotonic() + self.patience
            if time.monotonic() > until:
                break
            time.sleep(_PAUSE_SECONDS)
        if error is not None:
            raise error
        return answer

    def _unreachable(self, error: Exception) -> CacheManagerError:
        return CacheManagerError(
            ErrorCode.SERVICE_UNREACHABLE,
            f"the service at {self.server} does not answer ({error or type(error).__name__}): "
            "check its URL, and that `cachemgr serve` runs",
        )


class _Body:
    """The body of an answer as a file that is read once."""

    closed = False

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        parts, left = [], size
        while left:
            if not self._rest:
                self._rest = next(self._pieces, b"")
                if not self._rest:
                    break
            part = self._rest if left < 0 else self._rest[:left]
            self._rest = self._rest[len(part) :]
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def _error(answer: httpx.Response, server: str) -> CacheManagerError:
    return error_told(answer.content, answer.status_code, server)


def fetch(
    sql: str,
    *,
    server: str | None = None,
    token: str | None = None,
    max_rows: int | None = None,
    key: str | None = None,
    **asked: Any,
) -> Iterator[pa.RecordBatch]:
    """The rows of a query that a service runs, as Arrow batches of about a megabyte; or those that
    Spark gives for a statement that writes, such as how many rows it changed.

    It runs when the first batch is asked for. One that is left before its last batch is cancelled,
    or its result given up.

    Args:
        sql: The statement.
        server: The service's URL; CACHEMGR_SERVER if not given.
        token: A token of the service; CACHEMGR_TOKEN if not given.
        max_rows: No more rows than that.
        key: Under which it runs once, however often it is sent: for one that writes.
        asked: More of the request: schema, settings, timeoutSeconds, ….

    Raises:
        CacheManagerError: What the service says of the query, or that it cannot be reached.
    """
    address = server or os.environ.get("CACHEMGR_SERVER", "")
    with StatementClient(address, token or os.environ.get("CACHEMGR_TOKEN")) as client:
        statement = client.submit(sql, key=key, maxRows=max_rows, **asked)
        try:
            statement = client.finished(statement)
            yield from client.batches(statement["id"])
        finally:
            client.leave(statement)
