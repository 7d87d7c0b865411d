"""Random layers, problems, tile chains, rules and chips; small, ragged and awkward."""

import os

from hypothesis import strategies as st

from hwmodel.graph.layers import Conv
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.rows import RowRule
from hwmodel.work.problem import Extents, Problem, Widths, Window


def examples(thorough, part=10):
    """So many random cases; a tenth or another part unless HWMODEL_TESTS=thorough is set."""
    if os.environ.get("HWMODEL_TESTS") == "thorough":
        return thorough
    return max(10, thorough // part)


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


def chip(capacities, energies):
    """A chip from the bits and the (read, write) energies of its levels, the outermost first.

    Three capacities in the place of one are those of a level split into I, F and O, which have
    one pair of energies, or three.
    """
    levels = []
    for i, (bits, costs) in enumerate(zip(("unlimited", *capacities), energies, strict=True)):
        level = {"level": len(energies) - 1 - i, "name": f"L{i}"}
        if isinstance(bits, tuple):
            each = costs if isinstance(costs[0], tuple) else [costs] * 3
            level["split"] = [
                {"name": f"L{i}{x}", "holds": [x], "capacity": f"{n} bit", **priced(*pair)}
                for x, n, pair in zip("IFO", bits, each, strict=True)
            ]
        else:
            size = bits if bits == "unlimited" else f"{bits} bit"
            level |= {"capacity": size, "holds": ["I", "F", "O"], **priced(*costs)}
        levels.append(level)
    mac = {"operation": "mac", "bits": 32, "energy": 1.0, "source": "test"}
    return Hardware.model_validate(
        {
            "version": 1,
            "name": "small",
            "title": "a small chip",
            "energy_unit": "pJ",
            "sources": {"test": "made up"},
            "levels": levels,
            "arithmetic": [mac],
        }
    )


prices = st.one_of(st.just(0.0), *[st.floats(-3, 3).map(lambda e: round(10.0**e, 4))] * 7)


def priced(read, write):
    return {"read_energy": read, "write_energy": write, "source": "test"}


@st.composite
def chips(draw, levels):
    """Small chips whose capacities bind at every level, shared and split.

    Of a third of them, inner memories are smaller and cheaper, and a write costs about as much as a
    read; of another, they are dearer, and a write costs little; of the last, prices have no order
    and may be zero, and sizes have none at times.
    """
    kind = draw(st.sampled_from(("ordered", "inverted", "shuffled")))
    shuffled_sizes = kind == "shuffled" and draw(st.booleans())
    capacities, most = [], 2000
    for _ in range(levels - 1):
        most = draw(st.integers(16, 2000 if shuffled_sizes else max(40, most)))
        split = draw(st.booleans())
        part = st.integers(max(8, most // 4), most)
        capacities.append((draw(part), draw(part), draw(part)) if split else most)
    if kind == "shuffled":
        pair = st.tuples(prices, prices)
        parts = [isinstance(bits, tuple) for bits in ("unlimited", *capacities)]
        return chip(
            capacities, [draw(st.tuples(*[pair] * 3) if split else pair) for split in parts]
        )
    energies, level = [], 200.0 if kind == "ordered" else 1.0
    written = (1, 1, 1.25, 0.5) if kind == "ordered" else (0.05, 0.2, 0.5, 1)
    for _ in range(levels):
        energies.append((level, level * draw(st.sampled_from(written))))
        step = draw(st.sampled_from((1, 1.5, 2, 5, 10)))
        level = round(level / step if kind == "ordered" else level * step, 6)
    return chip(capacities, energies)


@st.composite
def small_problems(draw, tilings):
    """Problems with at most so many tilings of each loop together, with some loop of 4 to 9."""
    sizes = [1, 1, 1, 1, 1, 1, 1]
    for _ in range(draw(st.integers(2, 9))):
        i = draw(st.integers(0, 6))
        longer = [*sizes[:i], min(sizes[i] + draw(st.integers(1, 4)), 9), *sizes[i + 1 :]]
        if tilings(longer) <= 40_000:
            sizes = longer
    bits = draw(st.builds(Widths, *[st.sampled_from((1, 2, 4, 8))] * 3))
    groups = draw(st.integers(1, 2))
    return Problem(Extents(*sizes), draw(windows), draw(windows), bits, groups)


@st.composite
def convolutions(draw, strides=(1, 2), kernels=(1, 3, 5, 7), dilations=(1,)):
    """A layer, the shape of its input, and a batch; small enough to be walked MAC by MAC."""
    kernel, stride, dilation = (
        [draw(st.sampled_from(some)) for _ in range(2)] for some in (kernels, strides, dilations)
    )
    groups = draw(st.integers(1, 2))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    padding = [draw(st.integers(0, k // 2)) for k in (*reach, *reach)]
    sizes = [draw(st.integers(max(1, r - 2 * (r // 2)), 9)) for r in reach]
    sizes = [
        max(size, r - padding[axis] - padding[axis + 2])
        for axis, (size, r) in enumerate(zip(sizes, reach, strict=True))
    ]
    channels = draw(st.integers(1, 3)) * groups
    layer = Conv(
        name="layer", kind="conv", channels=draw(st.integers(1, 4)) * groups, kernel=kernel,
        stride=stride, padding=padding, dilation=dilation, groups=groups,
    )  # fmt: skip
    return layer, (channels, *sizes), draw(st.integers(1, 3))


def problem(layer, shape, batch, phase, widths=(32, 32, 32)):
    """The loop nest of one pass of a layer."""
    nest = layer.loops([shape], batch)[phase]
    return Problem(nest.extent, nest.height, nest.width, Widths(*widths), nest.groups)


@st.composite
def dividing_tiles(draw, extent, levels):
    """A chain of tiles, each of which divides the one above it in every loop."""
    chain = [extent]
    for _ in range(levels):
        divisors = ([d for d in range(1, n + 1) if n % d == 0] for n in chain[-1])
        chain.append(Extents(*(draw(st.sampled_from(some)) for some in divisors)))
    return tuple(chain[1:])
