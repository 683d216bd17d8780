"""Small TPC-H tables from a seed, in which the queries' default parameters find rows.

Not dbgen: names, brands, dates and sizes are drawn from the values that the queries ask for and a
few beside them, so that each filter keeps some rows and drops some.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

Rows = dict[str, list[tuple[Any, ...]]]

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0),
    ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4),
    ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1),
    ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
_HOME = (2, 3, 6, 7, 8, 12, 18, 20, 20, 3)  # where suppliers and customers cluster
_TYPES = (
    "ECONOMY ANODIZED STEEL", "PROMO BURNISHED COPPER", "LARGE POLISHED BRASS",
    "MEDIUM POLISHED TIN", "STANDARD PLATED BRASS", "PROMO ANODIZED NICKEL",
)  # fmt: skip
_NAMES = ("forest green", "forest olive", "dark green", "green lace", "blush thistle", "plum rose")
_BRANDS = ("Brand#12", "Brand#23", "Brand#34", "Brand#45", "Brand#51")
_BOXES = {
    "Brand#12": ("SM CASE", "SM BOX"),
    "Brand#23": ("MED BOX", "MED BAG"),
    "Brand#34": ("LG CASE", "LG PKG"),
}
_SIZES = (1, 3, 5, 9, 14, 15, 15, 19, 23, 36, 45, 49)
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("AIR", "AIR REG", "MAIL", "SHIP", "RAIL", "TRUCK")
_WAYS = ("DELIVER IN PERSON", "DELIVER IN PERSON", "NONE", "COLLECT COD")
_CODES = (13, 31, 23, 29, 30, 18, 17, 11, 25)
PARTS, SUPPLIERS, CUSTOMERS, ORDERS = 60, 40, 120, 900


def make(seed: int = 1) -> Rows:
    """Rows of each table, columns as in schema_h.sql."""
    rng = Random(seed)
    rows: Rows = {
        "region": [(i, name, None) for i, name in enumerate(REGIONS)],
        "nation": [(i, name, region, None) for i, (name, region) in enumerate(NATIONS)],
        "part": [_part(rng, i) for i in range(1, PARTS + 1)],
        "supplier": [_supplier(rng, i) for i in range(1, SUPPLIERS + 1)],
        "customer": [_customer(rng, i) for i in range(1, CUSTOMERS + 1)],
        "partsupp": [],
        "orders": [],
        "lineitem": [],
    }
    offers = _offers(rng)
    rows["partsupp"] = [
        (part, supplier, rng.randint(1, 400), _money(rng, 100, 5000), "ps")
        for part, supplier in offers
    ]
    for number in range(1, ORDERS + 1):
        _order(rng, number, offers, rows)
    return rows


def _money(rng: Random, low: int, high: int) -> Decimal:
    return Decimal(rng.randint(low, high)).scaleb(-2)


def _part(rng: Random, key: int) -> tuple[Any, ...]:
    brand = rng.choice(_BRANDS)
    box = rng.choice(_BOXES.get(brand, ("JUMBO JAR", "WRAP DRUM")))
    name, kind, size = rng.choice(_NAMES), rng.choice(_TYPES), rng.choice(_SIZES)
    return (key, name, f"Manufacturer#{brand[6]}", brand, kind, size, box,
            _money(rng, 90000, 200000), "p")  # fmt: skip


def _supplier(rng: Random, key: int) -> tuple[Any, ...]:
    note = "slow Customer and many Complaints" if key % 9 == 0 else "carefully packed"
    return (key, f"Supplier#{key:09}", f"road {key}", rng.choice(_HOME), f"10-{key:03}",
            _money(rng, -50000, 900000), note)  # fmt: skip


def _customer(rng: Random, key: int) -> tuple[Any, ...]:
    segment = rng.choice(("BUILDING", "BUILDING", "AUTOMOBILE", "MACHINERY"))
    return (key, f"Customer#{key:09}", f"street {key}", rng.choice(_HOME),
            f"{rng.choice(_CODES)}-{key:04}", _money(rng, -90000, 990000), segment,
            "c")  # fmt: skip


def _offers(rng: Random) -> list[tuple[int, int]]:
    found = []
    for part in range(1, PARTS + 1):
        found += [(part, s) for s in rng.sample(range(1, SUPPLIERS + 1), 4)]
    return found


def _order(rng: Random, number: int, offers: list[tuple[int, int]], rows: Rows) -> None:
    # a third of the customers never order
    customer = rng.choice([c for c in range(1, CUSTOMERS + 1) if c % 3])
    day = date(1992, 1, 1) + timedelta(days=rng.randint(0, 2400))
    big = number % 60 == 0
    lines = [
        _line(rng, number, n, day, offers, big)
        for n in range(1, (7 if big else rng.randint(1, 5)) + 1)
    ]
    total = sum((line[5] for line in lines), Decimal(0))
    note = "special packages requests" if number % 11 == 0 else "quickly"
    status = rng.choice(("F", "F", "O", "P"))
    priority = rng.choice(_PRIORITIES)
    rows["orders"].append((number, customer, status, total, day, priority, "clerk", 0, note))
    rows["lineitem"] += lines


def _line(
    rng: Random, order: int, number: int, day: date, offers: list[tuple[int, int]], big: bool
) -> tuple[Any, ...]:
    part, supplier = rng.choice(offers)
    quantity = Decimal(
        rng.randint(45, 50) if big else rng.choice((1, 2, 3, 8, 11, 15, 20, 22, 30, 40))
    )
    shipped = day + timedelta(days=rng.randint(1, 120))
    committed = day + timedelta(days=rng.randint(20, 100))
    received = shipped + timedelta(days=rng.randint(1, 30))
    flag = rng.choice("RAN")
    discount = Decimal(rng.randint(0, 10)).scaleb(-2)
    return (order, part, supplier, number, quantity.quantize(Decimal("0.01")),
            _money(rng, 90000, 9000000), discount, Decimal(rng.randint(0, 8)).scaleb(-2), flag,
            rng.choice("OF"), shipped, committed, received, rng.choice(_WAYS), rng.choice(_MODES),
            "l")  # fmt: skip
