"""The 13 standard SSB queries in the paper's text, each with five sets of parameters.

The first set is the paper's. The paper's table `date` is called `dates` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template


@dataclass(frozen=True, slots=True)
class SsbQuery:
    """One of the 13 queries.

    Args:
        name: `Q1.1` to `Q4.3`.
        template: The paper's text, its literals as `$name`.
        parameters: Five sets; the first is the paper's.
        order: Output columns of its ORDER BY, in order; empty if it has none.
    """

    name: str
    template: str
    parameters: tuple[dict[str, str], ...]
    order: tuple[str, ...] = ()

    def sql(self, number: int = 0) -> str:
        """The query's text with one set of parameters.

        Args:
            number: Which set, 0 is the paper's.

        Returns:
            Spark SQL.
        """
        return Template(self.template).substitute(self.parameters[number])


def _sets(names: str, *values: tuple[object, ...]) -> tuple[dict[str, str], ...]:
    keys = names.split()
    return tuple(dict(zip(keys, map(str, one), strict=True)) for one in values)


_Q1_1 = """\
select sum(lo_extendedprice*lo_discount) as revenue
from lineorder, dates
where lo_orderdate = d_datekey
and d_year = $year
and lo_discount between $low and $high
and lo_quantity < $quantity"""

_Q1_2 = """\
select sum(lo_extendedprice*lo_discount) as revenue
from lineorder, dates
where lo_orderdate = d_datekey
and d_yearmonthnum = $month
and lo_discount between $low and $high
and lo_quantity between $few and $many"""

_Q1_3 = """\
select sum(lo_extendedprice*lo_discount) as revenue
from lineorder, dates
where lo_orderdate = d_datekey
and d_weeknuminyear = $week
and d_year = $year
and lo_discount between $low and $high
and lo_quantity between $few and $many"""

_Q2 = """\
select sum(lo_revenue), d_year, p_brand1
from lineorder, dates, part, supplier
where lo_orderdate = d_datekey
and lo_partkey = p_partkey
and lo_suppkey = s_suppkey
and {part}
and s_region = '$region'
group by d_year, p_brand1
order by d_year, p_brand1"""

_Q3 = """\
select {place}, d_year, sum(lo_revenue) as revenue
from customer, lineorder, supplier, dates
where lo_custkey = c_custkey
and lo_suppkey = s_suppkey
and lo_orderdate = d_datekey
{where}
group by {place}, d_year
order by d_year asc, revenue desc"""

_YEARS = "and d_year >= $since and d_year <= $until"
_CITIES = """\
and (c_city='$city1' or c_city='$city2')
and (s_city='$city1' or s_city='$city2')
"""

_Q4 = """\
select {keys}, sum(lo_revenue - lo_supplycost) as profit
from dates, customer, supplier, part, lineorder
where lo_custkey = c_custkey
and lo_suppkey = s_suppkey
and lo_partkey = p_partkey
and lo_orderdate = d_datekey
{where}
group by {keys}
order by {keys}"""

_Q3_1 = _Q3.format(
    place="c_nation, s_nation", where=f"and c_region = '$region' and s_region = '$region'\n{_YEARS}"
)
_Q3_2 = _Q3.format(
    place="c_city, s_city", where=f"and c_nation = '$nation'\nand s_nation = '$nation'\n{_YEARS}"
)
_Q3_3 = _Q3.format(place="c_city, s_city", where=_CITIES + _YEARS)
_Q3_4 = _Q3.format(place="c_city, s_city", where=_CITIES + "and d_yearmonth = '$month'")
_Q4_1 = _Q4.format(
    keys="d_year, c_nation",
    where="""\
and c_region = '$region'
and s_region = '$region'
and (p_mfgr = '$mfgr1' or p_mfgr = '$mfgr2')""",
)
_Q4_2 = _Q4.format(
    keys="d_year, s_nation, p_category",
    where="""\
and c_region = '$region'
and s_region = '$region'
and (d_year = $year1 or d_year = $year2)
and (p_mfgr = '$mfgr1' or p_mfgr = '$mfgr2')""",
)
_Q4_3 = _Q4.format(
    keys="d_year, s_city, p_brand1",
    where="""\
