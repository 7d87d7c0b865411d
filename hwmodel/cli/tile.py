"""tile: one convolution on one chip, its tiling and the proof that there is no better one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.options import bundled_names
from hwmodel.cli.screen import handed, show
from hwmodel.errors import HwmodelError

__all__ = ["tile"]


def tile(
    hardware: Annotated[
        str,
        typer.Option(help="The chip, by name or file.", autocompletion=bundled_names("hardware")),
    ],
    conv: Annotated[
        str,
        typer.Option(
            help="N=1,M=64,C=64,H=56,W=56,K=3,stride=1,pad=1 and, if need be, dilation=1,groups=1; "
            "H and W of the input; K, stride, pad and dilation also as 3x1 (rows x columns)."
        ),
    ],
    bits: Annotated[str, typer.Option(help="Bits of I, F and O as the pass moves them.")],
    pass_: Annotated[
        str, typer.Option("--pass", help="forward, backward-input or backward-weight.")
    ] = "forward",
    search: Annotated[str, typer.Option(help="optimal or level-by-level.")] = "",
    counting: Annotated[str, typer.Option(help="exact or paper.")] = "",
    stationary: Annotated[str, typer.Option(help="filter or best.")] = "",
    accounting: Annotated[
        str,
        typer.Option(
            help="Preset or file for all the rest.", autocompletion=bundled_names("accounting")
        ),
    ] = "full",
    resident: Annotated[
        list[str] | None,
        typer.Option(help="An operand that stays on the chip, as I=L2; repeatable."),
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option(help="Room that is left beside other tensors, as L2=3MiB; repeatable."),
    ] = None,
    tiles: Annotated[
        Path | None, typer.Option(help="Evaluate the tiling of this JSON file, do not search.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the tiling to this JSON file.")] = None,
    own_tiles: Annotated[
        bool,
        typer.Option(help="Say what tiles of its own for each operand could gain at most, too."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tile one convolution: loop nest, buffers, accesses, energy, and how far from the optimum."""
    from hwmodel.specs.files import load
    from hwmodel.specs.hardware import Hardware
    from hwmodel.views.posed import parsed_pass, posed
    from hwmodel.views.rooms import ALONE, parsed_residents
    from hwmodel.views.saved_tiling import read_mapping
    from hwmodel.views.tile_report import chosen, solved, with_own_tiles

    _check_json(save)
    chip = load(Hardware, hardware)
    choices, loops = chosen(
        accounting, chip, search=search, counting=counting, stationary=stationary
    )
    touched = choices.rows == "touched"
    product = posed(conv, bits, pass_)._replace(loops=loops, touched=touched)
    mapping, residents = None, parsed_residents(resident or (), free or (), chip)
    if tiles:
        saved = read_mapping(tiles, product, chip)
        mapping, product = saved.mapping, saved.posed
        residents = saved.beside(residents, tiles)
    if residents != ALONE and choices.search != "optimal":
        whose = f"{tiles}: its resident and free_bits" if tiles else "--resident and --free"
        raise HwmodelError(f"{whose} are for --search optimal")
    result = solved(product, chip, choices, mapping, parsed_pass(pass_), residents)
    if own_tiles:
        result = with_own_tiles(result)
    if save is not None:
        handed(result.json(), save)
    if json:
        typer.echo(result.json(), nl=False)
    else:
        show(result.pieces())
    if result.overflows:
        raise typer.Exit(1)


def _check_json(path: Path | None) -> None:
    """See that a tiling goes into a file of its kind. Raises: HwmodelError."""
    if path is not None and path.suffix.lower() != ".json":
        raise HwmodelError(f"--save {path}: a tiling is written to a .json file")
