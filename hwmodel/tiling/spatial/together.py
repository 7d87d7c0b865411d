"""What is known of all levels together, for the search that looks at them one by one.

That search bounds each level alone, from which little follows where boundaries hold different
operands. Sizes that need not be whole bound all levels at once, and mappings near them are often
better than what is cheap level by level.
"""

from __future__ import annotations

from hwmodel.tiling.optimal.compiled import is_compiled
from hwmodel.tiling.optimal.terms import Options, Together
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.spatial.choices import Choices, holdings
from hwmodel.tiling.spatial.parted import Parts
from hwmodel.tiling.spatial.space import Space
from hwmodel.tiling.spatial.trials import NEARER, Search
from hwmodel.work.problem import Problem

__all__ = ["together"]

OPEN = 2e-3  # above the bound, from which on sizes are looked at part by part
FAR = 3e-2  # below what is known already, from which on they are not
WIDE, AROUND = 1e-2, 12  # above the bound, from which on a longer look is taken; parts for it
NEAR = 3  # parts with low bounds near whose sizes mappings are sought
PATIENCE = 40, 6  # cuts of parts after which more must be known: compiled, and not


def together(
    problem: Problem, chip: Memories, options: Options, known: float, bound: float
) -> Together:
    """Return bounds of every choice of what is held, and mappings that cost little.

    Args:
        chip: with one memory a level, and no array.
        known: energy of a mapping; where the bound is near it, no other is sought [chip's unit].
        bound: what is known already; bounds that are far below are left as they are.
    """
    asked = SearchOptions(
        search="optimal",
        stationary=options.stationary,
        counting="exact",
        rows=options.rule.rows,
        padding=options.rule.padding,
        partial_sum_bits=options.partial_sum_bits,
        transfers=options.transfers,
    )
    space = Space(problem, chip, asked)
    parts = Parts.of(space, holdings(asked.stationary, space.depth), apart=False)
    mappings = []
    if known > parts.least * (1 + NEARER):
        search = Search(parts.least, parts.sure(), Choices.on(space.roughly))
        best = min(known, search.best().energy)
        if best > parts.least * (1 + OPEN) and parts.least > bound * (1 - FAR):
            parts.cut(best, PATIENCE[not is_compiled()])
            best = search.again(parts.least, parts.lowest(NEAR)).energy
            if min(known, best) > parts.least * (1 + WIDE):
                search.longer(parts.least, parts.lowest(AROUND), WIDE)
        found = search.counted(Choices.on(space))
        mappings.append(found.held.mapping(found.point))
    return Together({held: one.energy for held, one in parts.sure().items()}, mappings)
