"""Numbers as they are written in a text.

Python refuses to convert more than some thousand digits, and takes digits of other scripts for
those of ASCII; Spark does neither.
"""

from __future__ import annotations

import re
from typing import Final

# more than any integer, position or size of Spark has
_MOST_DIGITS: Final = 38
_WHOLE: Final = re.compile(rf"([+-]?)(?=[0-9])0*+([0-9]{{0,{_MOST_DIGITS}}})")


def whole_number(text: str) -> int | None:
    """The whole number that a text is.

    Args:
        text: ASCII digits, maybe with a sign.

    Returns:
        The number; None if the text is none, or one of more than 38 digits.

    >>> whole_number("-0042"), whole_number("1.5"), whole_number("9" * 5000), whole_number("²")
    (-42, None, None, None)
    """
    found = _WHOLE.fullmatch(text)
    return int(found[1] + (found[2] or "0")) if found else None
