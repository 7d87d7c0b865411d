"""generate: a language model's tokens, one by one behind a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hwmodel.cli.options import Drawn
from hwmodel.cli.screen import handed, say, show
from hwmodel.errors import HwmodelError, printable
from hwmodel.rerun.asked import (
    Accounting,
    Chip,
    InputShape,
    Method,
    Names,
    Network,
    Options,
    Says,
)

__all__ = ["generate"]


class GenerateAsked(Options):
    """What is generated, and where tables and figures go."""

    network: Network
    hardware: Chip
    method: Method
    prefill: Annotated[int, Says("Tokens of the prompt of each sequence.")]
    decode: Annotated[int, Says("Steps of decoding; each gives a token of each sequence.")]
    batch: Annotated[Names, Says("Sequences side by side; several, separated by commas.")] = ("1",)
    cache_bits: Annotated[
        str,
        Says(
            "Bits of an element in the cache of keys and values, as 8, or 8/128 with a scale of 16 "
            "bit for 128 elements.",
            usual="as products read it",
        ),
    ] = ""
    accounting: Accounting = "full"
    input_shape: InputShape = ()
    csv: Annotated[str, Says("A row for each phase and part; '-' is standard output.")] = ""
    plot: Annotated[
        Path | None, Says("FILE.png, .svg or .pdf: energy a token over cache length and batch.")
    ] = None


def generate(options: GenerateAsked, drawn: Drawn) -> None:
    """Energy a generated token: prefill and decoding, by weights, cache, maps and scores."""
    from hwmodel.cli.outputs import see_apart
    from hwmodel.importers.load import load_network
    from hwmodel.importers.onnx import input_shapes
    from hwmodel.model.generate import LONGEST
    from hwmodel.model.generate import generate as generated
    from hwmodel.specs.accounting import Accounting as Choices
    from hwmodel.specs.arguments import whole
    from hwmodel.specs.files import load
    from hwmodel.specs.hardware import Hardware
    from hwmodel.specs.method import Method as Rules
    from hwmodel.views.generation import generation_csv, generation_figure, generation_tables
    from hwmodel.views.plot import see_figure, write_figure

    asked, style = options, drawn.as_style()
    if asked.plot is not None:
        see_figure(asked.plot)
    batches = [_sequences(word) for word in asked.batch]
    prefill = whole("--prefill", asked.prefill, 1, LONGEST)
    decode = whole("--decode", asked.decode, 0, LONGEST)
    network = load_network(asked.network, input_shapes(asked.input_shape))
    chip, method = load(Hardware, asked.hardware), load(Rules, asked.method)
    choices = load(Choices, asked.accounting)
    table = Path(asked.csv) if asked.csv not in ("", "-") else None
    see_apart({"--csv": table, "--plot": asked.plot})  # what is read is known by now
    found = [
        generated(
            network, chip, method, prefill=prefill, decode=decode,
            batch=batch, cache_bits=asked.cache_bits or None, accounting=choices,
        )
        for batch in batches
    ]  # fmt: skip
    if asked.csv != "-":
        show(generation_tables(found))
    if asked.csv:
        handed(generation_csv(found), asked.csv)
    if asked.plot is not None:
        write_figure(
            lambda own: generation_figure(found, own), asked.plot, style=style,
            methods=[method.name],
        )  # fmt: skip
        say(printable(f"wrote {asked.plot}"))


def _sequences(word: str) -> int:
    if not (word.isascii() and word.isdigit() and int(word) > 0):
        raise HwmodelError(f"--batch {word!r}: a whole number above 0, or several with commas")
    return int(word)
