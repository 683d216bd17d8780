"""The turns of the tests that start servers and programs, each of which takes a processor a minute:
two at a commit, and not one of each module.

test_faulty_sidecars has the numbers 0 to 3, test_every_door 4 and 5, test_ssb_doors 6,
test_extension 7 and 8, test_other_rules 9 and 10.
"""

from __future__ import annotations

from typing import Final

SHARES: Final = 6
