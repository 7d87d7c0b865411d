"""What Python code finds when it imports the package."""

import numpy as np
import pytest

import hwmodel
from hwmodel import HwmodelError, NameUnknown, compare, evaluate
from hwmodel.importers.load import load_network
from hwmodel.model import entered as entering
from hwmodel.model.compare import reproduce
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.sensitivity import sensitivity
from hwmodel.vary.sweep.plan import plan
from hwmodel.vary.sweep.run import run

NET = "mlp-784-512-512-10"


def test_one_name_may_stand_for_a_list_of_one():
    """A string is a sequence of strings, too; none of its letters is a chip."""
    several = list(compare("vgg-small-1fc", ["v100"], ["bold"], accounting=["paper"]))
    assert list(compare("vgg-small-1fc", "v100", "bold", accounting="paper")) == several
    with pytest.raises(NameUnknown, match="no hardware is called 'v10': did you mean 'v100'"):
        compare("vgg-small-1fc", "v10", "bold", accounting="paper")


def test_public_names_are_listed_before_they_are_loaded():
    assert {*hwmodel.__all__} <= {*dir(hwmodel)}


def compared(network, hardware, method, *, trace=None, **options):
    traces = {} if trace is None else {"traces": trace}
    return list(compare(network, hardware, method, **traces, **options))


def moved(network, hardware, method, *, trace=None, **options):
    return sensitivity(network, [hardware], [method], **options)


@pytest.mark.parametrize("function", [evaluate, compared, moved])
@pytest.mark.parametrize(
    ("argument", "value", "rule"),
    [
        ("batch", True, "batch True: must be a whole number from 1 to 2147483648"),
        ("batch", 4.0, "batch 4.0: must be a whole number"),
        ("batch", "4", "batch '4': must be a whole number"),
        ("batch", np.float64(4), ": must be a whole number"),
        ("batch", np.bool_(True), ": must be a whole number"),
        ("batch", np.int64(0), ": must be a whole number"),
        ("batch", [4.0], ": must be a whole number"),
        ("mode", None, "mode None: must be one of training, inference"),
        ("mode", ["training"], "mode ['training']: must be one of training, inference"),
        ("mode", np.zeros(2), "mode array([0., 0.]): must be one of training, inference"),
        ("network", 5, "network 5: must be a name, a path or a Network"),
        ("network", None, "network None: must be a name, a path or a Network"),
        ("network", b"vgg", "network b'vgg': must be a name, a path or a Network"),
        ("network", load(Hardware, "v100"), "network Hardware("),
        ("hardware", 5, "hardware 5: must be a name, a path"),
        ("hardware", None, "hardware None: must be a name, a path"),
        ("hardware", {"name": "v100"}, "hardware {'name': 'v100'}: must be a name, a path"),
        ("hardware", load(Accounting, "paper"), "hardware Accounting("),
        ("method", 5, " 5: must be a name, a path"),
        ("method", load(Hardware, "v100"), " Hardware("),
        ("accounting", None, "accounting None: must be a name, a path"),
        ("accounting", 2.5, "accounting 2.5: must be a name, a path"),
    ],
)
def test_an_argument_of_another_kind_is_one_sentence(function, argument, value, rule):
    given = {"network": NET, "hardware": "ascend", "method": "bold", argument: value}
    places = [given.pop(name) for name in ("network", "hardware", "method")]
    with pytest.raises(HwmodelError) as error:
        function(*places, **given)
    said = str(error.value)
    assert rule in said and said.count("\n") == 0 and len(said) < 200


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (
            lambda: evaluate(NET, "ascend", "bold", trace=5, accounting="paper"),
            "trace 5: must be a path, a Trace, or a list of them",
        ),
        (lambda: compared(NET, "ascend", "bold", traces="x"), "traces 'x': must be a list of"),
        (lambda: compared(NET, "ascend", "bold", traces=None), "traces None: must be a list of"),
        (lambda: compared(NET, "ascend", "bold", traces=["x"]), "traces 'x': must be a Trace"),
        (lambda: compared(NET, "ascend", "bold", baseline=0), "baseline 0: must be a name"),
        (lambda: compared(NET, "ascend", ["bold", 5]), "method 5: must be a name"),
        (lambda: list(reproduce(["x"])), "table ['x']: must be the name of a published table"),
        (lambda: list(reproduce("x", batch=1.0)), "no published table is called 'x'"),
        (lambda: sensitivity(NET, "ascend", ["bold"]), "hardware 'ascend': must be a list of"),
        (lambda: sensitivity(NET, ["ascend"], "bold"), "methods 'bold': must be a list of"),
        (lambda: sensitivity(NET, [], ["bold"]), "hardware: names none"),
        (lambda: sensitivity(NET, ["ascend"], []), "methods: names none"),
        (lambda: moved(NET, "ascend", "bold", samples=1.5), "samples 1.5: must be a whole number"),
        (lambda: moved(NET, "ascend", "bold", seed=None), "seed None: must be a whole number"),
        (lambda: moved(NET, "ascend", "bold", jobs=True), "jobs True: must be a whole number"),
        (lambda: moved(NET, "ascend", "bold", ranges=5), "ranges 5: must be a path"),
        (lambda: plan("sweep.yaml"), "file 'sweep.yaml': must be a SweepFile"),
        (lambda: run("sweep.yaml", "x", None, jobs=1, progress=print), "plan 'sweep.yaml': must"),
        (lambda: hwmodel.from_onnx(5), "path 5: must be a path"),
        (lambda: hwmodel.from_onnx("x.onnx", "1,3"), "input_shapes '1,3': must be a mapping"),
        (lambda: hwmodel.from_onnx("x.onnx", {"x": 3}), "input_shapes x 3: must be a list"),
        (lambda: load_network("x.onnx", {"x": [1.5]}), "input_shapes x 1.5: must be a whole"),
        (lambda: hwmodel.from_torch(None, None, name=5), "name 5: must be text"),
    ],
)
def test_so_is_one_of_a_single_function(asked, rule):
    with pytest.raises(HwmodelError) as error:
        asked()
    assert str(error.value).startswith(rule)


