"""The fact tables of the small TPC-DS data: sales on tickets and orders, returns, stock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from matcher.sql.schema import Table
from tests.harness.tpc.data_ds import Keys, Row, Rows, day_key, reference

Line = dict[str, Any]

_SALES = {"ss": ("store_sales", 4800), "cs": ("catalog_sales", 3000), "ws": ("web_sales", 3000)}
_RETURNS = {
    "sr": ("store_returns", "ss", 1300),
    "cr": ("catalog_returns", "cs", 750),
    "wr": ("web_returns", "ws", 750),
}
# What the lines of one ticket or order share.
_SHARED = ("date_sk", "time_sk", "customer_sk", "cdemo_sk", "hdemo_sk", "addr_sk", "store_sk",
           "call_center_sk", "web_site_sk")  # fmt: skip
_RETURN_WEEKS = (date(2000, 6, 26), date(2000, 9, 25), date(2000, 11, 13))
_SAME_WEEK = day_key(date(2000, 1, 4))
_BULK_DAY = day_key(date(2001, 12, 10))
_HOT = ((7, date(2000, 2, 3)), (12, date(2000, 11, 5)), (33, date(2001, 4, 7)))
_BACK = "comes back"
_CENT = Decimal("0.01")


def facts(rng: Random, tables: dict[str, Table], keys: Keys) -> Rows:
    """Rows of the seven fact tables."""
    lines: dict[str, list[Line]] = {}
    for sign in ("ss", "sr", "cs", "cr", "ws", "wr"):
        if sign in _SALES:
            table = tables[_SALES[sign][0]]
            lines[sign] = list(_sales(rng, sign, table, keys, lines.get("sr", [])))
        else:
            name, sold, count = _RETURNS[sign]
            lines[sign] = _returns(rng, sign, tables[name], keys, lines[sold], count)
    rows: Rows = {}
    for sign, (name, *_) in {**_SALES, **_RETURNS}.items():
        rows[name] = [tuple(x[c.name] for c in tables[name].columns) for x in lines[sign]]
    rows["inventory"] = list(_stock(rng, keys))
    return rows


def _sales(
    rng: Random, sign: str, table: Table, keys: Keys, returned: list[Line]
) -> Iterator[Line]:
    number = f"{sign}_{'ticket' if sign == 'ss' else 'order'}_number"
    customer = f"{sign}_{'' if sign == 'ss' else 'bill_'}customer_sk"
    seen: set[tuple[int, int]] = set()
    shared: Line = {}
    for place in range(_SALES[sign][1]):
        line = _keys(rng, sign, table, keys)
        if place % 3 == 0:
            shared = {k: v for k, v in line.items() if k.endswith(_SHARED)}
        line |= shared
        line[number] = place // 3 + 1
        price = _price(rng)
        if place % 150 == 0:  # much of one thing on one day, which comes back (query 49)
            price = _price(rng, bulk=True)
            line |= {f"{sign}_sold_date_sk": _BULK_DAY, _BACK: True}
        elif place % 150 == 1 and place < 1500:  # as much in every channel (query 58)
            price = _price(Random(place), bulk=True)
            line[f"{sign}_sold_date_sk"], line[f"{sign}_item_sk"] = _SAME_WEEK, place // 75 + 1
        elif place % 75 == 2:  # what a student in Ohio buys (13, 48, 85)
            price = _price(rng, student=True)
            line |= _student(rng, sign, keys)
        elif place % 20 == 0:  # many of one item on one day (query 23)
            line[f"{sign}_item_sk"], day = rng.choice(_HOT)
            line[f"{sign}_sold_date_sk"] = day_key(day)
        elif (
            returned and rng.random() < 0.3
        ):  # who returns in the store buys elsewhere (17, 25, 29)
            back = rng.choice(returned)
            line[f"{sign}_item_sk"], line[customer] = back["sr_item_sk"], back["sr_customer_sk"]
            line[f"{sign}_sold_date_sk"] = _later(rng, back["sr_returned_date_sk"], keys, 60)
        if f"{sign}_ship_date_sk" in line:
            when = line[f"{sign}_sold_date_sk"]
            line[f"{sign}_ship_date_sk"] = _later(rng, when, keys, 130)
        key = (line[f"{sign}_item_sk"], line[number])
        if key not in seen:
            seen.add(key)
            yield _filled(rng, sign, table, line, price)


def _keys(rng: Random, sign: str, table: Table, keys: Keys) -> Line:
    nullable = {c.name: c.nullable for c in table.columns}
    return {
        f.columns[0]: reference(rng, f.target[-1], keys, nullable[f.columns[0]])
        for f in table.foreign_keys
    }


def _student(rng: Random, sign: str, keys: Keys) -> Line:
    bill = "" if sign == "ss" else "bill_"
    year = 2001 if sign == "ss" else 2000
    found: Line = {f"{sign}_sold_date_sk": day_key(date(year, 5, rng.randint(1, 28)))}
    for column, wanted in (("cdemo", "college"), ("hdemo", "single"), ("addr", "ohio")):
        found[f"{sign}_{bill}{column}_sk"] = rng.choice(keys[wanted])
    return found | {_BACK: True}


def _price(rng: Random, bulk: bool = False, student: bool = False) -> dict[str, Any]:
    """What goes together on a line sold: quantity, prices, and what follows from them."""
    quantity = 100 if bulk else rng.choice((*range(1, 25), 30, 45, 65, 85))
    cost = Decimal(rng.randint(7000 if bulk else 700, 10000)).scaleb(-2)
    listed = (cost * rng.randint(120, 210) / 100).quantize(_CENT)
    price = (listed * rng.randint(90 if bulk else 50, 100) / 100).quantize(_CENT)
    coupon = (price * quantity / 10).quantize(_CENT) if rng.random() < 0.2 else Decimal(0)
    if student:
        quantity, cost, listed, price = 10, Decimal("65.00"), Decimal("99.00"), Decimal("81.00")
        coupon = Decimal(0)
    paid, spent = price * quantity, cost * quantity
    tax, ship = (paid / 20).quantize(_CENT), Decimal(quantity)
    net = paid - coupon
    return {
        "quantity": quantity, "wholesale_cost": cost, "list_price": listed, "sales_price": price,
        "ext_discount_amt": listed * quantity - paid, "ext_sales_price": paid,
        "ext_wholesale_cost": spent, "ext_list_price": listed * quantity, "ext_tax": tax,
        "coupon_amt": coupon, "ext_ship_cost": ship, "net_paid": net,
        "net_paid_inc_tax": net + tax, "net_paid_inc_ship": net + ship,
        "net_paid_inc_ship_tax": net + ship + tax, "net_profit": net - spent,
    }  # fmt: skip


def _filled(rng: Random, sign: str, table: Table, line: Line, values: dict[str, Any]) -> Line:
    for column in table.columns:
        value = values.get(column.name.removeprefix(f"{sign}_"))
        if column.name not in line:
            line[column.name] = value if rng.random() > 0.02 else None
    return line


def _returns(
    rng: Random, sign: str, table: Table, keys: Keys, sold: list[Line], count: int
) -> list[Line]:
    sure = [s for s in sold if _BACK in s]
    others = [s for s in sold if _BACK not in s]
    chosen = sure + rng.sample(others, count - len(sure))
    return [_returned(rng, sign, table, keys, s) for s in chosen]


def _returned(rng: Random, sign: str, table: Table, keys: Keys, sold: Line) -> Line:
    """A line sold comes back some days later, mostly by who bought it."""
    there = _RETURNS[sign][1]
    line = _keys(rng, sign, table, keys)
    number = "ticket_number" if sign == "sr" else "order_number"
    line |= {f"{sign}_item_sk": sold[f"{there}_item_sk"]}
    line |= {f"{sign}_{number}": sold[f"{there}_{number}"]}
    if sign == "sr":
        line |= {f"sr_{k}": sold[f"ss_{k}"] for k in ("customer_sk", "store_sk")}
    elif rng.random() < 0.8:
        for kind in ("customer_sk", "cdemo_sk", "addr_sk"):
            line[f"{sign}_returning_{kind}"] = sold[f"{there}_bill_{kind}"]
            line[f"{sign}_refunded_{kind}"] = sold[f"{there}_bill_{kind}"]
    when = sold[f"{there}_sold_date_sk"]
    weeks = [day_key(w) for w in _RETURN_WEEKS if when and 0 < day_key(w) - when < 90]
    day = rng.choice(weeks) + rng.randint(0, 6) if weeks else _later(rng, when, keys, 130)
    line[f"{sign}_returned_date_sk"] = day
    quantity, price = sold[f"{there}_quantity"] or 1, sold[f"{there}_sales_price"] or Decimal(1)
    back = quantity if when == _BULK_DAY else rng.randint(1, quantity)
    amount = price * back
    fee = Decimal(rng.randint(50, 9999)).scaleb(-2)
    values = {
        "return_quantity": back, "return_amt": amount, "return_amount": amount, "fee": fee,
        "return_tax": fee, "return_amt_inc_tax": amount + fee, "return_ship_cost": fee,
        "refunded_cash": (amount / 10).quantize(_CENT), "reversed_charge": fee,
        "store_credit": fee, "account_credit": fee, "net_loss": fee + 50,
    }  # fmt: skip
    return _filled(rng, sign, table, line, values)


def _later(rng: Random, when: int | None, keys: Keys, most: int) -> int | None:
    return when and min(when + rng.randint(2, most), keys["date_dim"][-1])


def _stock(rng: Random, keys: Keys) -> Iterator[Row]:
    """Stock counted once a week, in the weeks that some query looks at."""
    spans = ((date(1999, 8, 30), 14), (date(2000, 1, 31), 26), (date(2001, 1, 1), 8))
    for first, weeks in spans:
        for week in range(weeks):
            day = day_key(first + timedelta(days=7 * week))
            for item in keys["item"]:
                for warehouse in keys["warehouse"]:
                    if rng.random() < 0.5:
                        yield day, item, warehouse, rng.choice((None, 0, 5, 20, 120, 300, 480, 700))
