"""The rows of the SSB tables as Spark SQL over `range`: pure text, nothing runs here.

Every value is a hash of (row number, seed), so that the content does not depend on how Spark
splits the work. Orders hold 1 to 7 lines: each run of 28 rows is 7 orders whose line counts are
a permutation of 1..7, which gives exactly 6,000,000 rows and 1,500,000 orders at scale 1.

One order in 50 is a *coverage order*: it takes the next (city, month) pair, and its first line
has a supplier of the customer's own city. Q3.4 selects five rows on average at scale 1, so
that by chance alone one seed in 130 would leave it empty; with these (0.6 % of the lines) every
city trades within itself in every month, whatever the seed, from scale 0.66 up.
"""

from __future__ import annotations

from cachemgr.demo import ssb_words as words
from cachemgr.demo.ssb_schema import BRAND_COUNT, CITY_COUNT, Sizes
from cachemgr.demo.ssb_words import pick

#: Days with orders: 1992-01-01 to 1998-08-02, so that the last commit date is still in 1998.
ORDER_DAYS = 2406
_ORDER_MONTHS = 79
_COVERAGE_EVERY = 50
_PERMUTATIONS = ((4, 1, 7, 2, 5, 3, 6), (1, 6, 3, 7, 4, 2, 5), (7, 3, 5, 1, 2, 6, 4))
#: key → city is k*167 mod 250 (shifted); 3 is the inverse of 167 there.
_CITY_STEP, _CITY_INVERSE = 167, 3
_BRAND_STEP = 387


def select(table: str, sizes: Sizes, seed: int, partitions: int) -> str:
    """The SELECT that generates a table.

    Args:
        table: One of `ssb_schema.TABLES`.
        sizes: The row counts.
        seed: Seed; other seed, other data.
        partitions: Spark partitions, that is files.

    Returns:
        Spark SQL.
    """
    source = f"range(0, {sizes.of(table)}, 1, {partitions})"
    if table == "lineorder":
        return _lineorder(sizes, seed, source)
    builders = {"dates": _dates, "customer": _customer, "supplier": _supplier, "part": _part}
    return builders[table](seed, source)


def _bits(value: str, shift: int, width: int) -> str:
    return f"(shiftrightunsigned({value}, {shift}) & {(1 << width) - 1}L)"


def _shift(seed: int, what: str, count: int) -> int:
    # Plain Python arithmetic: hash() of a str differs from process to process.
    return (seed * 7919 + sum(map(ord, what)) * 104_729) % count


def _dates(seed: int, source: str) -> str:
    month, day, year = "month(d)", "dayofmonth(d)", "year(d)"
    name = pick(words.MONTHS, f"{month} - 1")
    week = "dayofweek(d)"
    return f"""
SELECT {year} * 10000 + {month} * 100 + {day} AS d_datekey,
  concat({name}, ' ', {day}, ', ', {year}) AS d_date,
  {pick(words.DAYS, f"{week} - 1")} AS d_dayofweek, {name} AS d_month, {year} AS d_year,
  {year} * 100 + {month} AS d_yearmonthnum,
  concat(substring({name}, 1, 3), {year}) AS d_yearmonth,
  {week} AS d_daynuminweek, {day} AS d_daynuminmonth, dayofyear(d) AS d_daynuminyear,
  {month} AS d_monthnuminyear, CAST((dayofyear(d) - 1) div 7 + 1 AS INT) AS d_weeknuminyear,
  {pick(words.SEASONS, f"{month} - 1")} AS d_sellingseason,
  IF({week} = 7, 1, 0) AS d_lastdayinweekfl, IF(d = last_day(d), 1, 0) AS d_lastdayinmonthfl,
  IF({month} * 100 + {day} IN {words.HOLIDAYS}, 1, 0) AS d_holidayfl,
  IF({week} IN (1, 7), 0, 1) AS d_weekdayfl
FROM (SELECT date_add(DATE'1992-01-01', CAST(id AS INT)) AS d FROM {source})"""


def _place(prefix: str, what: str, seed: int, source: str) -> str:
    """Rows with key k, h (a hash) and place (index of the city)."""
    return f"""(
  SELECT k, h, place, CAST(place div 10 AS INT) AS land FROM (
    SELECT CAST(id + 1 AS INT) AS k, xxhash64(id, {seed}L, '{prefix}') AS h,
      CAST(pmod(id * {_CITY_STEP} + {_shift(seed, what, CITY_COUNT)}, {CITY_COUNT}) AS INT)
        AS place
    FROM {source}))"""


