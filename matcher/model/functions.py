"""The deterministic Spark functions that both doors know and that render as `name(arguments)`.

One place: the Catalyst door maps an expression's `prettyName` to these, the text door a parsed
function, and `matcher.render` writes them back. Anything else is opaque: it can match itself but is
never written as SQL. Each name has the numbers of arguments that are known to mean the same
everywhere (`*`: any number from one up).
"""

from __future__ import annotations

from typing import Final

_ANY: Final = -1
_TABLE: Final = """
    year:1 quarter:1 month:1 day:1 dayofmonth:1 dayofweek:1 weekday:1 dayofyear:1 weekofyear:1
    yearofweek:1 hour:1 minute:1 second:1 trunc:2 date_trunc:2 date_add:2 date_sub:2 datediff:2
    add_months:2 last_day:1 next_day:2 months_between:3 date_format:2
    unix_date:1 make_date:3 to_timestamp_ltz:2 to_timestamp_ntz:2 from_unixtime:2 unix_timestamp:2
    to_unix_timestamp:2
    upper:1 lower:1 trim:1 ltrim:1 rtrim:1 length:1 char_length:1 substring:2/3 concat:*
    concat_ws:* replace:3 lpad:3 rpad:3 instr:2 locate:2/3 reverse:1 repeat:2 initcap:1
    translate:3 split:2/3 regexp_replace:3/4 regexp_extract:2/3 ascii:1 left:2 right:2
    substring_index:3 startswith:2 endswith:2 contains:2 abs:1 ceil:1 floor:1 round:1/2
    bround:1/2 sqrt:1 power:2 exp:1 ln:1 log10:1 log2:1 sign:1 signum:1 greatest:* least:*
    hll_sketch_estimate:1 kll_sketch_get_n_bigint:1 kll_sketch_get_n_double:1
    kll_sketch_get_quantile_bigint:2 kll_sketch_get_quantile_double:2
    size:1 sort_array:2 array_distinct:1 flatten:1
    pmod:2 md5:1 nullif:2 hash:* xxhash64:* crc32:1 isnan:1 nanvl:2
"""


def _parse(table: str) -> dict[str, tuple[int, ...]]:
    rows = (entry.split(":") for entry in table.split())
    return {
        name: (_ANY,) if arity == "*" else tuple(map(int, arity.split("/"))) for name, arity in rows
    }


FUNCTIONS: Final = _parse(_TABLE)


def is_known(name: str, arity: int) -> bool:
    """True if `name` with `arity` arguments may be rendered as a plain function call."""
    allowed = FUNCTIONS.get(name)
    return allowed is not None and (arity in allowed or (_ANY in allowed and arity > 0))