@pytest.mark.parametrize("batch", [np.int64(4), np.uint8(4), np.array(4)])
def test_whole_numbers_of_numpy_are_whole_numbers(batch):
    report = evaluate(NET, "ascend", "bold", batch=batch, accounting="paper")
    assert (
        report == evaluate(NET, "ascend", "bold", batch=4, accounting="paper")
        and type(report.batch) is int
    )
    (line,) = compare(NET, "ascend", "bold", batch=batch, accounting="paper", optimal_tiles=False)
    assert line.report == report and type(line.batch) is int
    options = {"accounting": "paper"}
    found = moved(NET, "ascend", "bold", batch=batch, **options)
    assert found == moved(NET, "ascend", "bold", batch=4, **options)


def test_a_path_with_a_zero_byte_is_one_message():
    for call in (
        lambda: hwmodel.from_onnx("a\0.onnx"),
        lambda: hwmodel.evaluate(
            "vgg-small", "ascend", "bold", trace="a\0.json", accounting="paper"
        ),
    ):
        with pytest.raises(HwmodelError, match="must be a path, which has no zero byte"):
            call()


def test_the_same_question_again_is_answered_by_what_was_counted(monkeypatch):
    """And one of another batch, or of another chip of that name, is not."""
    counted = []
    multiplied = entering.multiplied
    monkeypatch.setattr(
        entering, "multiplied", lambda *given: counted.append(given) or multiplied(*given)
    )
    first = evaluate(NET, "ascend", "bold", accounting="paper", batch=37)
    products = len(counted)
    again = evaluate(NET, "ascend", "bold", accounting="paper", batch=37)
    assert products > 0 and len(counted) == products
    assert again.ledger == first.ledger and again.energy == first.energy
    chip = load(Hardware, "ascend")
    other = chip.model_copy(update={"title": "another"})
    for hardware, batch in (("ascend", 38), (other, 37)):
        before = len(counted)
        evaluate(NET, hardware, "bold", accounting="paper", batch=batch)
        assert len(counted) == before + products
