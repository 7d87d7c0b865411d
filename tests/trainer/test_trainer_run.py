"""Whole runs: what they reach, that they repeat, and what is left when they are killed."""

import importlib.util
import io
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small

from hwmodel.errors import DataError, HwmodelError, ShapeError, SpecError
from hwmodel.importers.load import load_network
from hwmodel.specs.trace import dumps, read_trace
from hwmodel.trainer.checkpoint import checkpoint_path
from hwmodel.trainer.data import load_dataset
from hwmodel.trainer.measure import Sizes, held_bits, magnitudes
from hwmodel.trainer.train import Settings, train

ROOT = Path(__file__).parents[2]
needs_digits = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="the extra [data] is not installed"
)


@needs_digits
def test_boolean_layers_learn_what_frozen_ones_do_not():
    """The smallest network with its control: a dead optimizer scores like the control."""
    data, network = load_dataset("digits"), load_network("deep-mlp")
    trained, frozen = (
        train(Settings(network, small.method(), seed=1, epochs=20, freeze=freeze), data)
        for freeze in (False, True)
    )
    assert trained.epochs[-1].accuracy >= 0.93
    assert trained.epochs[-1].accuracy >= frozen.epochs[-1].accuracy + 0.08
    flips = [layer.flip_rate for layer in frozen.epochs[0].layers]
    assert flips == [None, 0, 0, 0, 0, None]
    assert all(layer.flip_rate > 0 for layer in trained.epochs[0].layers[1:-1])


@needs_digits
@pytest.mark.parametrize("name", ["bold", "bold-bn", "fp", "binaryconnect", "binarynet"])
def test_every_method_learns_a_network_with_a_shortcut(name):
    settings = Settings(small.network(*small.WIDE), small.method(name), epochs=4, batch=32)
    trace = train(settings, load_dataset("digits"))
    assert trace.epochs[-1].loss < 0.6 * trace.epochs[0].loss
    assert trace.epochs[-1].accuracy > 0.6


