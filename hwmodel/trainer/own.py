"""Images and labels of one's own: a file of NumPy arrays, or a folder of comma-separated values.

`FILE.npz` has `x_train`, `y_train`, `x_test`, `y_test`; a folder has `train.csv` and `test.csv`,
whose first line names the columns, one of them `label`; columns of the test are found by their
names in that of the training. Nothing in either is run.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import DataError, many

__all__ = ["TABLES", "Parts", "is_own", "read_own"]

Array = NDArray[Any]
Parts = tuple[Array, Array, Array, Array]  # images and labels to train on, then to test on

NAMES = ("x_train", "y_train", "x_test", "y_test")
TABLES = ("train.csv", "test.csv")
LABEL = "label"
MAX_UNPACKED = 2**30  # bytes of all arrays; those of CIFAR-10 in float32 take 0.7 of it
MAX_CLASSES = 1000


def is_own(place: Path | None) -> bool:
    """Whether a path is of such a file or folder."""
    if place is None:
        return False
    return place.suffix.lower() == ".npz" or any((place / name).is_file() for name in TABLES)


def read_own(place: Path, raw: dict[str, bytes]) -> Parts:
    """Images [images, rows, columns, channels] and labels of both parts.

    Args:
        place: the file or the folder, for messages.
        raw: contents by name: of the file under "", of tables under theirs.

    Raises: DataError with everything that is wrong, in one line.
    """
    faults: list[str] = []
    arrays = _npz(raw[""], faults) if "" in raw else _tables(raw, faults)
    if not faults:
        faults += _mistakes(arrays)
    if faults:
        raise DataError(f"{place}: {'; '.join(faults)}")
    x, y, test_x, test_y = (arrays[name] for name in NAMES)
    return _images(x), y.astype(np.int64), _images(test_x), test_y.astype(np.int64)


def _images(x: Array) -> Array:
    """Arrays of two to four axes as images; a row of values is one pixel with so many channels."""
    if x.ndim == 2:
        return x[:, None, None, :]
    return x[..., None] if x.ndim == 3 else x


def _npz(raw: bytes, faults: list[str]) -> dict[str, Array]:
    """The arrays of an npz file that a data set has."""
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as file:
            size = sum(member.file_size for member in file.zip.infolist())
            if size > MAX_UNPACKED:
                faults.append(f"unpacks to {size:,} B, and at most {MAX_UNPACKED:,} are read")
                return {}
            missing = [name for name in NAMES if name not in file.files]
            if missing:
                faults.append(f"has no {', '.join(missing)}; it has {_listed(file.files)}")
            return {name: _read(file, name, faults) for name in NAMES if name in file.files}
    except (ValueError, LookupError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
        faults.append("is no file of NumPy arrays, or a damaged one")
        return {}


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name)[1:41].rstrip("'") for name in names[:6])
    return (shown or "nothing") + (" …" if len(names) > 6 else "")


def _read(file: Any, name: str, faults: list[str]) -> Array:
    try:
        return np.asarray(file[name])
    except (ValueError, EOFError, MemoryError, OSError, zipfile.BadZipFile, zipfile.error):
        faults.append(f"{name} is no array of numbers, or a damaged one")
        return np.zeros(0)


def _tables(raw: dict[str, bytes], faults: list[str]) -> dict[str, Array]:
    """The two tables as arrays."""
    arrays: dict[str, Array] = {}
    order: list[str] = []  # of the columns, as in the first table
    for table, (x, y) in zip(TABLES, (NAMES[:2], NAMES[2:]), strict=True):
        if table not in raw:
            faults.append(f"has no {table}")
        elif (values := _table(table, raw[table], order, faults)) is not None:
            arrays[x], arrays[y] = values
    return arrays


def _table(
    name: str, raw: bytes, order: list[str], faults: list[str]
) -> tuple[Array, Array] | None:
    """Values, columns in `order`, and labels of a table; an empty order becomes that of the table.

    A mark at the beginning and quotes, as spreadsheets write them, are no part of names or numbers.
    """
    lines = csv.reader(io.StringIO(raw.decode("utf-8-sig", "replace"), ""), skipinitialspace=True)
    number, rows = 1, []
    try:
        columns = [word.strip() for word in next(lines, [])]
        if wrong := _misnamed(columns, order):
            faults.append(f"{name}:1: {wrong}")
            return None
        for line in lines:
            number = lines.line_num
            if not any(map(str.strip, line)):
                continue
            if any("_" in word for word in line):  # which Python takes for a number's
                raise ValueError
            rows.append([float(word) for word in line])
            if len(line) != len(columns):
                said = f"has {many(len(line), 'value')} for {len(columns)} columns"
                faults.append(f"{name}:{number}: {said}")
                return None
    except (ValueError, csv.Error):
        faults.append(f"{name}:{number}: is not all numbers")
        return None
    table = np.array(rows, np.float64).reshape(-1, len(columns))
    order += [] if order else [column for column in columns if column != LABEL]
    return table[:, [columns.index(column) for column in order]], table[:, columns.index(LABEL)]


def _misnamed(columns: list[str], order: list[str]) -> str:
    """What is wrong with a table's columns beside those of the first table; "" if nothing."""
    if columns.count(LABEL) != 1 or len(columns) < 2:
        return f"names no column {LABEL!r} beside others"
    if (twice := Counter(columns).most_common(1)[0])[1] > 1:
        return f"names {twice[1]} columns {twice[0][:40]!r}; each needs a name of its own"
    if order and (other := sorted({*columns} ^ {LABEL, *order})):
        whose = "alone has" if other[0] in columns else "has no"
        return f"{whose} column {other[0][:40]!r}; columns are those of {TABLES[0]}"
    return ""


