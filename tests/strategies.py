"""Layers, loop nests and tiles for property tests."""

from hypothesis import strategies as st

from hwmodel.layers import Conv
from hwmodel.problem import Extents, Problem, Widths


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
