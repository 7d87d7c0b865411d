# tables hold whole messages, one a line
import json

import numpy as np
import pytest
import small

from hwmodel.errors import DataError, HwmodelError
from hwmodel.specs.trace import Trace, dumps, read_trace, steps_to, two_complement_bits, write_trace
from hwmodel.trainer.measure import Tally
from hwmodel.trainer.train import train


@pytest.fixture(scope="module")
def trace():
    return train(small.settings(), small.images())


def test_what_is_written_is_read_back(trace, tmp_path):
    path = tmp_path / "deep" / "t.json"
    write_trace(trace, path)
    assert read_trace(path) == trace
    assert json.loads(path.read_text()) == trace.model_dump(mode="json")


def test_a_trace_without_epochs_is_a_trace(trace, tmp_path):
    path = tmp_path / "t.json"
    write_trace(trace.model_copy(update={"epochs": ()}), path)
    assert read_trace(path).epochs == ()


def test_it_holds_no_date_and_no_place(trace):
    words = dumps(trace).lower()
    assert not any(word in words for word in ("date", "time", "host", "/home", "/tmp", "path"))


def changed(trace, change):
    values = json.loads(dumps(trace))
    change(values)
    return json.dumps(values)


def drop(key):
    return lambda values: values["run"].pop(key)


def put(*way, to):
    def change(values):
        for step in way[:-1]:
            values = values[step]
        values[way[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("version", to=3), "is a trace of version 3; this hwmodel reads 2"),
        (put("version", to="1"), "version '1': must be a whole number"),
        (put("run", "sede", to=1), "run.sede is not a field; did you mean 'seed'?"),
        (drop("seed"), "run.seed is missing"),
        (put("epochs", 0, "accuracy", to=1.2), "epochs.1.accuracy 1.2: must be at most 1.0"),
        (put("epochs", 0, "layers", 1, "signal", "bits", to=True), "epochs.1.layers.conv2.signal.bits True: must be a whole number"),
        (put("epochs", 1, "steps", to=3), "epoch 2 does not follow epoch 1"),
        (put("epochs", 1, "epoch", to=5), "epoch 5 does not follow epoch 1"),
        (put("layers", 1, "name", to="other"), "epoch 1 has other layers than the trace"),
        (put("layers", 1, "name", to="conv1"), "two layers have one name"),
    ],
)  # fmt: skip
def test_a_trace_that_is_none_is_one_sentence(trace, tmp_path, change, message):
    path = tmp_path / "t.json"
    path.write_text(changed(trace, change))
    with pytest.raises(DataError) as error:
        read_trace(path)
    text = str(error.value)
    assert text.startswith(str(path)) and message in text and "\n" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: is not a trace: Expecting value"),
        ('{"version": 1,\n oops}', ":2: is not a trace"),
        ("[]", "holds a list of 0"),
        ("null", "holds None"),
        ('{"version": NaN}', "NaN is no number a trace holds"),
        ("[" * 100_000, "is not a trace"),
        ('{"name": "resnet"}', "is it a trace?"),
        ('{"version": 1' + "0" * 5000 + "}", "is"),
    ],
)
def test_other_text_is_no_trace(tmp_path, text, message):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_trace(path)
    assert message in str(error.value) and len(str(error.value)) < 400


def test_files_that_cannot_be_read_or_written(trace, tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_trace(tmp_path / "none.json")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read_trace(tmp_path / "bytes")
    with pytest.raises(HwmodelError, match="cannot be written"):
        write_trace(trace, tmp_path / "bytes" / "t.json")


LAYER = ("epochs", 0, "layers", 1)


@pytest.mark.parametrize(
    ("way", "to", "message"),
    [
        ((*LAYER, "signal", "rms"), 1e200, "signal.rms 1e+200: must be at most 3.5e+38"),
        ((*LAYER, "signal", "mean"), -1e308, "signal.mean -1e+308: must be at least -3.5e+38"),
        ((*LAYER, "preactivation", "lowest"), -1e39, "lowest -1e+39: must be at least -3.5e+38"),
        (("epochs", 0, "steps"), 10**400, "must be at most 9007199254740992"),
        (("epochs", 0, "steps"), 2**53 + 1, "must be at most 9007199254740992"),
        (("run", "batch"), 10**400, "must be at most 9007199254740992"),
        ((*LAYER, "sum_bits"), 64, "sum_bits: 64 is more than sums from "),
        ((*LAYER, "preactivation", "lowest"), 1e6, "lowest: 1e+06 is above highest"),
        ((*LAYER, "vote", "rms"), 1e9, "rms: 1e+09 is above largest"),
        ((*LAYER, "signal", "holds_bits"), 1, "signal.holds_bits: 1 is below bits "),
        (("run", "epochs"), 1, "run.epochs: 1 is fewer than the 3 listed"),
    ],
)  # fmt: skip
def test_numbers_edited_by_hand_are_one_line(trace, tmp_path, way, to, message):
    assert len(trace.epochs) == 3
    path = tmp_path / "t.json"
    path.write_text(changed(trace, put(*way, to=to)))
    with pytest.raises(DataError) as caught:
        read_trace(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_widths_that_hold_more_than_the_error_asks_are_read(trace):
    """Stated at 0.1 %, a width is above that of 1 %."""
    values = json.loads(dumps(trace))
    values["run"]["signal_error"] = 0.001
    values["epochs"][0]["layers"][1]["signal"]["holds_bits"] = 1
    assert Trace.model_validate(values)


def test_steps_to_an_accuracy(trace):
    shares = [0.5, 0.8, 0.7]
    epochs = [
        e.model_copy(update={"validation_accuracy": a})
        for e, a in zip(trace.epochs, shares, strict=True)
    ]
    given = trace.model_copy(update={"epochs": tuple(epochs)})
    assert steps_to(given, 0.5) == 5 and steps_to(given, 0.6) == 10
    assert steps_to(given, 0.9) is None


@pytest.mark.parametrize("bits", range(2, 20))
def test_two_complement_widths_at_their_limits(bits):
    size = 2 ** (bits - 1)
    assert two_complement_bits(-size, size - 1) == bits
    assert two_complement_bits(-size - 1, 0) == bits + 1
    assert two_complement_bits(0, size) == bits + 1
    assert two_complement_bits(0, size - 1) == bits


def test_the_schema_describes_itself():
    assert "flip_rate" in json.dumps(Trace.model_json_schema())


def test_zeros_that_a_layer_reads_are_counted():
    """Three of eight, and signs, which are kept as Booleans, not at all."""
    tally = Tally("fc", 0.3, integer=False, weights=0)
    tally.reads(np.array([[0, 1.5, -2, 0]], np.float32))
    tally.reads(np.array([[0, 1, 2, 3]], np.float32))
    tally.step(np.ones((1, 2), np.float32), 0, signal=np.ones((1, 2), np.float32))
    assert tally.result().input_zeros == 3 / 8
    signs = Tally("fc", 0.3, integer=True, weights=0)
    signs.reads(np.array([[True, False]]))
    signs.step(np.ones((1, 2), np.float32), 0, signal=np.ones((1, 2), np.float32))
    assert signs.result().input_zeros is None
