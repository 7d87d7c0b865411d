"""Who holds what: at the outermost level a tensor lies where its kind lies, whatever moves it."""

import csv
import io
from pathlib import Path

import pytest

from hwmodel import evaluate
from hwmodel.errors import NoRoom
from hwmodel.graph.network import family_member
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling.options import memories
from hwmodel.vary.paths import Inputs, replaced, replaced_all
from hwmodel.vary.sensitivity.costs import Costs, Study
from hwmodel.vary.sweep.file import SweepFile
from hwmodel.vary.sweep.part import columns, run_part, searches
from hwmodel.vary.sweep.plan import plan
from hwmodel.views.explain.explanation import explanation
from hwmodel.work.tensor import KINDS
from tests.specs import written

# Prices here are told apart at a glance, and far from any memory.
pytestmark = pytest.mark.filterwarnings("ignore:.*that bundled chips pay")

DATA = Path(__file__).parent / "data" / "turn2"
PRICES = {"weights": 2, "maps": 3, "signals": 5, "gradients": 7, "state": 11}  # pJ a bit


CHIP = """\
version: 1
name: apart
title: A memory for each kind of tensor, with prices of its own
energy_unit: pJ
sources: {me: "me, 2024"}
levels:
  - level: 2
    name: off
    split:
      - {name: M-weights, holds: [weights], capacity: unlimited, read_energy: 2, write_energy: 200, source: me}
      - {name: M-maps, holds: [maps], capacity: unlimited, read_energy: 3, write_energy: 300, source: me}
      - {name: M-signals, holds: [signals], capacity: unlimited, read_energy: 5, write_energy: 500, source: me}
      - {name: M-gradients, holds: [gradients], capacity: unlimited, read_energy: 7, write_energy: 700, source: me}
      - {name: M-state, holds: [state], capacity: unlimited, read_energy: 11, write_energy: 1100, source: me}
  - {level: 1, name: L1, capacity: 4 KiB, access_energy: 0.5, source: me}
  - {level: 0, name: L0, capacity: 64 B, access_energy: 0.1, source: me}
arithmetic:
  - {operation: mac, bits: 32, energy: 4, source: me}
"""


@pytest.fixture
def chip(tmp_path):
    return load(Hardware, written(tmp_path, CHIP, name="apart.yaml"))


@pytest.fixture
def network(tmp_path):
    return written(tmp_path, NETWORK, name="net.yaml")


NETWORK = """\
version: 1
name: net
title: One of everything that has a tensor of its own
input: [2, 6, 6]
layers:
  - {name: first, kind: conv, channels: 4, kernel: 3, padding: 1, bias: true}
  - {name: bn, kind: batch-norm}
  - {name: act, kind: activation}
  - {name: mid, kind: conv, channels: 4, kernel: 3, padding: 1}
  - {name: twin, kind: conv, channels: 4, kernel: 3, padding: 1, shares: mid}
  - {name: sum, kind: add, inputs: [twin, act]}
  - {name: act2, kind: activation}
  - {name: pool, kind: max-pool, kernel: 2}
  - {name: fc, kind: linear, features: 3}
"""

# By the name and the role of a tensor, of layers with weights.
HELD = {
    ("I", "operand"): "maps", ("O", "operand"): "maps", ("I", "saved"): "maps",
    ("O", "saved"): "maps", ("O", "kept sum"): "maps", ("O", "copy"): "maps",
    ("O", "extra work"): "maps", ("index", "saved"): "maps", ("O", "unfinished sum"): "maps",
    ("dO", "operand"): "signals", ("dI", "operand"): "signals", ("dO", "fork"): "signals",
    ("dO", "broadcast"): "signals", ("dI", "unfinished sum"): "signals",
    ("dO", "extra work"): "signals",
    ("F", "operand"): "weights", ("P", "operand"): "weights", ("F", "looked up"): "weights",
    ("dF", "operand"): "gradients", ("dP", "operand"): "gradients", ("dF", "shared"): "gradients",
    ("dF", "vote"): "gradients", ("dF", "unfinished sum"): "gradients",
    ("dF", "looked up"): "gradients",
    ("F", "latent"): "state", ("m(F)", "moment"): "state", ("v(F)", "moment"): "state",
    ("m(P)", "moment"): "state", ("v(P)", "moment"): "state", ("F", "accumulator"): "state",
}  # fmt: skip
ATTENTION = {
    ("F", "operand"): "maps", ("dF", "operand"): "signals", ("dF", "unfinished sum"): "signals",
}  # fmt: skip