@pytest.mark.parametrize("name", ["bold", "bold-bn", "binarynet"])
def test_the_same_seed_gives_the_same_trace_bit_for_bit(name):
    runs = [dumps(train(small.settings(name, seed=s), small.images())) for s in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", ["bold", "bold-bn", "fp"])
def test_a_run_that_was_stopped_and_resumed_gives_the_same_trace(tmp_path, name):
    path = tmp_path / "t.json"
    whole = train(small.settings(name), small.images())
    stopped = train(small.settings(name), small.images(), path, stop=lambda: True)
    assert len(stopped.epochs) == 1 and read_trace(path) == stopped
    resumed = train(small.settings(name), small.images(), path, resume=True)
    assert dumps(resumed) == dumps(whole) == path.read_text()
    assert train(small.settings(name), small.images(), path, resume=True) == whole


def test_a_trace_lost_before_the_kill_comes_back_from_the_checkpoint(tmp_path):
    path = tmp_path / "t.json"
    train(small.settings(), small.images(), path)
    text = path.read_text()
    path.unlink()
    train(small.settings(), small.images(), path, resume=True)
    assert path.read_text() == text


def test_another_run_is_not_resumed(tmp_path):
    path = tmp_path / "t.json"
    with pytest.raises(DataError, match="is not there, so there is no run to resume"):
        train(small.settings(), small.images(), path, resume=True)
    train(small.settings(), small.images(), path, stop=lambda: True)
    with pytest.raises(DataError, match="belongs to a run with seed 0, this one has 5"):
        train(small.settings(seed=5), small.images(), path, resume=True)
    other = small.images()._replace(digest="1" * 64)
    with pytest.raises(DataError, match="belongs to a run with data_digest 0000"):
        train(small.settings(), other, path, resume=True)
    recipe = replace(small.settings(), training=small.training(outside="true"))
    with pytest.raises(DataError, match="belongs to a run with training_digest"):
        train(recipe, small.images(), path, resume=True)


@needs_digits
def test_the_usual_training_fits_the_images_and_then_the_network():
    data = load_dataset("digits")
    for name, usual in (("deep-mlp", "digits-30"), ("conv-small", "digits-25")):
        settings = Settings(load_network(name), small.method(), epochs=1, batch=1437)
        assert train(settings, data).run.training == usual
    with pytest.raises(SpecError, match="no bundled training is of 70 images, as made has; write"):
        train(Settings(small.network(), small.method()), small.images())


def test_the_rate_is_that_of_what_is_trained():
    """Flips without batch norm, flips with it, Adam; the option stands for each of them."""
    training = small.training(1, boolean_rate=2, boolean_rate_with_batch_norm=3, adam_rate=0.5)
    runs = {
        name: train(Settings(small.network(), small.method(name), training), small.images()).run
        for name in ("bold", "bold-bn", "binarynet")
    }
    rates = {name: (run.learning_rate, run.adam_rate) for name, run in runs.items()}
    assert rates == {"bold": (2, 0.5), "bold-bn": (3, 0.5), "binarynet": (0.5, 0.5)}
    said = {name: (run.reweighting, run.scaling) for name, run in runs.items()}
    assert said == {"bold": (True, True), "bold-bn": (True, False), "binarynet": (False, False)}
    other = small.settings("binarynet", learning_rate=0.25, epochs=1)
    run = train(other, small.images()).run
    assert (run.learning_rate, run.adam_rate) == (0.25, 0.25)


def test_images_are_rows_to_a_network_of_rows():
    flat = small.network(("[1, 6, 6]", "[36, 1, 1]"))
    layers = tuple(layer for layer in flat.layers if layer.name in ("fc4", "bn4", "act4", "fc5"))
    network = flat.model_copy(update={"layers": layers})
    settings = Settings(network, small.method("fp"), small.training(1))
    (first, _) = train(settings, small.images()).layers
    assert (first.C, first.M) == (36, 9)
    wrong = small.images()._replace(classes=9)
    with pytest.raises(ShapeError, match="fc5 gives 10 outputs, made has 9 classes"):
        train(settings, wrong)


@pytest.mark.parametrize("damage", [b"", b"PK", b"nothing", None])
def test_a_damaged_checkpoint_is_one_message(tmp_path, damage):
    path = tmp_path / "t.json"
    train(small.settings(), small.images(), path, stop=lambda: True)
    checkpoint = checkpoint_path(path)
    raw = checkpoint.read_bytes()
    checkpoint.write_bytes(raw[: len(raw) // 2] if damage is None else damage)
    with pytest.raises(DataError, match="is no checkpoint, a damaged one, or one of other code"):
        train(small.settings(), small.images(), path, resume=True)


def test_a_checkpoint_of_other_code_or_of_other_weights_is_refused(tmp_path, monkeypatch):
    import hwmodel.trainer.checkpoint as module

    path = tmp_path / "t.json"
    train(small.settings(), small.images(), path, stop=lambda: True)
    checkpoint = checkpoint_path(path)
    raw = bytearray(checkpoint.read_bytes())
    with np.load(checkpoint) as file:
        assert "trace" in file.files
    with monkeypatch.context() as patched:
        patched.setattr(module, "code_digest", lambda: "other")
        with pytest.raises(DataError, match="or one of other code"):
            train(small.settings(), small.images(), path, resume=True)
    raw[200] ^= 1  # within the first weights
    checkpoint.write_bytes(raw)
    with pytest.raises(DataError, match="a damaged one"):
        train(small.settings(), small.images(), path, resume=True)


def test_a_checkpoint_that_would_unfold_is_refused(tmp_path):
    """Of a few kilobytes that stand for gigabytes, though its seal is right."""
    import hwmodel.trainer.checkpoint as module

    packed = io.BytesIO()
    np.savez_compressed(packed, zeros=np.zeros(10_000_000, np.uint8), trace=np.zeros(1, np.uint8))
    content = packed.getvalue()
    (tmp_path / "c.npz").write_bytes(content + module._seal(content))
    with pytest.raises(DataError, match="is no checkpoint, or a damaged one"):
        module._load(tmp_path / "c.npz", 2**20)
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DataError, match="is no file, but a device or a pipe"):
        module._load(tmp_path / "pipe.npz", 2**20)


@pytest.mark.parametrize("name", ["bold", "bold-bn", "fp", "binarynet"])
@pytest.mark.parametrize("rate", [1e20, 1e38, 1e300])
def test_a_run_that_leaves_the_numbers_ends_with_advice_or_finishes(name, rate):
    """A huge rate may overflow; then there is one message, and no warning on the way."""
    try:
        trace = train(small.settings(name, learning_rate=rate), small.images())
    except HwmodelError as error:
        assert str(error) == "the training left the range of numbers; lower --learning-rate"
    else:
        assert len(trace.epochs) == 3


def test_an_image_that_is_no_number_ends_the_run():
    data = small.images()
    data.x[0, 0, 0, 0] = np.nan
    with pytest.raises(HwmodelError, match="left the range of numbers"):
        train(small.settings("fp"), data)


def test_every_epoch_visits_every_image_once_in_an_order_of_its_own(monkeypatch):
    from hwmodel.trainer.nets import Net

    data, seen = small.images(), []

    def watching(self, images, *, training=False, forward=Net.forward):
        if training:
            seen.append(images)
        return forward(self, images, training=training)

    monkeypatch.setattr(Net, "forward", watching)
    train(small.settings(epochs=2), data)
    first, second = (np.concatenate(seen[i : i + 5]) for i in (0, 5))
    assert len(seen) == 10 and (first != second).any()
    for epoch in (first, second):
        assert (np.sort(epoch.sum((1, 2, 3))) == np.sort(data.x.sum((1, 2, 3)))).all()


def test_the_trace_says_what_happened():
    data = small.images()
    reports = []
    trace = train(small.settings(), data, report=reports.append)
    assert [e.steps for e in trace.epochs] == [5, 10, 15] and len(reports) == 15
    assert (
        reports[-1].steps == 15 and reports[4].accuracy is None and reports[5].accuracy is not None
    )
    names = [layer.name for layer in trace.layers]
    assert names == ["conv1", "conv2", "conv3", "side", "sum", "fc4", "fc5"]
    by_name = dict(zip(names, trace.epochs[0].layers, strict=True))
    assert by_name["conv1"].sent is None and by_name["conv1"].sum_bits is None
    assert by_name["conv2"].optimizer_state is not None and by_name["sum"].optimizer_state is None
    assert by_name["sum"].flip_rate is None and by_name["fc5"].flip_rate is None
    for shape in trace.layers:
        seen = by_name[shape.name]
        assert (seen.sum_bits is None) == (shape.worst_sum_bits is None)
        if seen.sum_bits:
            assert seen.sum_bits <= shape.worst_sum_bits
            size = 2 ** (seen.sum_bits - 1)
            lowest, highest = seen.preactivation.lowest, seen.preactivation.highest
            assert -size <= lowest // 2 <= highest // 2 < size  # the lowest bit never changes
    # of 3 x 3 places a pool of 2 x 2 sees four, and sends its signal to one of them
    assert by_name["conv3"].signal.zero_share == pytest.approx(8 / 9)
    assert (by_name["conv2"].vote is None, by_name["sum"].vote is None) == (False, True)


def test_flips_in_the_trace_are_the_flips_of_the_weights(monkeypatch):
    import hwmodel.trainer.train as loop

    counted = {}

    def counting(layer, *rules, step=loop.boolean_step):
        before = [w.values for w in layer]
        flips = step(layer, *rules)
        changed = sum(int((a != w.values).sum()) for a, w in zip(before, layer, strict=True))
        counted.setdefault(id(layer[0]), []).append(changed)
        return flips

    monkeypatch.setattr(loop, "boolean_step", counting)
    trace = train(small.settings(epochs=1), small.images())
    rates = [layer.flip_rate for layer in trace.epochs[0].layers if layer.flip_rate is not None]
    sizes = [shape.parameters for shape in trace.layers if shape.weights == "boolean"]
    expected = [sum(c) / (5 * n) for c, n in zip(counted.values(), sizes, strict=True)]
    assert rates == pytest.approx(expected) and max(rates) > 0


def off(z, bits):
    """The rms error of rounding to so many bits at the tensor's own scale, value by value."""
    sizes = [abs(v) for v in z if v]
    if bits == 1:
        step = 2.0 ** round(math.log2(sum(sizes) / len(sizes)))
        held = [math.copysign(step, v) if v else 0 for v in z]
    else:
        step = 2.0 ** (math.floor(math.log2(max(sizes))) + 2 - bits)
        most = 2 ** (bits - 1) - 1
        held = [max(-most, min(most, round(v / step))) * step for v in z]
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(held, z, strict=True)) / len(z))


