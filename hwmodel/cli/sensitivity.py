"""sensitivity: what moves the percentages, and whether the ranking of methods survives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.network import InputShape
from hwmodel.cli.options import (
    Accounting,
    Batch,
    Chips,
    Csv,
    Date,
    Methods,
    Mode,
    Network,
    Out,
    Strict,
)
from hwmodel.cli.screen import Destination, destination, progress, say, told
from hwmodel.errors import HwmodelError, printable

if TYPE_CHECKING:
    from hwmodel.specs.provenance import Provenance
    from hwmodel.vary.sensitivity import Sensitivity

__all__ = ["sensitivity"]

Samples = Annotated[
    int, typer.Option(help="Points at which constants are drawn all at once; 0 for none.")
]
Ranges = Annotated[
    Path | None,
    typer.Option(
        help="YAML file of what is drawn: 'dotted.path: \\[low, high]'.",  # no markup of rich
        show_default="every energy, price and capacity, x 1/2 to x 2",
    ),
]
Seed = Annotated[int, typer.Option(help="Of the draws.")]
Jobs = Annotated[int | None, typer.Option(help="Processes.", show_default="as many as cores")]


def sensitivity(
    network: Network,
    hardware: Chips,
    methods: Methods,
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
    date: Date = False,
) -> None:
    """Every constant of the chips and every choice of the accounting moved, one at a time."""
    from hwmodel.model.not_counted import refuse_unknown
    from hwmodel.rerun.question import question
    from hwmodel.specs.provenance import Provenance, input_of_file, written
    from hwmodel.vary.sensitivity import sensitivity as moved

    inputs = {"--hardware": hardware, "--methods": methods, "--accounting": accounting,
              "--batch": batch, "--mode": mode, "--input-shape": input_shape}  # fmt: skip
    draws: dict[str, object] = {"--samples": samples, "--seed": seed, "--ranges": ranges}
    to = destination(csv, "", "", out, date)
    asked = question(written("compare", network, inputs))
    if len(asked.accountings) > 1:
        raise HwmodelError(f"--accounting {accounting!r}: one at a time")
    if strict:
        refuse_unknown(asked.network)
    found = moved(
        asked.network, asked.hardware, asked.methods, accounting=asked.accountings[0],
        batch=asked.batch, mode=asked.mode, samples=samples, seed=seed, ranges=ranges,
        jobs=jobs if jobs is not None else os.cpu_count() or 1, watch=progress,
    )  # fmt: skip
    command = written("sensitivity", network, {**dict(asked.command.options), **draws})
    files = [input_of_file("ranges", ranges)] if ranges else []
    _deliver(found, Provenance(command, (*asked.inputs(), *files), date=to.date), to)


def _deliver(found: Sensitivity, provenance: Provenance, to: Destination) -> None:
    """Tables to the screen; the CSVs, and a figure for each chip, to a folder."""
    from hwmodel.rerun.tables import NATURE, effects_table, spreads_table
    from hwmodel.specs.files import write
    from hwmodel.views.sensitivity_tables import sensitivity_tables
    from hwmodel.views.tornado import draw_tornado

    text = effects_table(found.effects).csv(provenance)
    notes = f"All figures are {NATURE}.\n{provenance}"
    folder = told(sensitivity_tables(found), notes, text, to)
    if folder is None:
        return
    first = found.effects[0]
    stem = f"sensitivity_{first.network}_{first.accounting}_{first.mode}_batch{first.batch}"
    write(folder / f"{stem}.csv", text)
    if found.sampled:
        spreads = spreads_table(found.sampled)
        write(folder / f"{stem}_samples.csv", spreads.csv(provenance))
    for chip in dict.fromkeys(effect.hardware for effect in found.effects):
        mine = [effect for effect in found.effects if effect.hardware == chip]
        for ending in ("png", "svg"):
            figure = folder / f"{stem}_{chip}_tornado.{ending}"
            draw_tornado(mine, figure, provenance.cells[:3])
    more = ", _samples.csv" if found.sampled else ""
    wrote = (
        f"wrote {folder / stem}.csv{more}, and a tornado of each chip as .png and .svg beside it"
    )
    say(printable(wrote))
