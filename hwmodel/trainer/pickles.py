"""CIFAR's python batches, unpickled without giving the file any power.

A pickle may name any function and have it called. Here the five names that arrays of bytes need
lead to stand-ins that only remember what they are given; every other name is refused.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import DataError

__all__ = ["Batch", "read_batch", "read_binary"]

PIXELS = 3 * 32 * 32


class Batch(NamedTuple):
    """Rows of 3,072 bytes, red, green and blue planes one after another, and their labels."""

    rows: NDArray[np.uint8]
    labels: NDArray[np.int64]


class _Type:
    """Stands in for numpy's dtype: its code, such as 'u1'."""

    def __init__(self, code: object = "", *_: object) -> None:
        self.code = code

    def __setstate__(self, _: object) -> None:
        """Byte order and the like, which single bytes do not have."""


class _Array:
    """Stands in for numpy's array: shape, type and bytes as the file gives them."""

    state: object = None

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        self.state = state


def _latin(text: object, *_: object) -> bytes:
    """Stands in for codecs.encode, by which Python 3 writes bytes into old pickles."""
    if not isinstance(text, str):
        raise pickle.UnpicklingError("bytes that are no text")
    return text.encode("latin-1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _Type,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("_codecs", "encode"): _latin,
}


# What pickle's own code and the checks below raise on a damaged or hostile file.
_DAMAGE: tuple[type[Exception], ...] = (
    *(pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(ImportError, MemoryError, OverflowError, RecursionError),
)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch needs")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: object) -> Any:
        raise pickle.UnpicklingError("it refers to something outside the file")


def read_batch(raw: bytes, path: Path) -> Batch:
    """The images and labels of one batch.

    Raises: DataError where the bytes are no batch, or ask for anything that a batch does not need.
    """
    try:
        values = _Unpickler(io.BytesIO(raw), encoding="bytes").load()
        rows = _bytes(values[b"data"] if b"data" in values else values["data"])
        labels = values[b"labels"] if b"labels" in values else values["labels"]
        numbers = np.array([_label(label) for label in labels], np.int64)
    except _DAMAGE as error:
        raise DataError(f"{path}: is no CIFAR-10 batch: {_reason(error)}") from None
    if len(rows) != len(numbers) or not len(rows):
        raise DataError(f"{path}: has {len(rows)} images and {len(numbers)} labels")
    return Batch(rows, numbers)


def read_binary(raw: bytes, path: Path) -> Batch:
    """The images and labels of one batch of the binary form: a byte of label before each row.

    Raises: DataError where the bytes are none.
    """
    if not raw or len(raw) % (PIXELS + 1):
        raise DataError(f"{path}: is no CIFAR-10 batch: {len(raw):,} B are no rows of {PIXELS + 1}")
    rows = np.frombuffer(raw, np.uint8).reshape(-1, PIXELS + 1)
    if rows[:, 0].max() > 9:
        raise DataError(f"{path}: is no CIFAR-10 batch: {rows[:, 0].max()} is no label from 0 to 9")
    return Batch(rows[:, 1:], rows[:, 0].astype(np.int64))


def _bytes(array: object) -> NDArray[np.uint8]:
    if not isinstance(array, _Array) or not isinstance(array.state, tuple):
        raise ValueError("'data' is no array")
    _, shape, kind, by_columns, raw = array.state
    if kind.code not in ("u1", b"u1") or by_columns or not isinstance(raw, bytes):
        raise ValueError("'data' is no array of bytes, row by row")
    rows, pixels = shape
    if pixels != PIXELS or rows * pixels != len(raw):
        raise ValueError(f"'data' is {rows} x {pixels} of {len(raw)} B, not images x {PIXELS}")
    return np.frombuffer(raw, np.uint8).reshape(rows, pixels)


def _label(value: object) -> int:
    if type(value) is not int or not 0 <= value <= 9:
        raise ValueError(f"{str(value)[:40]!r} is no label from 0 to 9")
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
