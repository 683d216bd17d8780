"""Small TPC-DS tables from a seed, in which the queries' default parameters find rows.

Not dsdgen: each column is drawn from the few values that some query asks for and one or two beside
them. A fact's foreign keys are NULL now and then, as the specification allows.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from matcher.schema import Table
from tests.tpc import suite

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]

_FIRST, _LAST = date(1998, 1, 1), date(2003, 12, 31)
_COUNTS = {
    "item": 48, "customer_address": 30, "customer_demographics": 24, "income_band": 6,
    "household_demographics": 24, "customer": 60, "store": 6, "call_center": 4,
    "catalog_page": 4, "web_site": 4, "web_page": 6, "warehouse": 4, "ship_mode": 6,
    "reason": 5, "promotion": 8, "inventory": 1500, "store_sales": 4000, "catalog_sales": 2500,
    "web_sales": 2500,
}  # fmt: skip
_RETURNS = {
    "store_returns": ("store_sales", 900, "sr_", "ss_", "ticket_number"),
    "catalog_returns": ("catalog_sales", 600, "cr_", "cs_", "order_number"),
    "web_returns": ("web_sales", 600, "wr_", "ws_", "order_number"),
}
# Months that queries ask for; half of the facts fall into them.
_MONTHS = (
    (1998, 9), (1998, 11), (1998, 12), (1999, 2), (1999, 11), (1999, 9), (2000, 1), (2000, 2),
    (2000, 3), (2000, 8), (2000, 11), (2001, 1), (2001, 4), (2001, 11), (2001, 12), (2002, 2),
)  # fmt: skip
_CLASSES = {
    "Books": ("personal", "reference", "computers"), "Electronics": ("portable", "stereo"),
    "Women": ("maternity", "pants", "dresses"), "Music": ("classical",), "Sports": ("football",),
    "Men": ("shirts", "accessories"), "Jewelry": ("birdal",), "Home": ("self-help",),
}  # fmt: skip
_POOLS: dict[str, tuple[Any, ...]] = {
    "i_manufact_id": (128, 977, 350, 677, 129, 740), "i_manager_id": (1, 8, 28),
    "i_color": ("pale", "slate", "powder", "purple", "brown", "medium"),
    "i_units": ("Ounce", "Oz", "Each"), "i_size": ("medium", "small"),
    "i_current_price": ("0.99", "1.20", "64.50", "68.40", "70.00", "90.00"),
    "i_manufact": ("able", "ought", "pri"), "i_brand": ("amalg #1", "export #2", "corp #3"),
    "ca_state": ("TN", "GA", "OH", "TX", "KY", "IL", "CA", "IN"), "ca_country": ("United States",),
    "ca_zip": ("24128", "76232", "85669", "86197", "31904"),
    "ca_city": ("Edgewood", "Fairview", "Midway"), "ca_gmt_offset": ("-5.00", "-7.00"),
    "ca_county": ("Rush County", "Williamson County", "Jefferson County"),
    "cd_gender": ("M", "F"), "cd_marital_status": ("M", "S", "W", "D"),
    "cd_education_status": ("College", "Advanced Degree", "Unknown", "4 yr Degree"),
    "cd_dep_count": (0, 1, 2, 3), "cd_credit_rating": ("Good", "High Risk"),
    "hd_buy_potential": (">10000", "Unknown", "501-1000"), "hd_dep_count": (0, 1, 2, 3, 4, 6, 7),
    "hd_vehicle_count": (0, 1, 2, 3, 4), "c_preferred_cust_flag": ("Y", "N"),
    "c_birth_month": (1, 2, 6, 9, 4), "c_birth_country": ("CHILE", "NORWAY"),
    "c_first_name": ("Ada", "Bo", "Cy"), "c_last_name": ("Ash", "Birch", "Cole"),
    "s_state": ("TN", "TN", "SD"), "s_county": ("Williamson County", "Rush County"),
    "s_city": ("Fairview", "Midway"), "s_gmt_offset": ("-5.00",), "s_store_name": ("ese", "ought"),
    "s_zip": ("31904", "24000", "85669"), "s_market_id": (8, 5), "s_company_name": ("Unknown",),
    "s_number_employees": (210, 250, 300), "cc_county": ("Williamson County", "Rush County"),
    "cc_name": ("North", "South"), "web_company_name": ("pri", "able"), "web_name": ("w1", "w2"),
    "wp_char_count": (5000, 5100, 3000), "sm_carrier": ("DHL", "BARIAN", "UPS"),
    "sm_type": ("EXPRESS", "REGULAR"), "p_channel_email": ("N", "Y"),
    "p_channel_event": ("N", "Y"), "p_channel_dmail": ("Y", "N"), "p_channel_tv": ("N", "Y"),
    "ib_lower_bound": (30001, 40001, 50001), "ib_upper_bound": (50000, 60000, 80000),
    "w_state": ("TN", "GA"), "r_reason_desc": ("reason 28", "reason 1"),
}  # fmt: skip


def make(seed: int = 1) -> Rows:
    """Rows of each table, columns as in schema_ds.sql."""
    rng = Random(seed)
    tables = suite.workspace("ds").schema.tables
    rows: Rows = {"date_dim": list(_dates()), "time_dim": list(_times())}
    keys = {"date_dim": [r[0] for r in rows["date_dim"]], "time_dim": list(range(0, 86400, 600))}
    keys |= {name: list(range(1, n + 1)) for name, n in _COUNTS.items()}
    keys["busy"] = [r[0] for r in rows["date_dim"] if (r[6], r[8]) in _MONTHS]
    for table in tables.values():
        if table.name in _COUNTS:
            rows[table.name] = _table(rng, table, keys)
    for name, (sales, count, *prefixes) in _RETURNS.items():
        sold = rng.sample(rows[sales], count)
        here, there = tables[f"default.{name}"], tables[f"default.{sales}"]
        rows[name] = [_returned(rng, here, there, s, keys, *prefixes) for s in sold]
    return rows


def _dates() -> Any:
    day = _FIRST
    while day <= _LAST:
        dow = (day.weekday() + 1) % 7
        quarter = (day.month - 1) // 3 + 1
        month = (day.year - 1900) * 12 + day.month - 1
        week = (day - date(1900, 1, 1)).days // 7 + 1
        number = 2415022 + (day - date(1900, 1, 1)).days
        yield (
            number, f"D{number}", day, month, week, (day.year - 1900) * 4 + quarter - 1, day.year,
            dow, day.month, day.day, quarter, day.year, quarter, week, f"{day:%A}",
            f"{day.year}Q{quarter}", "N", "Y" if dow in (0, 6) else "N", "N", None, None, None,
            None, "N", "N", "N", "N", "N",
        )  # fmt: skip
        day += timedelta(days=1)


def _times() -> Any:
    for second in range(0, 86400, 600):
        hour = second // 3600
        meal = {7: "breakfast", 8: "breakfast", 18: "dinner", 19: "dinner"}.get(hour)
        yield (second, f"T{second}", second, hour, second // 60 % 60, 0,
               "AM" if hour < 12 else "PM", "first", "day", meal)  # fmt: skip


def _table(rng: Random, table: Table, keys: dict[str, list[int]]) -> list[Row]:
    targets = {f.columns[0]: f.target[-1] for f in table.foreign_keys}
    found: dict[tuple[Any, ...], Row] = {}
    names = [c.name for c in table.columns]
    for number in range(1, _COUNTS[table.name] + 1):
        row: dict[str, Any] = {}
        for column in table.columns:
            row[column.name] = _value(rng, column, number, targets, keys)
        if "i_category" in row:
            row["i_category"] = rng.choice(list(_CLASSES))
            row["i_class"] = rng.choice(_CLASSES[row["i_category"]])
        if "cs_ship_date_sk" in row or "ws_ship_date_sk" in row:
            sign = names[0][:3]
            sold = row[f"{sign}sold_date_sk"]
            row[f"{sign}ship_date_sk"] = sold and min(
                sold + rng.randint(2, 100), keys["date_dim"][-1]
            )
        key = tuple(row[k] for k in names if k.lower() in table.primary_key)
        found.setdefault(key, tuple(row[n] for n in names))
    return list(found.values())


def _value(
    rng: Random, column: Any, number: int, targets: dict[str, str], keys: dict[str, list[int]]
) -> Any:
    name = column.name
    if name in targets:
        if column.nullable and rng.random() < 0.04:
            return None
        target = targets[name]
        dates = "busy" if target == "date_dim" and rng.random() < 0.6 else target
        return rng.choice(keys[dates])
    if name in _POOLS:
        value = rng.choice(_POOLS[name])
        return Decimal(value) if column.type.startswith("decimal") else value
    if name.endswith(("ticket_number", "order_number")):
        return (number + 2) // 3
    if name.endswith("_sk"):
        return number
    if name.endswith("_quantity_on_hand"):
        return rng.choice((None, 0, 5, 120, 300, 480, 700))
    return _plain(rng, column, number)


def _plain(rng: Random, column: Any, number: int) -> Any:
    if column.nullable and rng.random() < 0.02:
        return None
    if column.type == "int":
        return rng.randint(1, 100)
    if column.type.startswith("decimal(7"):
        return Decimal(rng.randint(0, 30000)).scaleb(-2)
    if column.type.startswith("decimal"):
        return Decimal(rng.randint(0, 900)).scaleb(-2)
    if column.type == "date":
        return _FIRST
    return f"{column.name} {number}" if not column.nullable else f"{column.name} {number % 9}"


def _returned(
    rng: Random, table: Table, sales: Table, sold: Row, keys: dict[str, list[int]],
    here: str, there: str, number: str,
) -> Row:  # fmt: skip
    """A line sold comes back some days later, mostly by the customer who bought it."""
    bought = {c.name: v for c, v in zip(sales.columns, sold, strict=True)}
    targets = {f.columns[0]: f.target[-1] for f in table.foreign_keys}
    row = {c.name: _value(rng, c, 1, targets, keys) for c in table.columns}
    row[f"{here}item_sk"] = bought[f"{there}item_sk"]
    row[f"{here}{number}"] = bought[f"{there}{number}"]
    if here == "sr_":
        row["sr_customer_sk"] = bought["ss_customer_sk"]
        row["sr_store_sk"] = bought["ss_store_sk"]
    when = bought[f"{there}sold_date_sk"]
    row[f"{here}returned_date_sk"] = when and min(when + rng.randint(1, 90), keys["date_dim"][-1])
    return tuple(row[c.name] for c in table.columns)
