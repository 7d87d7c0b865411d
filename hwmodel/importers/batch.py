"""Takes the batch out of a source's tensors: a network here is of one image."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodel.errors import ShapeError
from hwmodel.graph.layers import Shape
from hwmodel.importers.graph import Dims, plain, tokens

__all__ = ["input_shape", "of_one_image"]


def of_one_image(dims: Sequence[int], images: int, what: str, *, anyway: bool = False) -> Dims:
    """Take `images` out of one dimension: the first, one as long, or one that they divide.

    Args:
        what: begins the message.
        anyway: whether a tensor of which no dimension is made of images may be there.

    Raises: ShapeError where there is none.
    """
    if images == 1 or not dims:
        return tuple(dims)
    if dims[0] % images == 0:
        return dims[0] // images, *dims[1:]
    at = next((i for i, length in enumerate(dims) if length == images), None)
    if at is None:  # heads and images in one, after the tokens
        at = next((i for i, length in enumerate(dims) if length % images == 0), None)
    if at is None and anyway:
        return tuple(dims)
    if at is not None:
        return (*dims[:at], dims[at] // images, *dims[at + 1 :])
    raise ShapeError(
        f"{what} is {list(dims)}, which is not made of {images} images alike; use a batch of one"
    )


def input_shape(dims: Dims, *, numbers: bool, channels_first: bool) -> Shape:
    """Return (C, H, W) of an input: images, signals (C, ...), sequences (tokens, D), token numbers.

    Args:
        numbers: whether its elements are whole numbers, which are looked up in a table.
        channels_first: whether its first reader takes axis 1 for channels.
    """
    if numbers and len(dims) == 2:
        return 1, dims[0] * dims[1], 1
    return tokens(dims) if len(dims) == 3 and not channels_first else plain(dims)
