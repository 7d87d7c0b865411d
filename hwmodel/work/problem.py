"""The loop nest of a convolution, which every product of every layer in every pass is.

    O[n, m, ho, wo] += I[n, c, hi(ho, hf), wi(wo, wf)] * F[m, c, hf, wf]

Forward, backward-input and backward-weight of a convolution, a linear layer and an attention
product are all this nest with other extents. Everything that tiles, counts or prices sees only
`Problem` (loops to be tiled) and never a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from hwmodel.work.tensor import Factor

__all__ = [
    "LONGEST_LOOP",
    "OPERANDS",
    "PASSES",
    "Extents",
    "LoopNest",
    "Operand",
    "Problem",
    "ProductPass",
    "Tensor",
]
__all__ += ["Widths", "Window"]

LONGEST_LOOP = 2**31  # iterations: positions and rows stay 64-bit integers
Operand = Literal["I", "F", "O"]
OPERANDS: tuple[Operand, ...] = get_args(Operand)


class Extents(NamedTuple):
    """Lengths of the seven loops, of a whole problem or of one tile [elements]."""

    N: int  # images
    M: int  # channels of O
    C: int  # channels summed over
    HO: int  # rows of O
    WO: int  # columns of O
    HF: int  # rows of F
    WF: int  # columns of F


class Widths(NamedTuple):
    """Bits of one element of each operand [bit]; of formats with scales, as a decimal."""

    I: int | float  # noqa: E741  (the source's letter)
    F: int | float
    O: int | float  # noqa: E741


class Window(NamedTuple):
    """Rows that outputs read through taps: row = (out*step + tap*dilation - pad) / spread.

    `pad_end` is the padding after the last row. No row follows from it (the loop lengths say how
    far the window slides); counting rules that charge for padding need it.
    """

    size: int  # rows the input has, padding not among them
    step: int = 1  # the stride of a forward pass
    dilation: int = 1
    pad: int = 0  # padding before the first row; negative where the first rows are never read
    pad_end: int = 0
    spread: int = 1  # backward-input of a strided layer: only every spread-th position is a row


@dataclass(frozen=True)
class Problem:
    """The loop nest of one product; `groups` such nests run and share nothing.

    Hashable: equal problems are searched once.
    """

    extent: Extents  # of one group
    height: Window
    width: Window
    bits: Widths
    groups: int = 1
    # Widths at which MACs multiply, where others move: of a kernel's tensors together, or of none.
    multiplied: Widths | None = None

    @property
    def lane(self) -> Widths:
        """Widths of the operands in a lane of an array."""
        return self.multiplied or self.bits

    @property
    def I_elements(self) -> int:
        """Elements of I without its padding."""
        n = self.extent
        return self.groups * n.N * n.C * self.height.size * self.width.size

    @property
    def F_elements(self) -> int:
        """Elements of the filters."""
        n = self.extent
        return self.groups * n.M * n.C * n.HF * n.WF

    @property
    def O_elements(self) -> int:
        """Elements of the output."""
        n = self.extent
        return self.groups * n.N * n.M * n.HO * n.WO


ProductPass = Literal["forward", "backward_input", "backward_weight"]
Tensor = Literal["I", "F", "O", "dI", "dF", "dO"]

# The tensors at the places I, F and O in each pass (docs/model.md section 1).
PASSES: dict[ProductPass, tuple[Tensor, Tensor, Tensor]] = {
    "forward": ("I", "F", "O"),
    "backward_input": ("dO", "F", "dI"),
    "backward_weight": ("I", "dO", "dF"),
}


class LoopNest(NamedTuple):
    """The loops of one pass, before a method says how wide its operands are."""

    extent: Extents  # of one group
    height: Window
    width: Window
    groups: int
    tensors: tuple[Tensor, Tensor, Tensor]  # what moves as ifmaps, as filters and as ofmaps
    # Of a nest that stands for several: how often what moves at I, F and O moves; and MACs of all.
    times: tuple[Factor, Factor, Factor] | None = None
    macs: tuple[Factor, ...] = ()
