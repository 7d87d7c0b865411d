"""The batch, which is in every tensor of a source's graph and in none of a network here."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodel.errors import ShapeError
from hwmodel.importers.graph import Dims, plain, tokens
from hwmodel.layers import Shape

__all__ = ["input_shape", "of_one_image"]


def of_one_image(dims: Sequence[int], images: int, what: str) -> Dims:
    """Dimensions with `images` taken out of the first one, or of one that is as long.

    Raises: ShapeError where neither can be; `what` begins the message.
    """
    if images == 1 or not dims:
        return tuple(dims)
    if dims[0] % images == 0:
        return dims[0] // images, *dims[1:]
    if images in dims:
        at = list(dims).index(images)
        return (*dims[:at], 1, *dims[at + 1 :])
    raise ShapeError(
        f"{what} is {list(dims)}, which is not made of {images} images alike; use a batch of one"
    )


def input_shape(dims: Dims, *, numbers: bool, channels_first: bool) -> Shape:
    """(C, H, W) of an input: images and signals (C, ...), sequences (tokens, D), token numbers.

    Args:
        numbers: whether its elements are whole numbers, which are looked up in a table.
        channels_first: whether what reads it takes axis 1 for channels.
    """
    if numbers and len(dims) == 2:
        return 1, dims[1], 1
    return tokens(dims) if len(dims) == 3 and not channels_first else plain(dims)