def _place_columns(prefix: str, title: str) -> str:
    nations = [nation for nation, _ in words.NATIONS]
    regions = [region for _, region in words.NATIONS]
    phone = (
        f"format_string('%02d-%03d-%03d-%04d', land + 10, 100 + {_bits('h', 0, 18)} % 900,"
        f" 100 + {_bits('h', 18, 18)} % 900, 1000 + {_bits('h', 36, 20)} % 9000)"
    )
    key = {"c": "c_custkey", "s": "s_suppkey"}[prefix]
    return f"""k AS {key}, concat('{title}#', lpad(k, 9, '0')) AS {prefix}_name,
  substring(md5(CAST(h AS STRING)), 1, 10 + CAST({_bits("h", 4, 12)} % 16 AS INT))
    AS {prefix}_address,
  {pick(words.CITIES, "place")} AS {prefix}_city, {pick(nations, "land")} AS {prefix}_nation,
  {pick(regions, "land")} AS {prefix}_region, {phone} AS {prefix}_phone"""


def _customer(seed: int, source: str) -> str:
    segment = pick(words.SEGMENTS, f"CAST({_bits('h', 20, 20)} % 5 AS INT)")
    return f"""
SELECT {_place_columns("c", "Customer")}, {segment} AS c_mktsegment
FROM {_place("c", "customer", seed, source)}"""


def _supplier(seed: int, source: str) -> str:
    return f"""
SELECT {_place_columns("s", "Supplier")}
FROM {_place("s", "supplier", seed, source)}"""


def _part(seed: int, source: str) -> str:
    def some(choices: tuple[str, ...], shift: int) -> str:
        return pick(choices, f"CAST({_bits('h', shift, 16)} % {len(choices)} AS INT)")

    return f"""
SELECT k AS p_partkey, concat({some(words.COLORS, 0)}, ' ', {some(words.COLORS, 8)}) AS p_name,
  concat('MFGR#', b div 200 + 1) AS p_mfgr,
  concat('MFGR#', b div 200 + 1, (b div 40) % 5 + 1) AS p_category,
  concat('MFGR#', b div 200 + 1, (b div 40) % 5 + 1, lpad(b % 40 + 1, 2, '0')) AS p_brand1,
  {some(words.COLORS, 16)} AS p_color, {some(words.TYPES, 24)} AS p_type,
  CAST({_bits("h", 32, 16)} % 50 + 1 AS INT) AS p_size, {some(words.CONTAINERS, 40)} AS p_container
FROM (
  SELECT CAST(id + 1 AS INT) AS k, xxhash64(id, {seed}L, 'p') AS h,
    pmod(id * {_BRAND_STEP} + {_shift(seed, "part", BRAND_COUNT)}, {BRAND_COUNT}) AS b
  FROM {source})"""


def _line_codes() -> list[str | int]:
    """For each row of 3 runs of 28: order in the run * 64 + lines of the order * 8 + line."""
    codes: list[str | int] = []
    for permutation in _PERMUTATIONS:
        for order, lines in enumerate(permutation):
            codes += [order * 64 + lines * 8 + line for line in range(1, lines + 1)]
    return codes


def _line_total(sizes: Sizes, seed: int, line: int) -> str:
    """What line `line` adds to its order's total, without looking at that line's row.

    Hashes make the other lines' values computable here; a window over the orders would sort
    the whole fact.
    """
    part, quantity, discount, tax, _ = _line_values(sizes, seed, str(line))
    price = _price(f"({part})")
    return (
        f"IF(n >= {line}, ((({quantity}) * ({price}) * (100 - ({discount}))) div 100)"
        f" * (100 + ({tax})) div 100, 0L)"
    )


def _line_values(sizes: Sizes, seed: int, line: str) -> tuple[str, str, str, str, str]:
    one = f"xxhash64(o, {line}, {seed}L)"
    two = f"xxhash64({line}, o, {seed}L, 2)"
    return (
        f"{_bits(one, 24, 40)} % {sizes.part} + 1",
        f"{_bits(one, 0, 24)} % 50 + 1",
        f"{_bits(two, 0, 20)} % 11",
        f"{_bits(two, 20, 20)} % 9",
        f"{_bits(two, 40, 24)} % {sizes.supplier}",
    )


def _price(part: str) -> str:
    return f"90000L + ({part} div 10) % 20001 + 100 * ({part} % 1000)"


