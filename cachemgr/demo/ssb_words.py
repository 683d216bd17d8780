"""The value lists of the Star Schema Benchmark: regions, nations, months, colours, …"""

from __future__ import annotations

from collections.abc import Sequence

#: Nation to region, 5 nations a region. A city is the nation cut or padded to 9 plus a digit.
NATIONS: tuple[tuple[str, str], ...] = (
    ("ALGERIA", "AFRICA"),
    ("ARGENTINA", "AMERICA"),
    ("BRAZIL", "AMERICA"),
    ("CANADA", "AMERICA"),
    ("CHINA", "ASIA"),
    ("EGYPT", "MIDDLE EAST"),
    ("ETHIOPIA", "AFRICA"),
    ("FRANCE", "EUROPE"),
    ("GERMANY", "EUROPE"),
    ("INDIA", "ASIA"),
    ("INDONESIA", "ASIA"),
    ("IRAN", "MIDDLE EAST"),
    ("IRAQ", "MIDDLE EAST"),
    ("JAPAN", "ASIA"),
    ("JORDAN", "MIDDLE EAST"),
    ("KENYA", "AFRICA"),
    ("MOROCCO", "AFRICA"),
    ("MOZAMBIQUE", "AFRICA"),
    ("PERU", "AMERICA"),
    ("ROMANIA", "EUROPE"),
    ("RUSSIA", "EUROPE"),
    ("SAUDI ARABIA", "MIDDLE EAST"),
    ("UNITED KINGDOM", "EUROPE"),
    ("UNITED STATES", "AMERICA"),
    ("VIETNAM", "ASIA"),
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
#: The season of each month.
SEASONS = (
    "Winter", "Winter", "Winter", "Spring", "Summer", "Summer",
    "Summer", "Summer", "Fall", "Fall", "Christmas", "Christmas",
)  # fmt: skip
#: month * 100 + day of the ten holidays.
HOLIDAYS = (101, 220, 420, 520, 720, 820, 920, 1020, 1120, 1224)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
SHIP_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
COLORS = (
    "almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blanched", "blue",
    "blush", "brown", "burlywood", "burnished", "chartreuse", "chiffon", "chocolate", "coral",
    "cornflower", "cornsilk", "cream", "cyan", "dark", "deep", "dim", "dodger", "drab",
    "firebrick", "floral", "forest", "frosted", "gainsboro", "ghost", "goldenrod", "green",
    "grey", "honeydew", "hot", "indian", "ivory", "khaki", "lace", "lavender", "lawn", "lemon",
    "light", "lime", "linen", "magenta", "maroon", "medium", "metallic", "midnight", "mint",
    "misty", "moccasin", "navajo", "navy", "olive", "orange", "orchid", "pale", "papaya",
    "peach", "peru", "pink", "plum", "powder", "puff", "purple", "red", "rose", "rosy", "royal",
    "saddle", "salmon", "sandy", "seashell", "sienna", "sky", "slate", "smoke", "snow",
    "spring", "steel", "tan", "thistle", "tomato", "turquoise", "violet", "wheat", "white",
    "yellow",
)  # fmt: skip
_TYPE_1 = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
_TYPE_2 = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
_TYPE_3 = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
TYPES = tuple(f"{a} {b} {c}" for a in _TYPE_1 for b in _TYPE_2 for c in _TYPE_3)
_BOX_1 = ("SM", "LG", "MED", "JUMBO", "WRAP")
_BOX_2 = ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
CONTAINERS = tuple(f"{a} {b}" for a in _BOX_1 for b in _BOX_2)

CITIES = tuple(f"{nation[:9]:<9}{digit}" for nation, _ in NATIONS for digit in range(10))


def pick(words: Sequence[str | int], index: str) -> str:
    """SQL that takes the word at a 0-based index expression.

    Args:
        words: The list; Spark folds it to one constant.
        index: SQL of the index; must stay within the list.

    Returns:
        A SQL expression.
    """
    literals = ", ".join(str(w) if isinstance(w, int) else f"'{w}'" for w in words)
    return f"array({literals})[{index}]"
