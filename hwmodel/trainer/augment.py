"""Images changed at random from step to step: flipped, and moved about behind their frame.

Draws are given by the seed, the epoch and the order of steps, so that equal runs see equal images.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hwmodel.errors import DataError
from hwmodel.specs.arguments import word
from hwmodel.specs.trace import Way
from hwmodel.trainer.weights import Reals

__all__ = ["WAYS", "Way", "augmented", "border", "see_images", "ways_of"]

WAYS = ("crop", "flip")

SHARE = 8  # a border of one in so many rows: 4 of 32, as is usual for CIFAR-10


def ways_of(text: str) -> tuple[Way, ...]:
    """The ways that a text names, in order, separated by commas. Raises: HwmodelError."""
    named = {name.strip() for name in text.split(",")} if text else set()
    for name in sorted(named):
        word("--augment", name, WAYS)
    found: tuple[Way, ...] = tuple(way for way in WAYS if way in named)  # type: ignore[misc]
    return found


def see_images(name: str, form: Sequence[int], ways: Sequence[str]) -> None:
    """See that images of a form [rows, columns, channels] can be changed. Raises: DataError."""
    if ways and tuple(form[:2]) == (1, 1):
        raise DataError(
            f"--augment {','.join(ways)}: images of {name} are rows of {form[2]:,} values, and "
            "which of them are neighbours is not known"
        )


def border(rows: int) -> int:
    """Rows and columns by which a crop moves an image at most."""
    return max(1, rows // SHARE)


def augmented(x: Reals, ways: Sequence[str], rng: np.random.Generator) -> Reals:
    """Images [images, rows, columns, channels], changed by all of the ways in turn.

        flip: left and right change places in half of the images
        crop: a frame of the image's size in the image with a border of 0, the mean, around it

    Source: He et al., Deep Residual Learning (arXiv:1512.03385), section 4.2.
    """
    if "flip" in ways:
        turned = rng.random(len(x)) < 0.5
        x = np.where(turned[:, None, None, None], x[:, :, ::-1], x)
    if "crop" in ways:
        n, rows, columns, _ = x.shape
        pads = (border(rows), border(columns))
        wide = np.pad(x, ((0, 0), *((p, p) for p in pads), (0, 0)))
        frames = sliding_window_view(wide, (rows, columns), (1, 2))
        down, right = (rng.integers(0, 2 * p + 1, n) for p in pads)
        x = frames[np.arange(n), down, right].transpose(0, 2, 3, 1)
    return np.ascontiguousarray(x)