def whole(text):
    """A number of a table: capacities are whole, in bits."""
    return int(text) if text.isdigit() else float(text)


def outermost(report):
    names = {f"M-{kind}" for kind in PRICES}
    return [one for one in report.ledger.entries if one.memory in names]


@pytest.mark.parametrize("method", ["fp", "binarynet", "bold", "xnor-net"])
def test_every_tensor_of_an_iteration_lies_in_the_memory_of_its_kind(chip, network, method):
    found = outermost(evaluate(network, chip, method, accounting="full", batch=2))
    for one in found:
        word = one.tensor.rstrip("0123456789")
        assert one.memory == f"M-{HELD[word, str(one.role)]}", one
    met = {(one.tensor.rstrip("0123456789"), str(one.role)) for one in found}
    assert {("dF", "shared"), ("dO", "fork"), ("index", "saved"), ("P", "operand")} <= met
    assert ("F", "accumulator") in met or ("m(F)", "moment") in met


def test_operands_of_attention_are_maps_and_signals(chip):
    network = family_member("bert-base", {"blocks": 1})
    report = evaluate(network, chip, "bold-bert", accounting="full")
    attention = {n.layer.name for n in report.nodes if n.layer.kind.startswith("attention")}
    assert attention
    for one in outermost(report):
        held = HELD | ATTENTION if one.layer in attention else HELD
        word = one.tensor.rstrip("0123456789")
        assert one.memory == f"M-{held[word, str(one.role)]}", one


def test_the_report_s_energy_is_that_of_its_rows_at_the_prices_of_their_memories(chip, network):
    """Each outermost row is paid at the price written above, each inner one at its own."""
    report = evaluate(network, chip, "binarynet", accounting="full", batch=2)
    inner = {"L1": 0.5, "L0": 0.1}
    paid = 0.0
    for one in report.ledger.entries:
        if one.memory in inner:
            paid += one.count * inner[one.memory]
        elif one.memory:
            price = PRICES[one.memory.removeprefix("M-")]
            paid += one.count * price * (100 if one.direction == "write" else 1)
    moved = {str(key[0]): energy for key, energy in report.energies("direction").items()}
    assert paid == pytest.approx(moved["read"] + moved["write"], rel=1e-12)


@pytest.mark.parametrize("name", sorted(set(bundled(Hardware)) - {"binareye", "mcu-m4"}))
def test_a_chip_with_one_outermost_memory_is_the_same_to_every_search(name):
    found = load(Hardware, name)
    assert len(found.levels[0].buffers) == 1
    assert {memories(found, (a, b, c)) for a in KINDS for b in KINDS for c in KINDS} == {
        memories(found)
    }


MCU = DATA / "mcu.yaml"


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("holds: [F]", "holds: [weights]"),
        ("holds: [I, O]", "holds: [maps, signals, gradients, state]"),
        ("holds: [I, O]", "holds: [O, I]"),
    ],
)
def test_letters_are_short_forms_of_kinds(tmp_path, short, long):
    path = written(tmp_path, MCU.read_text(), (short, long))
    kinds = [buffer.kinds for buffer in load(Hardware, path).levels[0].buffers]
    assert kinds == [("weights",), ("maps", "signals", "gradients", "state")]
    of = [evaluate("deep-mlp", chip, "bold", accounting="full").energy for chip in (path, MCU)]
    assert of[0] == of[1]


