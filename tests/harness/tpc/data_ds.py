"""Small TPC-DS tables from a seed, in which the queries' default parameters find rows.

Not dsdgen: each column is drawn from the few values that some query asks for and one or two beside
them, and what a query wants together is put together (an item's brand follows its category, an
address's state its county). Foreign keys are NULL now and then, as the specification allows. The
facts are in data_ds_facts.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from matcher.sql.schema import Table
from tests.harness.tpc import suite

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]
Keys = dict[str, list[int]]

_FIRST, _LAST = date(1998, 1, 1), date(2003, 12, 31)
_COUNTS = {
    "customer_address": 45, "customer_demographics": 36, "income_band": 6,
    "household_demographics": 30, "item": 60, "customer": 120, "store": 9, "call_center": 4,
    "catalog_page": 4, "web_site": 4, "web_page": 6, "warehouse": 4, "ship_mode": 6,
    "reason": 5, "promotion": 8,
}  # fmt: skip
# Months that queries ask for, some of them more often; most of the facts fall into them.
_MONTHS = (
    (1998, 5), (1998, 9), (1998, 11), (1998, 12), (1998, 12), (1998, 12), (1999, 1), (1999, 2),
    (1999, 2), (1999, 2), (1999, 9), (1999, 11), (2000, 1), (2000, 2), (2000, 3), (2000, 5),
    (2000, 6), (2000, 8), (2000, 11), (2001, 1), (2001, 1), (2001, 1), (2001, 2), (2001, 4),
    (2001, 7), (2001, 11), (2001, 12), (2002, 1), (2002, 1), (2002, 2), (2002, 2),
)  # fmt: skip
_BOOKISH = ("scholaramalgamalg #14", "exportiunivamalg #9", "corp #3")
_CLOTHES = ("amalgimporto #1", "edu packscholar #1", "export #2")
# Category: its classes and brands.
_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Books": (("personal", "reference", "computers"), _BOOKISH),
    "Electronics": (("portable", "personal", "stereo"), _BOOKISH),
    "Women": (("maternity", "pants", "dresses"), _CLOTHES), "Music": (("classical",), _CLOTHES),
    "Men": (("shirts", "accessories", "pants"), _CLOTHES), "Sports": (("football",), ("corp #3",)),
    "Jewelry": (("birdal",), ("corp #3",)), "Home": (("self-help",), ("export #2",)),
}  # fmt: skip
_PLACES = (
    ("TN", "Williamson County", "Fairview", "-5.00"), ("TN", "Rush County", "Midway", "-5.00"),
    ("GA", "Jefferson County", "Edgewood", "-5.00"), ("OH", "Toole County", "Oakland", "-5.00"),
    ("TX", "La Porte County", "Midway", "-7.00"), ("KY", "Dona Ana County", "Edgewood", "-5.00"),
    ("IL", "Walker County", "Fairview", "-7.00"), ("CA", "Daviess County", "Oakland", "-7.00"),
    ("IN", "Barrow County", "Edgewood", "-5.00"), ("TN", "Williamson County", "Midway", "-5.00"),
    ("TN", "Rush County", "Fairview", "-5.00"), ("GA", "Rush County", "Fairview", "-5.00"),
    ("GA", "Barrow County", "Midway", "-5.00"), ("IL", "Walker County", "Oakland", "-7.00"),
    ("OH", "Williamson County", "Fairview", "-5.00"),
)  # fmt: skip
# What queries ask of one person together.
_PEOPLE = (
    ("M", "S", "College"), ("F", "S", "College"), ("M", "M", "Advanced Degree"),
    ("F", "W", "Advanced Degree"), ("F", "M", "Unknown"), ("F", "D", "Unknown"),
    ("M", "M", "4 yr Degree"), ("F", "D", "2 yr Degree"), ("M", "W", "2 yr Degree"),
)  # fmt: skip
_POOLS: dict[str, tuple[Any, ...]] = {
    "i_manufact_id": (128, 977, 350, 677, 129, 740), "i_manager_id": (1, 8, 28),
    "i_color": ("pale", "slate", "powder", "purple", "medium", "burnished", "floral"),
    "i_units": ("Ounce", "Oz", "N/A"), "i_size": ("medium", "large", "petite"),
    "i_current_price": ("0.99", "1.20", "64.50", "68.40", "70.00", "72.00", "90.00"),
    "i_manufact": ("able", "ought"),
    "ca_country": ("United States",), "ca_zip": ("24128", "76232", "85669", "86197", "31904"),
    "cd_dep_count": (0, 1, 2), "cd_credit_rating": ("Good", "High Risk"),
    "cd_purchase_estimate": (500, 1000), "cd_dep_employed_count": (0, 1),
    "cd_dep_college_count": (0, 1),
    "hd_buy_potential": (">10000", "Unknown", "501-1000"), "hd_dep_count": (0, 1, 2, 3, 4, 6, 7),
    "hd_vehicle_count": (0, 1, 2, 3, 4), "c_preferred_cust_flag": ("Y", "N"),
    "c_birth_month": (1, 2, 6, 9, 4), "c_birth_country": ("CHILE", "NORWAY"),
    "c_first_name": ("Ada", "Bo", "Cy"), "c_last_name": ("Ash", "Birch", "Cole"),
    "s_gmt_offset": ("-5.00",), "s_store_name": ("ese", "ought"),
    "s_zip": ("31904", "24000", "85669"), "s_market_id": (8, 5), "s_company_name": ("Unknown",),
    "s_number_employees": (210, 250, 300), "cc_county": ("Williamson County", "Rush County"),
    "cc_name": ("North", "South"), "web_company_name": ("pri", "able"), "web_name": ("w1", "w2"),
    "wp_char_count": (5000, 5100, 3000), "sm_carrier": ("DHL", "BARIAN", "UPS"),
    "sm_type": ("EXPRESS", "REGULAR"), "p_channel_email": ("N", "Y"),
    "p_channel_event": ("N", "Y"), "p_channel_dmail": ("Y", "N"), "p_channel_tv": ("N", "Y"),
    "ib_lower_bound": (30001, 40001, 50001), "ib_upper_bound": (50000, 60000, 80000),
    "w_state": ("TN", "GA"), "r_reason_desc": ("reason 28", "reason 1"),
    "w_warehouse_sq_ft": (10000, 25000),
}  # fmt: skip


def make(seed: int = 2) -> Rows:
    """Rows of each table, columns as in schema_ds.sql."""
    from tests.harness.tpc.data_ds_facts import facts

    rng = Random(seed)
    tables = {t.name: t for t in suite.workspace("ds").schema.tables.values()}
    rows: Rows = {"date_dim": list(_dates()), "time_dim": list(_times())}
    keys: Keys = {name: list(range(1, n + 1)) for name, n in _COUNTS.items()}
    keys |= {"date_dim": [r[0] for r in rows["date_dim"]], "time_dim": list(range(0, 86400, 600))}
    keys["busy"] = [r[0] for m in _MONTHS for r in rows["date_dim"] if (r[6], r[8]) == m]
    for name, count in _COUNTS.items():
        rows[name] = [_dimension(rng, tables[name], n, keys) for n in range(1, count + 1)]
    keys["college"] = [r[0] for r in rows["customer_demographics"] if r[2:4] == ("S", "College")]
    keys["single"] = [r[0] for r in rows["household_demographics"] if r[3] == 1]
    keys["ohio"] = [r[0] for r in rows["customer_address"] if r[8] == "OH"]
    return rows | facts(rng, tables, keys)


def day_key(day: date) -> int:
    """The key of a day in date_dim."""
    return 2415022 + (day - date(1900, 1, 1)).days


def _dates() -> Iterator[Row]:
    day = _FIRST
    while day <= _LAST:
        dow = (day.weekday() + 1) % 7
        quarter = (day.month - 1) // 3 + 1
        month = (day.year - 1900) * 12 + day.month - 1
        week = (day - date(1900, 1, 1)).days // 7 + 1
        number = day_key(day)
        yield (
            number, f"D{number}", day, month, week, (day.year - 1900) * 4 + quarter - 1, day.year,
            dow, day.month, day.day, quarter, day.year, quarter, week, f"{day:%A}",
            f"{day.year}Q{quarter}", "N", "Y" if dow in (0, 6) else "N", "N", None, None, None,
            None, "N", "N", "N", "N", "N",
        )  # fmt: skip
        day += timedelta(days=1)


def _times() -> Iterator[Row]:
    for second in range(0, 86400, 600):
        hour = second // 3600
        meal = {7: "breakfast", 8: "breakfast", 18: "dinner", 19: "dinner"}.get(hour)
        yield (second, f"T{second}", second, hour, second // 60 % 60, 0,
               "AM" if hour < 12 else "PM", "first", "day", meal)  # fmt: skip


def _dimension(rng: Random, table: Table, number: int, keys: Keys) -> Row:
    row = {c.name: _value(rng, table, c, number, keys) for c in table.columns}
    if table.name == "item":
        row |= _item(rng, number)
    elif table.name == "customer_demographics":
        people = _PEOPLE[number % len(_PEOPLE)]
        row |= zip(("cd_gender", "cd_marital_status", "cd_education_status"), people, strict=True)
    elif table.name in ("customer_address", "store"):
        prefix = "ca_" if table.name == "customer_address" else "s_"
        places = _PLACES if prefix == "ca_" else _PLACES[:2]
        state, county, city, offset = places[number % len(places)]
        row |= {f"{prefix}state": state, f"{prefix}county": county, f"{prefix}city": city}
        row[f"{prefix}gmt_offset"] = Decimal(offset)
    return tuple(row[c.name] for c in table.columns)


def _item(rng: Random, number: int) -> dict[str, Any]:
    kinds = list(_KINDS)
    category = number % len(kinds)
    classes, brands = _KINDS[kinds[category]]
    kind, brand = rng.randrange(len(classes)), rng.randrange(len(brands))
    # two rows of the table are revisions of one item
    found = {"i_item_id": f"ITEM{number // 2:05}", "i_item_desc": f"item no {number}"}
    found |= {"i_category": kinds[category], "i_category_id": category}
    found |= {"i_class": classes[kind], "i_class_id": kind}
    found |= {"i_brand": brands[brand], "i_brand_id": 100 * category + brand}
    if kinds[category] == "Women":
        found |= {"i_units": "Ounce", "i_size": "medium", "i_color": rng.choice(("powder", "pale"))}
    return found


def _value(rng: Random, table: Table, column: Any, number: int, keys: Keys) -> Any:
    name = column.name
    for foreign in table.foreign_keys:
        if foreign.columns == (name,):
            return reference(rng, foreign.target[-1], keys, column.nullable)
    if name in _POOLS:
        value = rng.choice(_POOLS[name])
        return Decimal(value) if column.type.startswith("decimal") else value
    if name.endswith("_sk"):
        return number
    if column.nullable and rng.random() < 0.02:
        return None
    if column.type == "int":
        return rng.randint(1, 100)
    if column.type.startswith("decimal"):
        return Decimal(rng.randint(0, 900)).scaleb(-2)
    if column.type == "date":
        return _FIRST
    return f"{name} {number % 9 if column.nullable else number}"


def reference(rng: Random, target: str, keys: Keys, nullable: bool = True) -> int | None:
    """A key of the target, now and then none; days mostly of the months that queries ask for."""
    if nullable and rng.random() < 0.03:
        return None
    return rng.choice(keys["busy" if target == "date_dim" and rng.random() < 0.8 else target])
