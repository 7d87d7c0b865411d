"""One's own images, images changed at random, and what a run leaves to read."""

import csv
import io
import zipfile

import numpy as np
import pytest
import small

from hwmodel.errors import DataError, HwmodelError, ShapeError, SpecError
from hwmodel.importers.load import load_network
from hwmodel.specs.trace import dumps
from hwmodel.trainer.augment import augmented, border, ways_of
from hwmodel.trainer.checkpoint import checkpoint_path
from hwmodel.trainer.data import dataset_for, load_dataset
from hwmodel.trainer.export import curves
from hwmodel.trainer.train import Settings, train

SHAPES = {"x_train": (40, 6, 6), "y_train": (40,), "x_test": (20, 6, 6), "y_test": (20,)}


def arrays(**changed):
    rng = np.random.default_rng(1)
    made = {
        name: rng.integers(0, 256, shape).astype(np.uint8) if name[0] == "x" else np.arange(shape[0]) % 10
        for name, shape in SHAPES.items()
    }  # fmt: skip
    return {name: value for name, value in (made | changed).items() if value is not None}


def npz(path, **changed):
    np.savez(path, **arrays(**changed))
    return path


def table(path, x, y, place=0):
    """A table with the label in a column of its own choice."""
    columns = [f"p{i}" for i in range(x[0].size)]
    columns.insert(place, "label")
    rows = [[*row.ravel().tolist()] for row in x]
    for row, label in zip(rows, y, strict=True):
        row.insert(place, int(label))
    path.write_text("\n".join(",".join(map(str, row)) for row in [columns, *rows]) + "\n")


def test_arrays_are_read_and_standardised_by_the_training_images(tmp_path):
    made = arrays()
    data = load_dataset("mine", npz(tmp_path / "mine.npz"))
    assert data.x.shape == (40, 6, 6, 1) and data.test_x.shape == (20, 6, 6, 1)
    assert (data.name, data.classes) == ("mine", 10)
    train_x = made["x_train"].astype(float)
    wanted = (made["x_test"] - train_x.mean()) / train_x.std()
    assert np.allclose(data.test_x[..., 0], wanted, atol=1e-6)
    assert (data.y == made["y_train"]).all() and (data.test_y == made["y_test"]).all()
    reals = npz(tmp_path / "reals.npz", x_train=train_x, x_test=made["x_test"].astype(np.float32))
    assert np.allclose(load_dataset("mine", reals).x, data.x, atol=1e-6)


def test_colours_are_standardised_one_by_one(tmp_path):
    x = np.zeros((40, 6, 6, 3), np.uint8)
    x[..., 1], x[:20, ..., 2] = 7, 200
    data = load_dataset("mine", npz(tmp_path / "c.npz", x_train=x, x_test=x[:20]))
    assert data.x.shape == (40, 6, 6, 3)
    assert (data.x[..., :2] == 0).all() and np.abs(data.x[..., 2]).max() == 1


def test_tables_give_the_same_images_as_arrays(tmp_path):
    made = arrays()
    for part, place in (("train", 0), ("test", 36)):
        table(tmp_path / f"{part}.csv", made[f"x_{part}"], made[f"y_{part}"], place)
    data = load_dataset("mine", tmp_path)
    assert data.x.shape == (40, 1, 1, 36)
    run = train(
        small.settings(epochs=1),
        data._replace(x=np.tile(data.x, (2, 1, 1, 1))[:70], y=np.tile(data.y, 2)[:70]),
    )
    assert run.epochs[0].steps == 5
    both = load_dataset("mine", npz(tmp_path / "mine.npz"))
    assert np.allclose(data.x.reshape(40, 6, 6), both.x[..., 0], atol=1e-6)


