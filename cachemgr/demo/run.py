"""The demo from nothing to the proof: data, joins, cube, refresh, 13 queries twice, report."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cachemgr.demo.figures import figures, load_now
from cachemgr.demo.growing import Growth, try_to_grow
from cachemgr.demo.measure import QueryResult, failures, measure, warm_up
from cachemgr.demo.options import (
    DemoOptions,
    definition_hash,
    open_folder,
    store_definition,
    stored_definition,
)
from cachemgr.demo.progress import Step, Steps, duration, job_bar
from cachemgr.demo.published import Coverage, published_cube_coverage
from cachemgr.demo.report import example_of, render_report
from cachemgr.demo.result import DemoResult
from cachemgr.demo.session import shown_settings, start_session
from cachemgr.demo.spark_log import SparkLog
from cachemgr.demo.ssb_cube import CUBE_NAME, RECORD_PRESERVING_JOINS, cube_ddl
from cachemgr.demo.ssb_data import prepare
from cachemgr.demo.ssb_draw import drawn
from cachemgr.demo.ssb_queries import SsbQuery
from cachemgr.spark.process.cancellable import Cancellable
from cachemgr.spark.spark_errors import without_traces

__all__ = ["DemoOptions", "run_demo"]

_LOG_WIDTH = 130


def run_demo(options: DemoOptions, console: Console | None = None) -> int:
    """Runs the demo. Data and caches are kept for the next run.

    Args:
        options: Scale, seed, folders.
        console: Where to print, standard output if None.

    Returns:
        0, or 1 if a query misses, differs or fails, or returns no row at scale 1 and above.

    Raises:
        CacheManagerError: The folder is not the demo's, or data or cube could not be made.
    """
    console = console or _console()
    kept = open_folder(options)
    steps = Steps(console, _plan(options.scale, kept))
    load = load_now()
    console.print(f"[bold]Relational Cache demo[/] scale {options.scale:g}, seed {options.seed}")
    console.print(
        f"[dim]parameters of the queries drawn with --query-seed {options.query_seed}; "
        f"load before {'not known' if load is None else load}[/]"
    )
    console.print(f"[dim]folder {escape(str(options.folder))}[/]")
    log = SparkLog(options.folder / "spark.log")
    with steps.step(), log.receives_jvm():
        spark = start_session(options.folder)
    without_traces()
    stopped = threading.Event()

    def show(line: str) -> None:
        if not stopped.is_set():  # jobs that Ctrl-C cancels say so at length
            print(line, file=sys.stderr, flush=True)

    try:
        with log.shows_errors(show):
            result = Cancellable(spark).run(
                lambda: _run(spark, options, steps, console, load), stopped.set
            )
    except BaseException:
        _name_log(console, log)
        raise
    finally:
        spark.stop()
    _summary(console, result, options)
    _name_log(console, log)
    return 1 if result.failures else 0


def _name_log(console: Console, log: SparkLog) -> None:
    _print_path(console, "what Spark itself logged is in", log.path)


def _print_path(console: Console, said: str, path: Path) -> None:
    """A line with a path, which is not broken, so that it can be copied."""
    console.print(f"[dim]{said} {escape(str(path))}[/]", soft_wrap=True)


def _console() -> Console:
    # A log has no width of its own, and the table does not read well in the default of 80.
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_LOG_WIDTH)


def _plan(scale: float, kept: bool) -> tuple[Step, ...]:
    """The steps with what they took at scale 1 on two cores; fixed costs stay at any scale."""
    made = 0.05 if kept else 1.0
    return (
        Step("Start Spark with the hook", 8),
        Step("Make the SSB tables, or take those that are there", 2 + (8 + 20 * scale) * made),
        Step("Declare four record-preserving joins and one cube", 5 + 8 * scale * made),
        Step("Refresh the cube", 2 + (10 + 60 * scale) * made),
        Step("Run 13 queries with 6 parameter sets without and with the hook", 55 + 70 * scale),
        Step("Ask what the published 16-set cube would answer by itself", 4),
        Step("Append 1 % to lineorder, ask at once, refresh, ask again", 15 + 70 * scale),
        Step("Write the report", 0.1),
    )


def _run(
    spark: SparkSession, options: DemoOptions, steps: Steps, console: Console, load: float | None
) -> DemoResult:
    with steps.step():
        _make_tables(spark, options, console)
    with steps.step():
        _declare(spark, options, console)
    with steps.step(), job_bar(spark, console, CUBE_NAME):
        refreshed = spark.sql(f"REFRESH RELATIONAL CACHE {CUBE_NAME}").collect()
    for row in refreshed:
        facts = ", ".join(f"{key} {value}" for key, value in row.asDict().items())
        console.print(f"  [dim]{escape(facts)}[/]")
    with steps.step():
        settings = shown_settings(spark)
        console.print(
            "  the same settings on both sides, but spark.cachemgr.mode (off, rewrite):\n  "
            + "\n  ".join(f"[dim]{escape(key)} = {escape(value)}[/]" for key, value in settings)
        )
        results = _measure_all(spark, console, drawn(options.query_seed))
    console.print(_table(results))
    with steps.step():
        coverage = published_cube_coverage(spark)
        _show_coverage(console, coverage)
    with steps.step(), job_bar(spark, console, CUBE_NAME):
        growth = try_to_grow(spark)
    for line in (growth,) if isinstance(growth, str) else growth.told():
        console.print(f"  {escape(line)}")
    with steps.step():
        result = DemoResult(
            scale=options.scale,
            seed=options.seed,
            settings=settings,
            timings=tuple(steps.timings),
            queries=results,
            coverage=coverage,
            failures=(*failures(results, options.scale), *_failures_of(growth)),
            growth=None if isinstance(growth, str) else growth,
            query_seed=options.query_seed,
            load=load,
        )
        options.report_path.parent.mkdir(parents=True, exist_ok=True)
        options.report_path.write_text(render_report(result), encoding="utf-8")
        text = json.dumps(figures(result), indent=2, ensure_ascii=False)
        options.figures_path.write_text(f"{text}\n", encoding="utf-8")
    return result


def _failures_of(growth: Growth | str) -> tuple[str, ...]:
    return (growth,) if isinstance(growth, str) else growth.failures


def _make_tables(spark: SparkSession, options: DemoOptions, console: Console) -> None:
    tables = prepare(
        spark,
        options.folder / "data",
        options.scale,
        options.seed,
        lambda name, rows: job_bar(spark, console, f"{name} {rows:,} rows"),
    )
    for table in tables:
        if table.reused:
            console.print(f"  {table.name}: {table.rows:,} rows, already there")


def _declare(spark: SparkSession, options: DemoOptions, console: Console) -> None:
    for statement in RECORD_PRESERVING_JOINS:
        console.print(f"  [dim]{escape(statement.splitlines()[1])}[/]")
        spark.sql(statement)
    before = stored_definition(options)
    # Another program version may have another cube: the old one must not answer for it.
    replace = before is not None and before != definition_hash(cube_ddl())
    spark.sql(cube_ddl(replace=replace))
    store_definition(options, cube_ddl())
    console.print(f"  [dim]cube {CUBE_NAME}: no predicate but the four joins[/]")


def _measure_all(
    spark: SparkSession, console: Console, queries: Sequence[SsbQuery]
) -> tuple[QueryResult, ...]:
    console.print("  [dim]warm-up of both sides with the paper's parameters[/]")
    warm_up(spark, queries)
    results = []
    for query in queries:
        result = measure(spark, query)
        results.append(result)
        if result.error:
            console.print(f"  {query.name} [red]failed[/]")
            continue
        outcome = "hit" if result.hit else "[red]miss[/]"
        same = "equal" if result.equal else "[red]differs[/]"
        console.print(
            f"  {query.name} {result.without:6.2f} s → {result.with_hook:5.2f} s  {outcome}, "
            f"{result.rows:,} rows {same}"
        )
    return tuple(results)


def _table(results: Sequence[QueryResult]) -> Table:
    table = Table(
        title="Medians over five sets of parameters not seen before", title_justify="left"
    )
    for name in ("query", "cache"):
        table.add_column(name, no_wrap=True)
    table.add_column("grouping set", min_width=14)
    for name in ("rows", "without", "with", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("equal", no_wrap=True)
    for one in results:
        table.add_row(
            one.name,
            ", ".join(one.caches) if one.hit else "[red]miss[/]",
            one.grouping_set or "none",
            f"{one.rows:,}",
            f"{one.without:.3f} s",
            f"{one.with_hook:.3f} s",
            f"{one.ratio:.1f} x",
            "yes" if one.equal else "[red]no[/]",
        )
    return table


def _show_coverage(console: Console, coverage: Sequence[Coverage]) -> None:
    for one in coverage:
        if one.answered:
            text = f"[green]yes[/] from {escape(one.grouping_set or 'the cube')}"
        else:
            text = f"[yellow]no[/]  {escape(one.why)}"
        console.print(f"  {one.query:<7} {text}")
    answered = sum(one.answered for one in coverage)
    console.print(f"  {answered} of {len(coverage)}; nothing was built to find that out")


def _summary(console: Console, result: DemoResult, options: DemoOptions) -> None:
    example = example_of(result.queries)
    if example is not None:
        console.print(f"\n[bold]{example.name} as it ran[/]\n{escape(example.rewritten_sql or '')}")
    for query in result.queries:
        if query.empty_sets:
            numbers = ", ".join(str(number + 1) for number in query.empty_sets)
            console.print(f"[yellow]{query.name} selects nothing here with set {numbers}[/]")
    count = len(result.queries)
    console.print(
        f"\n[bold]{result.hits} of {count} hit, {result.equals} of {count} equal, "
        f"geometric mean {result.mean_ratio:.1f} x[/]"
    )
    for budget, measured, met in result.budgets():
        mark = "[green]met[/]" if met else "[yellow]not met[/]"
        console.print(f"  {budget}: {measured} {mark}")
    for text in result.failures:
        console.print(f"[red]{escape(text)}[/]")
    total = sum(seconds for _, seconds in result.timings)
    console.print(f"whole demo {duration(total)}")
    _print_path(console, "the report is", options.report_path)
    _print_path(console, "data and caches are kept in", options.folder)
