"""`${…}` in texts: Spark puts settings, system properties and environment variables in there, in
comments and constants too.

In a user's own session that is his business, and his statement is substituted once, where he gives
it (`cachemgr.spark.api`). What comes through a door would be substituted by the service, with the
service's secrets: it is refused there, and no session of ours substitutes anything.
"""

from __future__ import annotations

from typing import Final

from cachemgr.errors import DefinitionError, ErrorCode

SUBSTITUTE: Final = "spark.sql.variable.substitute"
_MARK: Final = "${"


def is_substituted(text: str) -> bool:
    """Whether Spark would look for something to put into a text.

    >>> is_substituted("SELECT '${env:HOME}'"), is_substituted("SELECT '$1', '{a}'")
    (True, False)
    """
    return _MARK in text


def refuse_substitution(text: str, what: str) -> None:
    """Refuse a text that Spark would put something into.

    Args:
        text: The text.
        what: What it is called, for the message.

    Raises:
        DefinitionError: It holds `${`.
    """
    if is_substituted(text):
        raise DefinitionError(
            ErrorCode.SUBSTITUTION_REFUSED,
            f"{what} holds ${{, where Spark would put a variable of this process: write the value "
            "itself; where the two characters are meant, concat('$', '{…')",
        )
