"""Random problems, tile chains and rules for the property tests; small, ragged and awkward."""

from hypothesis import strategies as st

from hwmodel.problem import Extents, Problem, Widths, Window
from hwmodel.rows import RowRule

small = st.integers(1, 4)
steps = st.integers(1, 3)
windows = st.builds(
    Window,
    size=st.integers(1, 9),
    step=steps,
    dilation=steps,
    pad=st.integers(-1, 4),
    pad_end=st.integers(0, 3),
    spread=steps,
)
widths = st.builds(Widths, *[st.sampled_from((1, 2, 8, 16, 32))] * 3)
row_rules = st.builds(
    RowRule, st.sampled_from(("touched", "bounding")), st.sampled_from(("skipped", "counted"))
)


@st.composite
def extents(draw):
    outs, taps = st.integers(1, 6), st.integers(1, 4)
    return Extents(*(draw(s) for s in (small, small, small, outs, outs, taps, taps)))


problems = st.builds(Problem, extents(), windows, windows, widths, st.integers(1, 2))


@st.composite
def tile_chains(draw, extent, levels=None):
    """Tiles of 1 to 4 levels, each within the one before."""
    chain = [extent]
    for _ in range(levels or draw(st.integers(1, 4))):
        chain.append(Extents(*(draw(st.integers(1, n)) for n in chain[-1])))
    return tuple(chain[1:])