@pytest.mark.parametrize("error", [0.5, 0.3, 0.1, 0.01, 0.001])
def test_a_width_is_the_least_that_keeps_its_error(error):
    rng = np.random.default_rng(0)
    draws = (rng.standard_normal(2000), rng.standard_cauchy(500), rng.uniform(-1, 1, 300))
    for z in draws:
        values = z.astype(np.float32).tolist()
        rms = math.sqrt(sum(v * v for v in values) / len(values))
        least = next(bits for bits in range(1, 33) if off(values, bits) <= error * rms)
        assert held_bits(z, error) == least


def test_widths_of_plain_tensors():
    """8 is the first value of its octave, so that -7 to 7 have steps of 1 at 4 bit."""
    assert held_bits(np.array([1.0, -1.0, 1.0]), 0.01) == 1
    assert held_bits(np.array([1.0, 0.0, -1.0]), 0.01) == 1  # 0 stays 0
    assert held_bits(np.arange(-7.0, 8), 1e-9) == 4
    assert held_bits(np.zeros(5), 0.01) == 1


@pytest.mark.parametrize("seed", range(20))
def test_widths_of_many_steps_are_the_most_of_any(seed):
    """Though few of the steps are looked at closely."""
    rng = np.random.default_rng(seed)
    sizes, steps = Sizes(0.3), []
    for _ in range(30):
        z = rng.standard_normal(60) ** rng.integers(1, 6) * 10.0 ** rng.integers(-9, 9)
        z[rng.random(60) < 0.3] = 0
        sizes.step(z)
        steps.append(z)
    found = sizes.result()
    assert found.bits == max(held_bits(z, 0.3) for z in steps)
    assert found.holds_bits == max(held_bits(z, 0.01) for z in steps)
    every = np.concatenate(steps).astype(np.float32).astype(float)
    assert found.zero_share == np.mean(every == 0)
    assert found.mean == pytest.approx(every.mean(), rel=1e-6, abs=1e-9 * abs(every).max())
    assert found.rms == pytest.approx(math.sqrt((every**2).mean()))


