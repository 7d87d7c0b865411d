"""What stays on the chip where a mask hides pairs, and where an operand passes a level by."""

from math import fsum

import pytest

from hwmodel import evaluate
from hwmodel.model.residency import plan
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.vary.paths import replaced_all
from hwmodel.work.tensor import Direction
from tests.specs import written

NETWORK = """version: 1
name: block
title: A block of attention
input: [8, 12, 1]
layers:
  - {name: q, kind: linear, features: 8, over: channels, inputs: [input]}
  - {name: k, kind: linear, features: 8, over: channels, inputs: [input]}
  - {name: v, kind: linear, features: 8, over: channels, inputs: [input]}
  - {name: sc, kind: attention-scores, heads: 1, MASK, inputs: [q, k]}
  - {name: sm, kind: activation, function: softmax}
  - {name: cx, kind: attention-context, heads: 1, MASK, inputs: [sm, v]}
"""
CHIP = """version: 1
name: small
title: Four levels
energy_unit: pJ
sources: {s: none}
levels:
  - {level: 3, name: M3, holds: [I, F, O], capacity: unlimited, access_energy: 20 pJ/bit, source: s}
  - {level: 2, name: M2, holds: [I, F, O], capacity: 1500 B, access_energy: 2 pJ/bit, source: s}
  - {level: 1, name: M1, holds: [I, F, O], capacity: 190 B, access_energy: 0.5 pJ/bit, source: s}
  - {level: 0, name: M0, holds: [I, F, O], capacity: 64 B, access_energy: 0.1 pJ/bit, source: s}
arithmetic:
  - {operation: mac, bits: 32, energy: 4.6 pJ, source: s}
  - {operation: mac, bits: 16, energy: 1.5 pJ, source: s}
"""
ARRAY = "array: {M: 2, C: 2, positions: 2, cycle_energy: 30 pJ}\nlevels:"


@pytest.mark.parametrize("mask", ["causal: true", "causal: true, window: 3"])
@pytest.mark.parametrize("attention", ["separate", "fused"])
def test_no_bound_is_above_what_is_found(mask, attention, tmp_path, monkeypatch):
    """The bound itself, before anything keeps it below the energy."""
    bounds = []
    bound = plan.lower_bound
    monkeypatch.setattr(plan, "lower_bound", lambda run: bounds.append(bound(run)) or bounds[-1])
    net = written(tmp_path, NETWORK.replace("MASK", mask), name="net.yaml")
    accounting = replaced_all(load(Accounting, "chip"), {"counting.attention": attention})
    for mode in ("inference", "training"):
        found = evaluate(
            net, written(tmp_path, CHIP), "fp16", accounting=accounting, mode=mode
        ).residency
        assert found is not None and bounds
        assert max(bounds) <= found.energy * (1 + 1e-12)
        bounds.clear()


@pytest.mark.parametrize(
    "changes",
    [("levels:", ARRAY), ("name: M1, holds: [I, F, O]", "name: M1, holds: [F, O]")],
    ids=["array", "passed by"],
)
@pytest.mark.parametrize("mask", ["causal: true, window: 2"])
def test_what_is_planned_is_what_the_ledger_has(changes, mask, tmp_path):
    net = written(tmp_path, NETWORK.replace("MASK", mask), name="net.yaml")
    chip = written(tmp_path, CHIP, changes)
    accounting = replaced_all(load(Accounting, "chip"), {"counting.attention": "separate"})
    report = evaluate(net, chip, "fp16", accounting=accounting, mode="inference")
    prices = report.prices
    entered = fsum(
        energy
        for (direction, _, kind), energy in report.ledger.by("direction", "memory", "operation")
        .energies(prices)
        .items()
        if direction != Direction.OPERATE or "cycle" in str(kind)
    )
    assert report.residency.energy == pytest.approx(entered, rel=1e-12)
