"""A study: seeds, the control, a target on validation images, and what it costs."""

import csv
import io
import statistics

import numpy as np
import pytest
import small

from hwmodel import evaluate
from hwmodel.errors import DataError
from hwmodel.importers.load import load_network
from hwmodel.rerun.tables import read_rows
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.provenance import Provenance, digest
from hwmodel.specs.trace import dumps
from hwmodel.trainer.data import load_dataset
from hwmodel.trainer.real import BatchNorm
from hwmodel.trainer.study import Outcome, arms, at_widths, outcome, priced, trained, unlearned
from hwmodel.trainer.train import Settings, train
from hwmodel.views.study import outcomes_csv, study_figure
from tests.traces import trace

# The split


def test_the_last_images_in_the_data_s_order_are_withheld():
    """20 % of 1,437 is 287.4; 1,150 images are 36 steps of 32."""
    pytest.importorskip("sklearn")
    data = load_dataset("digits")
    kept = data.withhold(0.2)
    assert (len(kept.x), len(kept.validation_x)) == (1150, 287)
    assert (np.concatenate([kept.x, kept.validation_x]) == data.x).all()
    assert (np.concatenate([kept.y, kept.validation_y]) == data.y).all()
    assert (kept.test_x is data.test_x, kept.digest) == (True, data.digest)
    run = train(Settings(load_network("deep-mlp"), small.method(), epochs=1, validation=0.2), data)
    assert (run.epochs[0].steps, run.run.train_images, run.run.validation_images) == (36, 1150, 287)
    assert run.run.training == "digits-30"  # which is of all 1,437


def test_nothing_is_trained_on_withheld_images():
    """What they are changes no weight, and what is told of them is of them alone."""
    data = small.images()
    other = data._replace(x=data.x.copy())
    other.x[-14:] = 0  # all in one class, whichever
    settings = small.settings(validation=0.2)
    one, two = train(settings, data), train(settings, other)
    assert [e.layers for e in one.epochs] == [e.layers for e in two.epochs]
    assert [e.accuracy for e in one.epochs] == [e.accuracy for e in two.epochs]
    classes = np.bincount(data.y[-14:], minlength=10) / 14
    assert {e.validation_accuracy for e in two.epochs} <= set(classes)
    assert train(small.settings(), data).epochs[0].validation_accuracy is None


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_a_split_of_nothing_is_refused(share):
    with pytest.raises(DataError, match=r"--validation .*: of 70 images, (0|70) would be withheld"):
        train(small.settings(validation=share), small.images())


# Its runs


def test_every_method_has_the_same_seeds_and_there_is_one_control():
    base = small.settings(seed=3)
    methods = [small.method(name) for name in ("fp", "bold", "bold-bn")]
    plan = arms(base, methods, 2)
    said = [[(s.method.name, s.freeze, s.seed) for s in runs] for runs in plan]
    assert said == [
        [("fp", False, 3), ("fp", False, 4)],
        [("bold", False, 3), ("bold", False, 4)],
        [("bold-bn", False, 3), ("bold-bn", False, 4)],
        [("bold", True, 3), ("bold", True, 4)],
    ]
    assert len(arms(base, methods[:1], 2)) == 1  # nothing flips


def test_a_study_is_its_runs_and_goes_on_where_it_was(tmp_path, monkeypatch):
    plan = arms(small.settings(), [small.method()], 2)
    runs = list(trained(plan, small.images(), tmp_path))
    for mine, of in zip(runs, plan, strict=True):
        for found, settings in zip(mine, of, strict=True):
            assert dumps(found) == dumps(train(settings, small.images()))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"block_bold{f}_seed{n}.json" for f in ("", "_frozen") for n in (0, 1)}
    (tmp_path / "block_bold_seed1.json").unlink()
    again = list(trained(plan, small.images(), tmp_path, resume=True))
    assert [[*map(dumps, mine)] for mine in again] == [[*map(dumps, mine)] for mine in runs]
    monkeypatch.setattr("hwmodel.trainer.train._epoch", None)  # nothing is left to train
    assert len(list(trained(plan, small.images(), tmp_path, resume=True))) == 2


def test_the_widths_of_a_sweep_are_of_the_method():
    found = at_widths(small.method())
    names = [method.name for method in found]
    assert (names[:3], found[0].widths) == (["bold", "bold-16-16-16", "bold-8-8-8"], None)
    (narrow,) = (method for method in found if method.name == "bold-8-1-8")
    limits = narrow.widths
    assert (limits.accumulator.bits, limits.vote.bits, limits.signal.bits) == (8, 1, 8)
    assert (limits.vote.scale, limits.vote.rounding) == ("delayed", "nearest")  # what is priced
    assert len(set(names)) == len(names)
    (dropped,) = (m for m in found if m.name == "bold-8-8-8-floor")
    assert {(w.bits, w.rounding) for _, w in dropped.widths} == {(8, "floor")}


