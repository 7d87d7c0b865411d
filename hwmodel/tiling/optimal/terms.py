"""The choices of the optimal search and the certificate that it gives: read without the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import Stationary, Transfers
from hwmodel.tiling.rows import TOUCHED, RowRule
from hwmodel.work.problem import Operand

__all__ = ["Certificate", "OfmapSpace", "Options", "Together"]

OfmapSpace = Literal["held", "counted"]  # where a tile of O must fit: if held, or always


@dataclass(frozen=True)
class Options:
    """The choices that the search is free to make, and its rules of counting."""

    partial_sum_bits: int = 32
    stationary: Stationary = "filter"
    rule: RowRule = TOUCHED
    ofmap_space: OfmapSpace = "held"
    transfers: Transfers = "upper"
    limit: int = 1_000_000  # entries of any list
    budget: int = 600_000  # tilings looked at, nests met and lists made: a second or two
    spare: float = 0.0  # of the energy: a tiling that saves less need not be found
    slack: float = 0.0  # [chip's unit]: likewise


@dataclass(frozen=True)
class Certificate:
    """A tiling's distance from the optimum: energy, lower bound, and whether that is proved."""

    energy: float  # [chip's unit]
    lower_bound: float  # no tiling of the space costs less [chip's unit]
    gap: float  # 1 - lower_bound / energy; 0 if proved
    proved: bool
    space: int  # tilings, fitting or not
    examined: int  # classes, nests of classes and tilings that were evaluated


class Together(NamedTuple):
    """What is known of all levels together."""

    floors: dict[tuple[Operand, ...], float]  # none that holds these costs less [chip's unit]
    mappings: list[Mapping]  # that cost little