def _mistakes(arrays: dict[str, Array]) -> list[str]:
    """Everything that is wrong with arrays that are all there."""
    found = [fault for name in NAMES for fault in _wrong(name, arrays[name])]
    for x, y in (NAMES[:2], NAMES[2:]):
        if arrays[x].ndim and arrays[y].ndim and len(arrays[x]) != len(arrays[y]):
            labels = many(len(arrays[y]), "label")
            found.append(f"{x} has {many(len(arrays[x]), 'image')} and {y} {labels}")
    images = not any(fault.startswith("x_") for fault in found)
    if images and arrays["x_train"].shape[1:] != arrays["x_test"].shape[1:]:
        shapes = [" x ".join(map(str, arrays[x].shape[1:])) for x in ("x_train", "x_test")]
        found.append(f"images of {shapes[0]} to train on, of {shapes[1]} to test on")
    if not found:
        train, test = (set(np.unique(arrays[name]).tolist()) for name in ("y_train", "y_test"))
        if unseen := sorted(test - train):
            found.append(f"label {unseen[0]:g} is in y_test alone")
    return found


def _wrong(name: str, array: Array) -> list[str]:
    """What is wrong with one array by itself."""
    if array.dtype.kind not in "uif" + "b" * (name[0] == "x"):
        return [f"{name} is of type {array.dtype}, and not of real numbers"]
    axes = (2, 3, 4) if name[0] == "x" else (1,)
    if array.ndim not in axes or not array.size:
        shape = " x ".join(map(str, array.shape)) or "one number"
        wanted = "images x values, x rows x columns, or with x channels" if axes[1:] else "labels"
        return [f"{name} is {shape}; it must be {wanted}, at least one"]
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return [f"{name} has values that are no finite numbers"]
    if name[0] == "y" and ((array != np.floor(array)).any() or array.min() < 0):
        return [f"{name} has labels that are no whole numbers from 0"]
    if name[0] == "y" and array.max() >= MAX_CLASSES:
        return [f"{name} has a label {array.max():g}; there may be {MAX_CLASSES:,} classes"]
    return []