def test_a_sweep_of_limited_widths_begins_with_the_method_s_own():
    """bold-8 is 8 bit under its own name; what is not limited has another."""
    stated = small.method("bold-8")
    own, free, *others = at_widths(stated)
    assert own == stated and own.widths.signal.bits == 8
    assert (free.name, free.widths) == ("bold-8-unlimited", None)
    assert {own.name, free.name}.isdisjoint(method.name for method in others)


# What it costs


def test_D2_what_is_priced_is_what_is_trained():
    """With batch norms where the method has them; fp on deep-mlp without would be a fifth less."""
    chip, full = load(Hardware, "ascend"), load(Accounting, "full")
    for name in ("fp", "bold", "bold-bn", "binarynet"):
        net = small.net(name)
        norms = [n.name for n in net.nodes if isinstance(n.layer, BatchNorm)]
        found = evaluate(small.network(), chip, name, accounting=full, batch=16)
        assert norms == [n.layer.name for n in found.nodes if n.layer.kind == "batch-norm"]
        assert bool(norms) == (name != "bold")
        settings = small.settings(name, epochs=1)
        run = train(settings, small.images())
        assert priced(settings, run, chip, full) == (found.energy, "pJ")


def test_other_layers_than_those_trained_have_no_price_here():
    run = train(small.settings(epochs=1), small.images())
    other = Settings(small.network(("channels: 5,", "channels: 6,")), small.method())
    with pytest.raises(DataError, match="conv1 has M 6 for 5"):
        priced(other, run, load(Hardware, "ascend"), load(Accounting, "full"))


# What is told of it

AT = ("chip", "rules")


def runs(*accuracies, **changes):
    return [trace(accuracies=a, seed=n, epochs=4, **changes) for n, a in enumerate(accuracies)]


def test_medians_quartiles_and_energies_by_hand():
    """Reached after 10, 20, 30, 20 steps and never: quartiles of nearest rank are the 2nd and 4th."""
    given = runs(
        (0.8, 0.9, 0.8, 0.9), (0.5, 0.8, 0.9, 0.9), (0.5, 0.5, 0.8, 0.8), (0.7, 0.8, 0.8, 0.7),
        (0.8, 0.7, 0.8, 0.7),
    )  # fmt: skip
    found = outcome(given, 0.8, 2, (5.0, "pJ"), AT)
    assert (found.runs, found.runs_reached, found.spread) == (5, 4, "quartiles")
    assert (found.steps_low, found.steps_middle, found.steps_high) == (20, 20, 30)
    assert (found.energy_low, found.energy_middle, found.energy_high) == (100, 100, 150)
    assert (found.energy_iteration, found.planned_steps) == (5, 40)
    ends = [90, 90, 80, 70, 70]
    assert (found.test_low, found.test_middle, found.test_high) == (70, 80, 90)
    assert found.test_mean == pytest.approx(80)
    assert found.test_deviation == pytest.approx(statistics.stdev(ends))
    assert found.validation_middle == found.test_middle
    never = outcome(given, 0.9, 3, (5.0, "pJ"), AT)
    assert (never.runs_reached, never.steps_low, never.energy_low) == (0, None, None)


def test_of_fewer_than_five_there_is_no_median():
    found = outcome(runs((0.8,) * 4, (0.5, 0.8, 0.8, 0.9)), 0.8, 2, (5.0, "pJ"), AT)
    assert (found.spread, found.steps_low, found.steps_high) == ("extremes", 10, 20)
    assert (found.steps_middle, found.energy_middle, found.test_middle) == (None,) * 3


def test_without_a_target_or_a_chip_there_are_accuracies_alone():
    found = outcome(runs((0.5, 0.6, 0.7, 0.8)))
    assert (found.spread, found.test_middle, found.validation_high) == ("one run", 80, 80)
    assert (found.target_percent, found.energy_iteration, found.steps_low) == (None,) * 3


def test_who_learns_nothing_is_named():
    """The control has 0.3 and 0.5: 40 on the mean."""
    control = outcome(runs((0.3,), (0.5,), frozen=True))
    equal, above = outcome(runs((0.4,), (0.4,))), outcome(runs((0.1,), (0.9,), method="fp"))
    assert unlearned([equal, above]) == unlearned([above, control]) == []
    assert unlearned([equal, above, control]) == ["bold"]