SWEPT = {
    "hardware.levels.M-state.read_energy": (1.5, 300.0),
    "hardware.levels.M-weights.write_energy": (0.25, 40.0),
    "hardware.levels.M-maps.capacity": ("1 KiB", "1 GiB"),
}


def test_a_sweep_over_outermost_memories_is_what_evaluate_gives(chip, tmp_path):
    """Maps of 64 images have no room in 1 KiB; such a point has the reason and no energy."""
    fields = {
        "version": 1, "name": "s", "title": "t", "network": "deep-mlp",
        "hardware": str(tmp_path / "apart.yaml"), "method": ["fp", "binarynet"],
        "accounting": "full", "batch": 64, "axes": [{path: values} for path, values in SWEPT.items()],
    }  # fmt: skip
    planned = plan(SweepFile.model_validate(fields))
    rows = list(csv.DictReader(io.StringIO(run_part(planned, range(16))), list(columns(planned))))
    assert len(rows) == 16
    reasons = 0
    for row in rows:
        moved = {path.removeprefix("hardware."): row[path] for path in SWEPT}
        moved = {path: whole(value) for path, value in moved.items()}
        point = replaced_all(chip, moved)
        try:
            energy = evaluate("deep-mlp", point, row["method"], accounting="full", batch=64).energy
        except NoRoom as error:
            reasons += 1
            assert (row["energy"], row["reason"]) == ("", str(error))
        else:
            assert float(row["energy"]) == pytest.approx(energy, rel=1e-12)
    assert reasons == 8
    assert len({row["energy"] for row in rows}) == 1 + 8


def test_a_sweep_counts_the_searches_that_outermost_memories_need(tmp_path):
    """A price of states moves no product; one of weights moves forward and backward_input."""
    written(tmp_path, CHIP, name="apart.yaml")

    def number(path):
        fields = {
            "version": 1, "name": "s", "title": "t", "network": "deep-mlp",
            "hardware": str(tmp_path / "apart.yaml"), "method": "fp", "accounting": "full",
            "axes": [{path: (1.0, 2.0)}],
        }  # fmt: skip
        return searches(plan(SweepFile.model_validate(fields)), range(2))

    once = number("hardware.levels.M-state.read_energy")
    report = evaluate("deep-mlp", tmp_path / "apart.yaml", "fp", accounting="full")
    kinds = {(task.work.kinds, task.work.problem) for task, _ in report.tilings}
    assert once == len(kinds)
    with_weights = {found for found in kinds if "weights" in found[0]}
    assert number("hardware.levels.M-weights.read_energy") == once + len(with_weights)


def test_a_study_of_sensitivity_is_what_evaluate_gives(chip):
    accounting = load(Accounting, "full")
    methods = tuple(load(Method, name) for name in ("fp", "bold"))
    point = Inputs(load_network("deep-mlp"), chip, methods[0], accounting, 4)
    costs = Costs(Study(point.network, methods, methods[0], (point,), "training"))
    for path in ("levels.M-signals.read_energy", "levels.M-gradients.write_energy"):
        moved = replaced(chip, path, 77.0)
        fp, bold = (
            evaluate("deep-mlp", moved, method, accounting=accounting, batch=4).energy
            for method in methods
        )
        found = costs.at(0, {f"hardware.{path}": 77.0})
        assert found.percents == (100.0, pytest.approx(100 * bold / fp, rel=1e-12))
    found = costs.at(0, {"hardware.levels.M-weights.capacity": "1 bit"})
    assert found.percents == (None, None) and "does not fit apart" in found.reasons[0]


def test_an_explanation_names_the_memory_of_each_tensor(chip):
    text = explanation(evaluate("deep-mlp", chip, "fp", accounting="full"), "fc2")
    assert "| 2 | M-gradients | gradients | unlimited |" in text
    assert "F read from M-weights" in text and "dF written to M-gradients" in text
    assert "dO read from M-signals" in text and "m(F) (moment) written to M-state" in text