def test_a_row_of_values_is_an_image_plane_by_plane(tmp_path):
    network = small.network(
        ("[1, 6, 6]", "[2, 3, 6]"),
        ("kind: max-pool, kernel: 2", "kind: activation"),
        ("  - {name: act3, kind: activation}\n", ""),
    )
    x = np.arange(40 * 36, dtype=float).reshape(40, 36)
    data = load_dataset("mine", npz(tmp_path / "mine.npz", x_train=x, x_test=x[:20]))
    from hwmodel.trainer.stack import stack
    from hwmodel.trainer.train import fitted

    found = fitted(data, network, stack(network, small.method("fp")))
    assert (found.x[3, 2, 1] == data.x[3, 0, 0, [13, 31]]).all()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"y_train": None, "x_test": None}, "has no y_train, x_test; it has x_train, y_test"),
        ({"y_train": np.arange(39) % 10}, "x_train has 40 images and y_train 39 labels"),
        ({"x_test": np.zeros((20, 5, 6)), "y_test": np.full(20, -1)}, "y_test has labels that are no whole numbers from 0; images of 6 x 6 to train on, of 5 x 6 to test on"),
        ({"x_train": np.full((40, 6, 6), np.nan)}, "x_train has values that are no finite numbers"),
        ({"y_train": np.full(40, 0.5)}, "y_train has labels that are no whole numbers from 0"),
        ({"y_train": np.zeros((40, 10))}, "y_train is 40 x 10; it must be labels, at least one"),
        ({"x_train": np.zeros(40)}, "x_train is 40; it must be images x values, x rows x columns, or with x channels, at least one"),
        ({"x_train": np.array([["a"] * 6] * 40)}, "x_train is of type <U1, and not of real numbers"),
        ({"y_test": np.arange(20) + 5}, "label 10 is in y_test alone"),
        ({"y_test": np.full(20, 5000)}, "y_test has a label 5000; there may be 1,000 classes"),
    ],
)  # fmt: skip
def test_arrays_that_are_no_data_set_are_one_line(tmp_path, changed, said):
    path = npz(tmp_path / "mine.npz", **changed)
    with pytest.raises(DataError) as error:
        load_dataset("mine", path)
    assert str(error.value) == f"{path}: {said}"


def test_files_that_hold_no_arrays_are_one_line(tmp_path):
    path = tmp_path / "mine.npz"
    for content in (b"", b"PK", b"no zip at all"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is no file of NumPy arrays, or a damaged one"):
            load_dataset("mine", path)
    np.savez(path, **arrays(x_train=np.array([{}, []], object)))
    with pytest.raises(DataError, match="x_train is no array of numbers, or a damaged one"):
        load_dataset("mine", path)
    packed = io.BytesIO()
    np.save(packed, np.zeros(2**28 + 1, np.uint8))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            file.writestr(f"{name}.npy", packed.getvalue())
    with pytest.raises(DataError, match=r"unpacks to 1,073,74\d,\d+ B, and at most 1,073,741,824"):
        load_dataset("mine", path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "test.csv:1: names no column 'label' beside others"),
        ("label,a\n1,2\n1\n", "test.csv:3: has 1 value for 2 columns"),
        ("label,a\n1,x\n", "test.csv:2: is not all numbers"),
        ("label,a\n1,1_0\n", "test.csv:2: is not all numbers"),
        ("label,b\n1,2\n", "test.csv:1: has no column 'a'; columns are those of train.csv"),
        ("label,a,b\n1,2,3\n", "test.csv:1: alone has column 'b'; columns are those of train.csv"),
        ("label,a,a\n1,2,3\n", "test.csv:1: names 2 columns 'a'; each needs a name of its own"),
        (None, "has no test.csv"),
        ("label,a\n", "x_test is 0 x 1; it must be images x values, x rows x columns, or with x channels, at least one; y_test is 0; it must be labels, at least one"),
    ],
)  # fmt: skip
def test_tables_that_are_none_are_one_line(tmp_path, text, said):
    (tmp_path / "train.csv").write_text("label,a\n0,1\n1,2\n")
    if text is not None:
        (tmp_path / "test.csv").write_text(text)
    with pytest.raises(DataError) as error:
        load_dataset("mine", tmp_path)
    assert str(error.value) == f"{tmp_path}: {said}"


def test_columns_are_found_by_their_names(tmp_path):
    """Of the training, b is -1 and 1 and c always 0; the test has c = 0, b = 3 and 5."""
    (tmp_path / "train.csv").write_text("b,label,c\n-1,0,0\n1,1,0\n")
    (tmp_path / "test.csv").write_text("c,b,label\n0,3,1\n0,5,0\n")
    data = load_dataset("mine", tmp_path)
    assert data.test_y.tolist() == [1, 0]
    assert (data.test_x[:, 0, 0, 0] / data.x[1, 0, 0, 0]).tolist() == pytest.approx([3, 5])
    assert (data.test_x[:, 0, 0, 1] == 0).all()


def test_tables_of_a_spreadsheet_are_read(tmp_path):
    """A mark at the beginning, quotes and other ends of lines change nothing."""
    plain = "label,a,b\n0,1,2\n1,3,4\n"
    for part in ("train", "test"):
        (tmp_path / f"{part}.csv").write_text(plain)
    data = load_dataset("mine", tmp_path)
    quoted = '"label", "a","b"\r\n"0","1","2"\r\n1,"3", "4"\r\n'
    (tmp_path / "train.csv").write_bytes(b"\xef\xbb\xbf" + plain.encode())
    (tmp_path / "test.csv").write_bytes(b"\xef\xbb\xbf" + quoted.encode())
    assert load_dataset("mine", tmp_path).digest == data.digest


