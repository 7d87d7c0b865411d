"""One pass of a convolution from a line of text: its loops as they stand, and as they are tiled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hwmodel.errors import HwmodelError, nearest
from hwmodel.graph.layers import Conv
from hwmodel.specs.hardware import Hardware
from hwmodel.work.flattening import TOGETHER, Loops, Merged, flattened, merged, spelled
from hwmodel.work.problem import PASSES, Extents, LoopNest, Problem, ProductPass, Widths

__all__ = ["Posed", "kept_apart", "of_several", "parsed_pass", "posed"]

_NEEDED = ("N", "M", "C", "H", "W", "K")
_OPTIONAL = {"stride": "1", "pad": "0", "dilation": "1", "groups": "1"}
_MOST = 2**31


class Posed(NamedTuple):
    """One pass of a convolution, and which of its loops are one."""

    nest: LoopNest  # seven loops
    bits: Widths
    loops: Loops = "apart"
    touched: bool = True  # as of `flattened`
    asked: Loops | None = None  # of the accounting, where a file of tiles has its own

    @property
    def apart(self) -> Problem:
        """The problem with its seven loops."""
        return self._of(self.nest)

    @property
    def problem(self) -> Problem:
        """The problem that is tiled."""
        return self._of(flattened(self.nest, self.loops, touched=self.touched))

    def _of(self, nest: LoopNest) -> Problem:
        return Problem(nest.extent, nest.height, nest.width, self.bits, nest.groups)

    def note(self, chip: Hardware) -> Iterator[str]:
        """Say which loops are one, and which could be and are not."""
        yield from map(of_several, merged(self.nest.extent, self.problem.extent))
        yield from kept_apart(self.nest, self.problem.extent, chip, touched=self.touched)
        if self.asked is not None and self._replace(loops=self.asked).problem != self.problem:
            yield (
                f"loops are {self.loops} as the file of tiles has them, not {self.asked} as the "
                "accounting has them"
            )


def kept_apart(nest: LoopNest, tiled: Extents, chip: Hardware, *, touched: bool) -> Iterator[str]:
    """Say which loops of a nest nothing couples and an axis of the chip tells apart.

    Args:
        tiled: extents of the nest as it is tiled.
        touched: as of `flattened`.
    """
    for name in sorted(chip.told_apart):
        one: Loops = "positions" if name == "positions" else "reduction"
        loops = TOGETHER[one]
        free = flattened(nest, one, touched=touched).extent != nest.extent
        if free and all(getattr(nest.extent, x) == getattr(tiled, x) for x in loops):
            yield (
                f"{spelled(loops)} could be one loop here and are not: an axis of {chip.name} "
                "takes one of them alone"
            )


def of_several(merged: Merged) -> str:
    """Say what a loop stands for.

    >>> of_several(("N", (("N", 4), ("HO", 7), ("WO", 5))))
    'N stands for N, HO and WO (4 x 7 x 5), which nothing couples'
    """
    loop, parts = merged
    lengths = " x ".join(f"{length:,}" for _, length in parts)
    return (
        f"{loop} stands for {spelled(name for name, _ in parts)} ({lengths}), which nothing couples"
    )


def posed(conv: str, bits: str, phase: str) -> Posed:
    """Parse a line of text into one pass of a convolution.

    >>> posed("N=1,M=4,C=2,H=8,W=8,K=3,pad=1", "32,32,32", "forward").apart.extent
    Extents(N=1, M=4, C=2, HO=8, WO=8, HF=3, WF=3)

    Raises: HwmodelError, ShapeError.
    """
    fields = _fields(conv)
    N, M, C, H, W, groups = (_whole(fields, name) for name in ("N", "M", "C", "H", "W", "groups"))
    pass_ = parsed_pass(phase)
    layer = Conv(
        name="conv",
        kind="conv",
        channels=M,
        kernel=_pair(fields, "K", 1),
        stride=_pair(fields, "stride", 1),
        padding=_pair(fields, "pad", 0) * 2,
        dilation=_pair(fields, "dilation", 1),
        groups=groups,
    )
    return Posed(layer.loops([(C, H, W)], N)[pass_], _widths(bits))


def parsed_pass(phase: str) -> ProductPass:
    """Return the pass of a word on the command line: backward-weight. Raises: HwmodelError."""
    passes = {name.replace("_", "-"): name for name in PASSES}
    if phase not in passes:
        raise HwmodelError(f"--pass {phase!r}: {nearest(phase, passes)}")
    return passes[phase]


def _fields(conv: str) -> dict[str, str]:
    fields = dict(_OPTIONAL)
    stated = set()
    for part in conv.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in (*_NEEDED, *_OPTIONAL):
            hint = nearest(name, [*_NEEDED, *_OPTIONAL])
            raise HwmodelError(f"--conv {part.strip()!r}: write NAME=NUMBER; {hint}")
        if name in stated:
            raise HwmodelError(f"--conv: {name} stands there twice")
        stated.add(name)
        fields[name] = value
    missing = [name for name in _NEEDED if name not in fields]
    if missing:
        raise HwmodelError(f"--conv: missing {', '.join(missing)}")
    return fields


def _whole(fields: dict[str, str], name: str, text: str | None = None, least: int = 1) -> int:
    text = fields[name] if text is None else text
    if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= _MOST:
        raise HwmodelError(f"--conv {name}={text}: must be a whole number from {least} to {_MOST}")
    return int(text)


def _pair(fields: dict[str, str], name: str, least: int) -> tuple[int, int]:
    rows, _, columns = fields[name].partition("x")
    return _whole(fields, name, rows, least), _whole(fields, name, columns or rows, least)


def _widths(bits: str) -> Widths:
    parts = [part.strip() for part in bits.split(",")]
    right = [re.fullmatch(r"[0-9]{1,2}", part) and 1 <= int(part) <= 64 for part in parts]
    if len(parts) != 3 or not all(right):
        raise HwmodelError(f"--bits {bits!r}: give three widths of 1 to 64 bit, for I, F and O")
    return Widths(*(int(part) for part in parts))