def _lineorder(sizes: Sizes, seed: int, source: str) -> str:
    codes = pick(
        _line_codes(),
        f"CAST(pmod(xxhash64(id div 28, {seed}L), {len(_PERMUTATIONS)}) * 28 + id % 28 AS INT)",
    )
    lines = f"""
  SELECT o, line, IF(n > {sizes.lineorder} - first, {sizes.lineorder} - first, n) AS n FROM (
    SELECT id div 28 * 7 + code div 64 + 1 AS o, code % 8 AS line, (code div 8) % 8 AS n,
      id - code % 8 + 1 AS first
    FROM (SELECT id, {codes} AS code FROM {source}))"""
    part, quantity, discount, tax, supplier = _line_values(sizes, seed, "line")
    total = "\n      + ".join(_line_total(sizes, seed, line) for line in range(1, 8))
    cells = CITY_COUNT * _ORDER_MONTHS
    drawn = f"""
  SELECT o, line, xxhash64(o, {seed}L, 3) AS h, xxhash64(o, line, {seed}L, 4) AS g,
    {part} AS part, {quantity} AS quantity, {discount} AS discount, {tax} AS tax,
    {supplier} AS supplier, {total} AS total,
    IF(o % {_COVERAGE_EVERY} = 0 AND o div {_COVERAGE_EVERY} <= {cells},
      (o div {_COVERAGE_EVERY} * 7919) % {cells}, -1L) AS cell
  FROM ({lines})"""
    return f"""
SELECT o AS lo_orderkey, line AS lo_linenumber, customer AS lo_custkey, CAST(part AS INT)
    AS lo_partkey, supplier AS lo_suppkey,
  year(day) * 10000 + month(day) * 100 + dayofmonth(day) AS lo_orderdate,
  {pick(words.PRIORITIES, f"CAST({_bits('h', 0, 12)} % 5 AS INT)")} AS lo_orderpriority,
  '0' AS lo_shippriority, quantity AS lo_quantity, extended AS lo_extendedprice,
  total AS lo_ordtotalprice, discount AS lo_discount,
  extended * (100 - discount) div 100 AS lo_revenue, 6 * price div 10 AS lo_supplycost,
  tax AS lo_tax,
  year(committed) * 10000 + month(committed) * 100 + dayofmonth(committed) AS lo_commitdate,
  {pick(words.SHIP_MODES, f"CAST({_bits('g', 0, 16)} % 7 AS INT)")} AS lo_shipmode
FROM (
SELECT *, quantity * price AS extended,
  date_add(day, CAST(30 + {_bits("g", 16, 20)} % 61 AS INT)) AS committed
FROM (
SELECT o, line, h, g, part, quantity, discount, tax, total, {_price("part")} AS price,
  {_customer_key(sizes, seed)} AS customer, {_supplier_key(sizes, seed)} AS supplier,
  {_order_day()} AS day
FROM ({drawn})))"""


def _key_of_city(city: str, what: str, count: int, seed: int, draw: str) -> str:
    """A key whose city is `city`: the inverse of the step that gives a key its city."""
    shift = _shift(seed, what, CITY_COUNT)
    return (
        f"pmod({_CITY_INVERSE} * ({city} - {shift}), {CITY_COUNT})"
        f" + {CITY_COUNT} * ({draw} % {count // CITY_COUNT}) + 1"
    )


def _customer_key(sizes: Sizes, seed: int) -> str:
    draw = _bits("h", 12, 32)
    chosen = _key_of_city(f"cell % {CITY_COUNT}", "customer", sizes.customer, seed, draw)
    return f"CAST(IF(cell >= 0, {chosen}, {draw} % {sizes.customer} + 1) AS INT)"


def _supplier_key(sizes: Sizes, seed: int) -> str:
    city = f"cell % {CITY_COUNT}"
    chosen = _key_of_city(city, "supplier", sizes.supplier, seed, "supplier")
    return f"CAST(IF(cell >= 0 AND line = 1, {chosen}, supplier + 1) AS INT)"


def _order_day() -> str:
    draw = _bits("h", 44, 20)
    month = f"CAST(cell div {CITY_COUNT} AS INT)"
    first = f"make_date(CAST(1992 + {month} div 12 AS INT), {month} % 12 + 1, 1)"
    return (
        f"IF(cell >= 0, date_add({first}, CAST({draw} % 28 AS INT)),"
        f" date_add(DATE'1992-01-01', CAST({draw} % {ORDER_DAYS} AS INT)))"
    )
