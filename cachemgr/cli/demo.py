"""`cachemgr demo`: the 13 SSB queries without and with a cache."""

from __future__ import annotations

from pathlib import Path
from random import randrange
from typing import Annotated

import typer

from cachemgr.cli.failure import handled


def demo(
    scale: Annotated[float, typer.Option(min=0.0001, help="1 is 6,000,000 lineorder rows.")] = 1.0,
    workdir: Annotated[
        Path, typer.Option(help="Where data and caches are kept for the next run.")
    ] = Path("demo-data"),
    report: Annotated[Path | None, typer.Option(help="Write an HTML report there.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the generated data.")] = 42,
    query_seed: Annotated[
        int | None, typer.Option(help="Seed of the queries' parameters; another one each run.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over.")] = False,
) -> None:
    """Generate SSB data, build one cube, and run the 13 queries without and with it."""
    from cachemgr.extras import require

    with handled():
        require("`cachemgr demo`", "spark")
        from cachemgr.demo.run import DemoOptions, run_demo
        from cachemgr.demo.ssb_draw import MOST

        options = DemoOptions(
            scale=scale,
            workdir=workdir,
            report=report,
            seed=seed,
            query_seed=randrange(MOST) if query_seed is None else query_seed,
            fresh=fresh,
        )
        raise typer.Exit(run_demo(options))
