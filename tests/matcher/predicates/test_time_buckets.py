"""Calendar functions and time zones: what is a function of a day, held against the JVM."""

from __future__ import annotations

import pytest

from matcher.index.registry import Registry
from matcher.model.expr import Agg, Call, Col, Lit
from matcher.model.ir import Block, CachePlan, MatchOptions, Measure, Output, Relation, StoredColumn
from matcher.predicates.context import PredicateContext
from matcher.predicates.time_buckets import read_time_function
from matcher.predicates.time_zones import fixed_offset, keeps_days
from matcher.rules.attempt import PlanAttempt, ViewAttempt
from matcher.rules.coarsen_time import coarsen_time

D = Col(0, "d", "date")
T = Col(0, "t", "timestamp")
SALES = Relation("sales", "sales")
MONTH = Call("trunc", (D, Lit("MONTH", "string")), "date")


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        ("yyyy", "YEAR"),
        ("yyyy-MM", "MONTH"),
        ("MMMM", "MONTH"),
        ("yyyy/QQ", "QUARTER"),
        ("E", "DAY"),
        ("yyyy-MM-dd", "DAY"),
        ("yyyy-MM HH", None),
        ("yyyy'T'", None),
        ("[yyyy]", None),
        ("-", None),
        ("z", None),
    ],
)
def test_the_letters_of_a_pattern_say_what_it_depends_on(pattern, unit):
    call = Call("date_format", (T, Lit(pattern, "string")), "string")
    found = read_time_function(call, "UTC")
    assert (None if found is None else found.unit) == unit


def test_a_unit_or_pattern_that_is_computed_is_nothing_known():
    column = Col(0, "s", "string")
    assert read_time_function(Call("trunc", (D, column), "date"), "UTC") is None
    assert read_time_function(Call("date_trunc", (column, T), "timestamp"), "UTC") is None
    assert read_time_function(Call("date_format", (T, column), "string"), "UTC") is None
    # shorter than a week gives NULL
    assert read_time_function(Call("trunc", (D, Lit("DAY", "string")), "date"), "UTC") is None


def test_the_day_of_a_moment_is_the_dates_own_where_no_day_was_skipped():
    moment = Call("cast", (D,), "timestamp")
    year = Call("date_trunc", (Lit("YEAR", "string"), moment), "timestamp")
    assert read_time_function(year, "Europe/Berlin").of == D
    assert read_time_function(year, "Asia/Manila").of == moment
    assert read_time_function(year, "").of == moment


def month_registry():
    registry = Registry()
    registry.put(
        CachePlan(
            "months",
            (SALES,),
            (),
            (StoredColumn("m", MONTH),),
            (Measure("u", Agg("sum", (Col(0, "v", "bigint"),), "bigint")),),
            rows=10,
        )
    )
    return registry


def since(day):
    wanted = Agg("sum", (Col(0, "v", "bigint"),), "bigint")
    test = Call("ge", (D, Lit(day, "date")), "boolean")
    return Block((SALES,), (test,), (Output("s", wanted),), group_keys=())


def test_a_remembered_decision_looks_at_the_next_constant_anew():
    registry, options = month_registry(), MatchOptions(time_zone="UTC")
    for day, hit in ((0, True), (1, False), (1, False), (31, True), (32, False), (0, True)):
        found = registry.decide(since(day), options)
        told = registry.decide(since(day), options, explain=True)
        assert (found.rewrite is not None) is (told.rewrite is not None) is hit, day
        if found.rewrite is not None:
            assert repr(found.rewrite.filters) == f"(ge($0.m, {day}:date),)"


def _storing(expr, zone):
    shared = PlanAttempt(None, None, MatchOptions(time_zone=zone), PredicateContext(()))
    return ViewAttempt(shared, available={expr: StoredColumn("day", expr)})


def test_a_filter_on_a_moment_needs_a_fixed_offset():
    day = Call("cast", (T,), "date")
    view = _storing(day, "UTC")
    test = Call("ge", (T, Lit(86_400_000_000, "timestamp")), "boolean")
    assert repr(coarsen_time(view, test)) == "ge($0.day, 1:date)"
    for zone in ("Europe/Berlin", "America/Havana", ""):
        other = _storing(day, zone)
        assert coarsen_time(other, test) is None
    # the same moment is not the start of a day an hour further east
    east = _storing(day, "+01:00")
    assert coarsen_time(east, test) is None


def test_offsets():
    assert fixed_offset("GMT+08:00") == 8 * 3600
    assert fixed_offset("-03:30") == -(3 * 3600 + 1800)
    assert fixed_offset("+19:00") is None
    assert not keeps_days("Mars/Base")


JAVA = """
import java.time.*;
import java.time.temporal.ChronoUnit;
import java.time.zone.*;

public class ZoneCheck {
    public static String faults(java.util.List names) {
        StringBuilder out = new StringBuilder();
        for (int n = 0; n < names.size(); n++) {
            ZoneId id = ZoneId.of((String) names.get(n));
            java.util.ArrayList all = new java.util.ArrayList(id.getRules().getTransitions());
            java.util.List rules = id.getRules().getTransitionRules();
            for (int y = 2000; y < 2100; y++) {
                for (int r = 0; r < rules.size(); r++) {
                    all.add(((ZoneOffsetTransitionRule) rules.get(r)).createTransition(y));
                }
            }
            for (int i = 0; i < all.size(); i++) {
                ZoneOffsetTransition t = (ZoneOffsetTransition) all.get(i);
                ZonedDateTime first = t.getInstant().atZone(id);
                ZonedDateTime hour = first.truncatedTo(ChronoUnit.HOURS);
                ZonedDateTime minute = first.truncatedTo(ChronoUnit.MINUTES);
                if (t.isGap() && (t.getDuration().toHours() >= 24
                    || !hour.toLocalDate().equals(first.toLocalDate())
                    || !minute.toLocalDate().equals(first.toLocalDate()))) {
                    out.append(id).append(' ').append(t).append('\\n');
                }
            }
        }
        return out.toString();
    }
}
"""


@pytest.mark.spark
def test_the_listed_zones_skip_no_day_and_no_hour_leaves_its_day(spark):
    jvm = spark._jvm
    known = [str(name) for name in jvm.java.time.ZoneId.getAvailableZoneIds()]
    listed = [name for name in known if keeps_days(name)]
    assert len(listed) > 400
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(JAVA)
    check = compiler.getClassLoader().loadClass("ZoneCheck")
    names = jvm.java.util.ArrayList()
    for name in listed:
        names.add(name)
    kinds = spark.sparkContext._gateway.new_array(jvm.java.lang.Class, 1)
    kinds[0] = jvm.java.lang.Class.forName("java.util.List")
    values = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)
    values[0] = names
    assert check.getMethod("faults", kinds).invoke(None, values) == ""