def test_the_figure_has_medians_as_bars():
    first = outcome(runs(*[(0.8,) * 4] * 5), 0.8, 2, (5.0, "pJ"), AT)
    second = outcome(runs(*[(0.5, 0.8, 0.8, 0.8)] * 5, method="fp"), 0.8, 2, (9.0, "pJ"), AT)
    control = outcome(runs(*[(0.2,) * 4] * 5, frozen=True), 0.8, 2)
    accuracy, energy, points = study_figure([first, second, control]).axes
    assert [bar.get_width() for bar in accuracy.patches] == pytest.approx([80, 80, 20])
    assert [bar.get_width() for bar in energy.patches] == [50, 180]
    assert [text.get_text().strip() for text in energy.texts] == ["reached 0 of 5"]
    labels = [label.get_text() for label in accuracy.get_yticklabels()]
    assert labels == ["bold", "fp", "bold, frozen"]
    assert [text.get_text().strip() for text in points.texts] == ["bold", "fp"]


def test_a_study_s_table_is_drawn_anew_in_any_style(hwmodel, tmp_path):
    first = outcome(runs(*[(0.8,) * 4] * 5), 0.8, 2, (5.0, "pJ"), AT)
    control = outcome(runs(*[(0.2,) * 4] * 5, frozen=True), 0.8, 2)
    (tmp_path / "s.csv").write_text(outcomes_csv([first, control], Provenance("hwmodel train", ())))
    assert read_rows(tmp_path / "s.csv", Outcome, "table of a study")[0] == [first, control]
    code, _, err = hwmodel("plot", "s.csv", "--style", "icml", "--ours", "bold", "-o", "s.svg")
    assert (code, err) == (0, "wrote s.svg\n")
    assert 'width="234pt"' in (tmp_path / "s.svg").read_text()  # 3.25 inches
    code, _, err = hwmodel("plot", "s.csv", "--kind", "bars", "-o", "s.svg")
    assert code == 2 and "is drawn as kind study, not bars" in err
    text = (tmp_path / "s.csv").read_text()
    (tmp_path / "s.csv").write_text(text.replace(",80.0,", ",eighty,", 1))
    code, _, err = hwmodel("plot", "s.csv", "-o", "s.svg")
    assert code == 2 and err.startswith("hwmodel: s.csv:2: test_low 'eighty': ")


# The command


