"""sensitivity: what moves the percentages, and whether the ranking of methods survives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.network import InputShape, chosen_network
from hwmodel.cli.options import Accounting, Batch, Csv, Mode, Network, Out, Strict, names
from hwmodel.cli.screen import progress, refuse_input, say, told

if TYPE_CHECKING:
    from hwmodel.sensitivity import Sensitivity

__all__ = ["sensitivity"]


Names = Annotated[str, typer.Option(help="By name or file, separated by commas.")]
Samples = Annotated[
    int, typer.Option(help="Points at which constants are drawn all at once; 0 for none.")
]
Ranges = Annotated[
    Path | None,
    typer.Option(
        help="YAML file of what is drawn: 'dotted.path: [low, high]'.",
        show_default="every energy, price and capacity, x 1/2 to x 2",
    ),
]
Seed = Annotated[int, typer.Option(help="Of the draws.")]
Jobs = Annotated[int | None, typer.Option(help="Processes.", show_default="as many as cores")]


def sensitivity(
    network: Network,
    hardware: Names,
    methods: Names,
    accounting: Accounting = "paper",
    batch: Batch = None,
    mode: Mode = "training",
    samples: Samples = 100,
    seed: Seed = 0,
    ranges: Ranges = None,
    jobs: Jobs = None,
    input_shape: InputShape = None,
    strict: Strict = False,
    csv: Csv = "",
    out: Out = None,
) -> None:
    """Every constant of the chips and every choice of the accounting moved, one at a time."""
    refuse_input(csv)  # before the work
    from hwmodel.sensitivity import sensitivity as moved

    found = moved(
        chosen_network(network, input_shape, strict),
        names(hardware, "--hardware"),
        names(methods, "--methods"),
        accounting=accounting,
        batch=1 if batch is None else batch,
        mode=mode,  # type: ignore[arg-type]  # `moved` checks it
        samples=samples,
        seed=seed,
        ranges=ranges,
        jobs=jobs if jobs is not None else os.cpu_count() or 1,
        watch=progress,
    )
    _deliver(found, csv, out)


def _deliver(found: Sensitivity, csv: str, out: Path | None) -> None:
    """Tables to the screen; the CSVs, and a figure for each chip, to a folder."""
    from hwmodel.views.sensitivity_tables import effects_csv, sensitivity_tables, spreads_csv
    from hwmodel.views.tables import NATURE, write_text
    from hwmodel.views.tornado import draw_tornado

    text = effects_csv(found.effects)
    end = f"All figures are {NATURE}."
    folder = told(sensitivity_tables(found), end, text, csv=csv, out=out)
    if folder is None:
        return
    first = found.effects[0]
    stem = f"sensitivity_{first.network}_{first.accounting}_{first.mode}_batch{first.batch}"
    write_text(folder / f"{stem}.csv", text)
    if found.sampled:
        write_text(folder / f"{stem}_samples.csv", spreads_csv(found.sampled))
    for chip in dict.fromkeys(effect.hardware for effect in found.effects):
        mine = [effect for effect in found.effects if effect.hardware == chip]
        for ending in ("png", "svg"):
            draw_tornado(mine, folder / f"{stem}_{chip}_tornado.{ending}")
    more = ", _samples.csv" if found.sampled else ""
    say(f"wrote {folder / stem}.csv{more}, and a tornado of each chip as .png and .svg beside it")