@pytest.mark.parametrize("bits", range(2, 12))
def test_zeros_at_a_width_are_those_of_its_rounding(bits):
    """Values on a grid, many of them exactly half a step; what `limited` makes 0 is counted."""
    rng = np.random.default_rng(bits)
    z = rng.integers(-(2**7), 2**7, 500).astype(np.float32) * np.float32(2.0**-9)
    z[:4] = [2.0**-2, 2.0 ** -(bits + 1), -(2.0 ** -(bits + 1)), 2.0**-30]
    sizes = Sizes(0.5)
    sizes.step(z)
    sizes.bits = bits
    rounded = np.rint(z.astype(float) / 2.0 ** (-1 - bits + 1))  # the largest, 1/4, is below 2^-1
    assert sizes.result().rounded_zero_share == np.mean(rounded == 0)


def test_magnitudes_by_octaves():
    """12 is below 16: 12, 8 and 9 in its first half, and so on; half a step of 3 bit is 2."""
    seen = magnitudes(np.array([12.0, -4.0, 8.0, 9, 2.0, 0, 0, 1e-9]), 0.2)
    assert seen.largest == 12 and seen.zero_share == 0.25
    assert seen.octaves[:4] == pytest.approx((3 / 6, 1 / 6, 1 / 6, 0), abs=1e-6)
    assert seen.octaves[-1] == pytest.approx(1 / 6, abs=1e-6)
    assert seen.bits == 3  # steps of 4: only 9 and 2 are off, by 1 and 2
    assert seen.rounded_zero_share == 4 / 8  # half a step, 2, is rounded to even
    assert magnitudes(np.zeros(3), 0.01).octaves == (0.0,) * 16
    assert magnitudes(np.array([1e-44, -1.0]), 0.1).octaves[-1] == 0.5  # below all normal words


@needs_digits
@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_a_killed_run_leaves_a_readable_trace_or_none_and_can_be_resumed(tmp_path, delay):
    path = tmp_path / "t.json"
    command = [sys.executable, "-m", "hwmodel", "train", "--trace", str(path), "--epochs", "60"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet)
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    process.kill()
    process.wait()
    kept = read_trace(path)
    assert 1 <= len(kept.epochs) < 60
    settings = Settings(load_network("deep-mlp"), small.method(), epochs=60)
    data = load_dataset("digits")
    ends = len(kept.epochs) + 2

    def two_more():
        return len(read_trace(path).epochs) >= ends

    resumed = train(settings, data, path, resume=True, stop=two_more)
    whole = train(settings, data, stop=iter([False] * (len(resumed.epochs) - 1) + [True]).__next__)
    assert resumed.epochs == whole.epochs


@needs_digits
def test_an_interrupt_ends_the_epoch_and_keeps_the_trace(tmp_path):
    path = tmp_path / "t.json"
    command = [sys.executable, "-m", "hwmodel", "train", "--trace", str(path), "--epochs", "200"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "ends after this epoch" in err and "--resume goes on" in err and "Traceback" not in err
    assert "of the test images" in out
    assert 1 <= len(read_trace(path).epochs) < 200
    leftovers = {p.name for p in tmp_path.iterdir()} - {"t.json", "t.json.checkpoint.npz"}
    assert not leftovers