def test_one_command_makes_a_study(hwmodel, tmp_path):
    pytest.importorskip("sklearn")
    (tmp_path / "net.yaml").write_text(small.BLOCK.replace("[1, 6, 6]", "[1, 8, 8]"))
    words = (
        "train", "--network", "net.yaml", "--method", "fp,bold", "--seeds", "2", "--epochs", "2",
        "--validation", "0.2", "--target", "0.2", "--sustain", "1", "--hardware", "ascend",
        "--accounting", "full", "--csv", "t.csv", "--figure", "t.svg",
    )  # fmt: skip
    code, out, err = hwmodel(*words)
    assert code == 0, err
    said = " ".join(out.split())
    assert "block on digits; 1,150 images to train on, batch 32, 72 steps; to 20 % of 287" in said
    assert "bold, frozen" in out and (tmp_path / "t.svg").exists()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert [(row["method"], row["frozen"]) for row in rows] == [
        ("fp", "False"), ("bold", "False"), ("bold", "True"),
    ]  # fmt: skip
    for row in rows[:2]:
        price = evaluate("net.yaml", "ascend", row["method"], accounting="full", batch=32).energy
        assert float(row["energy_iteration"]) == price
        if row["steps_low"]:
            assert float(row["energy_low"]) == int(row["steps_low"]) * price
    assert rows[2]["energy_iteration"] == ""
    made = "hwmodel train --network net.yaml --method fp,bold --epochs 2 --seeds 2 --validation 0.2"
    assert {row["command"] for row in rows} == {
        f"{made} --target 0.2 --sustain 1 --hardware ascend --accounting full"
    }
    short = rows[0]["inputs_sha256"].split("-")
    assert digest(load(Hardware, "ascend"))[:8] == short[0]
    assert {digest(load(Method, name))[:8] for name in ("fp", "bold")} <= set(short)
    text = (tmp_path / "t.csv").read_text()
    assert hwmodel(*words)[0] == 2  # the traces are there
    assert hwmodel(*words, "--resume")[0] == 0
    assert (tmp_path / "t.csv").read_text() == text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--seeds", "2", "--target-from", "test"), "--target-from test: a target is one of validation images"),
        (("--target", "0.9"), "--target: is reached on validation images; say --validation 0.2, too"),
        (("--target", "1.2", "--validation", "0.2"), "--target 1.2: is a share above 0, at most 1"),
        (("--validation", "1"), "--validation 1: is a share from 0 to below 1"),
        (("--sweep", "width"), "--sweep width: did you mean 'widths'?"),
        (("--sweep", "widths", "--method", "fp"), "--sweep widths: is of methods whose weights flip"),
        (("--seeds", "2", "--freeze-boolean"), "--freeze-boolean: a study has its control anyway"),
        (("--seeds", "2", "--trace", "t.json"), "--trace t.json: a study has a trace a run; name a folder"),
        (("--seeds", "2", "--figure", "t.txt"), "t.txt: a figure ends in .png, .svg, .pdf"),
        (("--seeds", "2", "--hardware", "ascent"), "no hardware is called 'ascent': did you mean 'ascend'?"),
        (("--method", "bold,blod"), "no method is called 'blod'"),
        (("--method", "bold,bold"), "two "),
        (("--hardware", "ascend"), "--hardware ascend: is of a study"),
        (("--method", "bold,fp", "--learning-rate", "12"), "--learning-rate 12: of bold it is the rate of flips, of fp that of Adam"),
        (("--network", "deep-mlp,deep-mlp"), "--network: two networks are called 'deep-mlp'"),
        (("--seeds", "2", "--accounting", "nosuch"), "no accounting is called 'nosuch'"),
        (("--accounting", "nosuch"), "--accounting nosuch: is of a study"),
        (("--seeds", "2", "--csv", "t.txt"), "--csv t.txt: end its name in .csv"),
        (("--trace", "w.npz", "--weights", "w.npz"), "--trace w.npz: would be written over what looks like an input"),
        (("--trace", "w.csv", "--curves", "w.csv"), "--trace w.csv: would be written over what looks like an input"),
        (("--seeds", "2000000000"), "hwmodel train: invalid value for '--seeds': Input should be less than or equal to 1000"),
    ],
)  # fmt: skip
def test_what_makes_no_study_is_one_message(hwmodel, tmp_path, options, said):
    code, out, err = hwmodel("train", *options)
    assert (code, out) == (2, "")
    assert err.startswith(f"hwmodel: {said}") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_study_s_places_are_seen_before_it_begins(hwmodel, tmp_path, monkeypatch):
    """Nothing is trained, made or written over, and a target can be reached."""
    pytest.importorskip("sklearn")
    monkeypatch.setattr("hwmodel.trainer.train._epoch", None)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "mine.csv").write_text("label,a\n0,1\n")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link.csv").symlink_to("chip.yaml")
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "deep-mlp_fp_seed0.json").write_text("{}")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for options, said in (
        (("--csv", "folder.csv"), "folder.csv: cannot be written: is a folder"),
        (("--csv", "mine.csv"), "--csv mine.csv: is there already, and is no table of a study"),
        (("--csv", "file/t.csv"), "file/t.csv: cannot be written: Not a directory"),
        (("--csv", "link.csv"), f"--csv {tmp_path}/chip.yaml: end its name in .csv"),
        (("--figure", "chip.yaml"), "chip.yaml: a figure ends in .png, .svg, .pdf"),
        (("--trace", "file"), "file: cannot be written: is no folder"),
        (("--network", "deep-mlp,conv-mnist"), "network conv-mnist takes images of 1 x 28 x 28"),
        (("--target", "0.9", "--validation", "0.2", "--epochs", "2"), "--sustain 3: deep-mlp is evaluated 2 times"),
        (("--csv", "t.csv"), "traces/deep-mlp_fp_seed0.json: is there already"),
    ):  # fmt: skip
        code, out, err = hwmodel("train", "--method", "bold,fp", "--dataset", "digits", *options)
        assert (code, out) == (2, "")
        assert err.startswith(f"hwmodel: {said}") and err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_one_run_s_places_are_seen_before_it_begins(hwmodel, tmp_path, monkeypatch):
    monkeypatch.setattr("hwmodel.trainer.train._epoch", None)
    pytest.importorskip("sklearn")
    np.savez(tmp_path / "mine.npz", x_train=np.zeros(3))
    (tmp_path / "mine.json").write_text('{"name": "mine"}')
    for options, said in (
        (
            ("--weights", "mine.npz"),
            "--weights mine.npz: is there already, and is no file of weights",
        ),
        (
            ("--trace", "mine.json", "--overwrite"),
            "--trace mine.json: is there already, and is no trace",
        ),
        (
            ("--trace", "t", "--weights", "t.checkpoint.npz"),
            "--weights t.checkpoint.npz: --trace goes to this file, too",
        ),
    ):
        code, out, err = hwmodel("train", "--dataset", "digits", *options)
        assert (code, out) == (2, "")
        assert err.startswith(f"hwmodel: {said}") and err.count("\n") == 1
    assert len(list(tmp_path.iterdir())) == 2