@pytest.mark.parametrize("name", ["../x", "my set", "x" * 81, "-x"])
def test_a_name_that_is_none_is_one_line(tmp_path, name):
    with pytest.raises(DataError, match=r"--dataset .*: a name is of at most 80 letters"):
        load_dataset(name, npz(tmp_path / "mine.npz"))


def cifar(folder, images=8):
    """The six batches in the binary form: a byte of label, then red, green and blue planes."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (6, images, 3073)).astype(np.uint8)
    rows[:, :, 0] = np.arange(images) % 10
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    for name, batch in zip(names, rows, strict=True):
        (folder / name).write_bytes(batch.tobytes())
    return rows


def test_cifar_in_the_binary_form(tmp_path):
    rows = cifar(tmp_path)
    data = load_dataset("cifar10", tmp_path)
    assert data.x.shape == (40, 32, 32, 3) and data.test_x.shape == (8, 32, 32, 3)
    assert (data.y == rows[:5, :, 0].ravel()).all()
    green = rows[:5, :, 1025:2049].astype(float)
    wanted = (green[1, 2].reshape(32, 32) - green.mean()) / green.std()
    assert np.allclose(data.x[10, :, :, 1], wanted, atol=1e-6)
    path = tmp_path / "data_batch_2.bin"
    for content, said in (
        (b"x" * 3072, "3,072 B are no rows of 3073"),
        (b"x" * 3073, "120 is no label"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"is no CIFAR-10 batch: {said}"):
            load_dataset("cifar10", tmp_path)


def test_vgg_small_makes_a_step_on_cifar(tmp_path):
    cifar(tmp_path, 1)
    settings = Settings(load_network("vgg-small"), small.method(), epochs=1, batch=5)
    trace = train(settings, load_dataset("cifar10", tmp_path)._replace(classes=10))
    assert trace.epochs[0].steps == 1 and trace.run.dataset == "cifar10"
    assert trace.layers[0].name == "conv1" and len(trace.layers) == 9


def test_a_name_is_that_of_the_file(tmp_path):
    network = small.network()
    assert dataset_for(network, tmp_path / "my set (1).npz") == "my-set--1-"
    with pytest.raises(
        ShapeError, match=r"network block takes images of 1 x 6 x 6 .* has 1 x 5 x 5"
    ):
        x = np.zeros((40, 5, 5))
        data = load_dataset("mine", npz(tmp_path / "m.npz", x_train=x, x_test=x[:20]))
        train(Settings(network, small.method(), epochs=1), data)


# Images changed at random


def test_a_flip_turns_about_half_of_the_images_and_a_crop_moves_them():
    x = np.arange(200 * 16 * 24 * 2, dtype=np.float32).reshape(200, 16, 24, 2) + 1
    turned = augmented(x, ["flip"], np.random.default_rng(0))
    same = (turned == x).all((1, 2, 3))
    assert (turned[~same] == x[~same][:, :, ::-1]).all() and 70 < same.sum() < 130
    moved = augmented(x, ["crop"], np.random.default_rng(0))
    assert (border(16), border(24), border(8), border(32), border(4)) == (2, 3, 1, 4, 1)
    seen = set()
    for before, after in zip(x, moved, strict=True):
        wide = np.zeros((20, 30, 2), np.float32)
        wide[2:18, 3:27] = before
        found = [
            (i, j)
            for i in range(5)
            for j in range(7)
            if (wide[i : i + 16, j : j + 24] == after).all()
        ]
        assert len(found) == 1
        seen |= set(found)
    assert len(seen) == 35  # every place is drawn
    assert augmented(x, [], np.random.default_rng(0)) is x or (augmented(x, [], None) == x).all()


def test_changed_images_are_the_same_in_equal_and_in_resumed_runs(tmp_path):
    settings = small.settings(augment=ways_of("flip,crop"))
    whole = train(settings, small.images())
    path = tmp_path / "t.json"
    train(settings, small.images(), path, stop=lambda: True)
    assert dumps(train(settings, small.images(), path, resume=True)) == dumps(whole)
    assert dumps(train(small.settings(), small.images())) != dumps(whole)
    assert whole.run.augment == ("crop", "flip")
    with pytest.raises(HwmodelError, match="--augment 'turn': must be one of crop, flip"):
        ways_of("flip,turn")


@pytest.mark.parametrize("way", ["flip", "crop"])
def test_images_of_a_network_of_rows_are_changed_as_images(tmp_path, monkeypatch, way):
    """A network that takes 36 x 1 x 1 sees 6 x 6 images, changed, one after the other."""
    seen = []
    monkeypatch.setattr(
        "hwmodel.trainer.train.augmented", lambda x, *_: seen.append(x) or augmented(x, *_)
    )
    text = (
        "{version: 1, name: rows, title: t, input: [36, 1, 1], layers: "
        "[{name: fc1, kind: linear, features: 10, bias: true}]}"
    )
    (tmp_path / "rows.yaml").write_text(text)
    network, images = load_network(tmp_path / "rows.yaml"), small.images()
    settings = Settings(network, small.method("fp"), small.training(1), augment=ways_of(way))
    train(settings, images)
    assert {x.shape[1:] for x in seen} == {(6, 6, 1)} and sum(map(len, seen)) == 70
    rows = images._replace(
        x=images.x.reshape(70, 1, 1, 36), test_x=images.test_x.reshape(20, 1, 1, 36)
    )
    with pytest.raises(DataError, match=f"--augment {way}: images of made are rows of 36 values"):
        train(settings, rows)


def test_a_control_needs_weights_that_flip():
    with pytest.raises(SpecError, match="network block has no Boolean weights under fp"):
        train(small.settings("fp", freeze=True), small.images())


# What a run leaves


@pytest.mark.parametrize("name", ["bold", "binarynet", "fp"])
def test_weights_are_written_as_the_checkpoint_has_them(tmp_path, name):
    path, weights = tmp_path / "t.json", tmp_path / "w.npz"
    train(small.settings(name, epochs=1), small.images(), path, weights=weights)
    with (
        np.load(weights) as found,
        np.load(io.BytesIO(checkpoint_path(path).read_bytes()[:-32])) as kept,
    ):
        assert found["conv1/weight"].shape == (5, 9) and found["conv1/bias"].shape == (5,)
        assert (found["conv1/weight"] == kept["conv1/real0/value"]).all()
        if name == "fp":
            assert (found["conv2/weight"] == kept["conv2/real0/value"]).all()
            assert (found["bn1/mean"] == kept["bn1/mean"]).all()
            return
        assert found["conv2/inputs"] == 45 and found["conv2/weight"].shape == (7, 6)
        signs = np.unpackbits(found["conv2/weight"], axis=1, count=45, bitorder="little")
        if name == "binarynet":
            assert (signs == (kept["conv2/real0/value"] >= 0)).all()
        else:  # there every tap of 5 channels begins at a byte
            bits = np.unpackbits(
                kept["conv2/boolean0/bits"].view(np.uint8), axis=1, bitorder="little"
            )
            assert (signs.reshape(7, 9, 5) == bits[:, :72].reshape(7, 9, 8)[..., :5]).all()


def test_curves_are_the_epochs_of_the_trace():
    trace = train(small.settings(epochs=2), small.images())
    rows = list(csv.DictReader(io.StringIO(curves(trace))))
    assert [float(row["accuracy"]) for row in rows] == [e.accuracy for e in trace.epochs]
    assert [int(row["steps"]) for row in rows] == [5, 10]
    assert float(rows[1]["flip_rate_conv2"]) == trace.epochs[1].layers[1].flip_rate
    assert rows[0]["validation_accuracy"] == "" and "flip_rate_conv1" not in rows[0]


def test_own_images_are_trained_and_written_by_the_command(hwmodel, tmp_path):
    npz(tmp_path / "mine.npz")
    (tmp_path / "net.yaml").write_text(small.BLOCK)
    words = ("train", "--network", "net.yaml", "--data", "mine.npz", "--trace", "t.json")
    code, out, err = hwmodel(*words)
    assert (code, out) == (2, "")
    assert (
        err
        == "hwmodel: no bundled training is of 40 images, as mine has; write one and name it with --training, or give --epochs\n"
    )
    more = ("--epochs", "2", "--augment", "flip", "--weights", "w.npz", "--curves", "c.csv")
    code, out, err = hwmodel(*words, *more)
    assert code == 0, err
    assert out.startswith("block on mine, bold, seed 0: ")
    assert len((tmp_path / "c.csv").read_text().splitlines()) == 3
    with np.load(tmp_path / "w.npz") as found:
        assert "fc5/bias" in found


def test_outputs_are_called_as_what_they_are_and_are_of_one_run(hwmodel, tmp_path):
    for words, said in (
        (("--weights", "trace.json"), "--weights trace.json: end its name in .npz"),
        (("--curves", "c.npz"), "--curves c.npz: end its name in .csv"),
        (("--curves", "c.csv", "--seeds", "2"), "c.csv: is of one run, and a study has several"),
        (("--augment", "turn"), "--augment 'turn': must be one of crop, flip"),
    ):
        code, out, err = hwmodel("train", *words)
        assert (code, out, err) == (2, "", f"hwmodel: {said}\n")
    assert not [*tmp_path.iterdir()]