and c_region = '$region'
and s_nation = '$nation'
and (d_year = $year1 or d_year = $year2)
and p_category = '$category'""",
)
_BY_BRAND = ("d_year", "p_brand1")
_BY_REVENUE = ("d_year", "revenue")

QUERIES: tuple[SsbQuery, ...] = (
    SsbQuery("Q1.1", _Q1_1, _sets(
        "year low high quantity",
        (1993, 1, 3, 25), (1992, 2, 4, 20), (1995, 4, 6, 30), (1997, 7, 9, 10), (1998, 0, 2, 40),
    )),
    SsbQuery("Q1.2", _Q1_2, _sets(
        "month low high few many",
        (199401, 4, 6, 26, 35), (199207, 1, 3, 10, 19), (199512, 2, 5, 31, 45),
        (199706, 6, 8, 1, 12), (199803, 0, 10, 20, 24),
    )),
    SsbQuery("Q1.3", _Q1_3, _sets(
        "week year low high few many",
        (6, 1994, 5, 7, 26, 35), (20, 1993, 1, 4, 5, 15), (31, 1996, 3, 6, 40, 50),
        (48, 1997, 8, 10, 15, 30), (2, 1998, 0, 2, 21, 29),
    )),
    SsbQuery("Q2.1", _Q2.format(part="p_category = '$category'"), _sets(
        "category region",
        ("MFGR#12", "AMERICA"), ("MFGR#25", "EUROPE"), ("MFGR#31", "ASIA"),
        ("MFGR#44", "AFRICA"), ("MFGR#53", "MIDDLE EAST"),
    ), _BY_BRAND),
    SsbQuery("Q2.2", _Q2.format(part="p_brand1 between '$first' and '$last'"), _sets(
        "first last region",
        ("MFGR#2221", "MFGR#2228", "ASIA"), ("MFGR#1103", "MFGR#1112", "AMERICA"),
        ("MFGR#3330", "MFGR#3335", "EUROPE"), ("MFGR#4138", "MFGR#4204", "AFRICA"),
        ("MFGR#5515", "MFGR#5522", "MIDDLE EAST"),
    ), _BY_BRAND),
    SsbQuery("Q2.3", _Q2.format(part="p_brand1 = '$brand'"), _sets(
        "brand region",
        ("MFGR#2221", "EUROPE"), ("MFGR#2239", "EUROPE"), ("MFGR#1340", "ASIA"),
        ("MFGR#4507", "AMERICA"), ("MFGR#5101", "AFRICA"),
    ), _BY_BRAND),
    SsbQuery("Q3.1", _Q3_1, _sets(
        "region since until",
        ("ASIA", 1992, 1997), ("EUROPE", 1993, 1996), ("AMERICA", 1995, 1998),
        ("AFRICA", 1992, 1994), ("MIDDLE EAST", 1997, 1998),
    ), _BY_REVENUE),
    SsbQuery("Q3.2", _Q3_2, _sets(
        "nation since until",
        ("UNITED STATES", 1992, 1997), ("CHINA", 1993, 1997), ("GERMANY", 1992, 1995),
        ("KENYA", 1996, 1998), ("SAUDI ARABIA", 1992, 1998),
    ), _BY_REVENUE),
    SsbQuery("Q3.3", _Q3_3, _sets(
        "city1 city2 since until",
        ("UNITED KI1", "UNITED KI5", 1992, 1997), ("CHINA    0", "CHINA    7", 1992, 1998),
        ("UNITED ST3", "UNITED ST8", 1993, 1996), ("ROMANIA  2", "ROMANIA  9", 1994, 1998),
        ("MOZAMBIQU4", "MOZAMBIQU6", 1992, 1995),
    ), _BY_REVENUE),
    SsbQuery("Q3.4", _Q3_4, _sets(
        "city1 city2 month",
        ("UNITED KI1", "UNITED KI5", "Dec1997"), ("CHINA    0", "CHINA    7", "Mar1995"),
        ("UNITED ST3", "UNITED ST8", "Jul1993"), ("ROMANIA  2", "ROMANIA  9", "Feb1996"),
        ("MOZAMBIQU4", "MOZAMBIQU6", "Oct1992"),
    ), _BY_REVENUE),
    SsbQuery("Q4.1", _Q4_1, _sets(
        "region mfgr1 mfgr2",
        ("AMERICA", "MFGR#1", "MFGR#2"), ("ASIA", "MFGR#3", "MFGR#4"),
        ("EUROPE", "MFGR#2", "MFGR#5"), ("AFRICA", "MFGR#1", "MFGR#5"),
        ("MIDDLE EAST", "MFGR#4", "MFGR#1"),
    ), ("d_year", "c_nation")),
    SsbQuery("Q4.2", _Q4_2, _sets(
        "region year1 year2 mfgr1 mfgr2",
        ("AMERICA", 1997, 1998, "MFGR#1", "MFGR#2"), ("ASIA", 1992, 1993, "MFGR#3", "MFGR#4"),
        ("EUROPE", 1994, 1996, "MFGR#2", "MFGR#5"), ("AFRICA", 1995, 1998, "MFGR#1", "MFGR#5"),
        ("MIDDLE EAST", 1993, 1997, "MFGR#4", "MFGR#1"),
    ), ("d_year", "s_nation", "p_category")),
    SsbQuery("Q4.3", _Q4_3, _sets(
        "region nation year1 year2 category",
        ("AMERICA", "UNITED STATES", 1997, 1998, "MFGR#14"),
        ("ASIA", "INDIA", 1992, 1993, "MFGR#21"), ("EUROPE", "FRANCE", 1994, 1996, "MFGR#35"),
        ("AFRICA", "MOROCCO", 1995, 1998, "MFGR#42"),
        ("MIDDLE EAST", "EGYPT", 1993, 1997, "MFGR#53"),
    ), ("d_year", "s_city", "p_brand1")),
)  # fmt: skip
