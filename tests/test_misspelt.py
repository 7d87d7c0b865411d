"""Every field of a file misspelt, one by one and at every depth: the message has line and field."""

import re

import pytest

from hwmodel.errors import HwmodelError
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method

METHOD = """\
version: 1
name: mine
title: Mine
colour: "#112233"
sources: {own: me}
optimizer: adam
formats:
  tiny: {bits: 6, float: e2m3, block: 32, scale_bits: 8, source: own}
widths:
  signal: {bits: 8, rounding: nearest}
layers:
  - {where: {position: [first, last]}, precision: fp, source: own}
  - weights: 1
    weight_signal: full_precision
    arithmetic: {forward: logic, backward_input: add, backward_weight: add}
    update: optimizer
    source: own
tensors:
  - {where: {kind: [activation]}, bits: 1, signal: full_precision, source: own}
  - {bits: full_precision, signal: full_precision, source: own}
extra_work:
  - {what: scaling, where: {kind: [conv, linear]}, source: own}
"""
CHIP = """\
version: 1
name: chip
title: A chip
energy_unit: pJ
sources: {own: me}
clock: 100 MHz
levels:
  - {level: 2, name: DRAM, holds: [I, F, O], capacity: unlimited, access_energy: 50 pJ/B, bandwidth: 1 GB/s, source: own}
  - {level: 1, name: SRAM, capacity: 64 KiB, energy: {scale: sram, at: {8 KiB: 10 pJ/64bit, 1 MiB: 100 pJ/64bit}}, source: own}
  - level: 0
    name: RF
    fanout: {positions: 4}
    split:
      - {name: A, holds: [I], capacity: 4 KiB, access_energy: 0.1 pJ/B, source: own}
      - {name: B, holds: [F], capacity: 4 KiB, access_energy: 0.1 pJ/B, source: own}
      - {name: C, holds: [O], capacity: 8 KiB, read_energy: 0.1 pJ/B, write_energy: 0.2 pJ/B, source: own}
arithmetic:
  - {operation: mac, bits: 32, energy: 4.6 pJ, source: own}
voltage: {priced: 0.9 V, run: 0.65 V, source: own}
"""
NETWORK = """\
version: 1
name: net
title: A network
input: [3, 8, 8]
layers:
  - {name: c, kind: conv, channels: 8, kernel: 3, padding: 1, stride: 1, groups: 1, dilation: 1}
  - {name: a, kind: activation, function: relu, inputs: [c]}
  - {name: p, kind: max-pool, kernel: 2}
  - {name: f, kind: linear, features: 10, bias: true}
"""
ACCOUNTING = """\
version: 1
name: own
title: Own
based_on: full
widths: {boolean_signal_bits: 16}
counting: {search: optimal, stationary: best}
extras: {optimizer: adam}
prices: {addition_price: relative}
"""
FILES = {Method: METHOD, Hardware: CHIP, Accounting: ACCOUNTING, None: NETWORK}
OF_USERS = {"own", "tiny"}  # names that a file makes itself


def misspelt():
    for kind, text in FILES.items():
        for found in re.finditer(r"(?<![\w.])([a-z_]{2,}):(?= |\n)", text):
            word = found[1]
            if word not in OF_USERS:
                wrong = f"{word}x" if len(word) < 5 else word[:2] + word[3:]
                line = 1 + text[: found.start()].count("\n")
                text_of = text[: found.start()] + wrong + text[found.end(1) :]
                yield pytest.param(kind, text_of, line, wrong, word, id=f"{line}-{wrong}")


def read(kind, path):
    return load(kind, path) if kind else load_network(str(path))


@pytest.mark.parametrize("kind", FILES)
def test_the_files_are_right(kind, tmp_path):
    (tmp_path / "x.yaml").write_text(FILES[kind])
    assert read(kind, tmp_path / "x.yaml").title


@pytest.mark.parametrize(("kind", "text", "line", "wrong", "meant"), list(misspelt()))
def test_a_field_misspelt_is_told_with_its_line_and_the_right_one(
    kind, text, line, wrong, meant, tmp_path
):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(HwmodelError) as caught:
        read(kind, path)
    said = str(caught.value)
    assert said.startswith(f"{path}:{line}: "), said
    told = rf"{wrong} is not a field; did you mean '{meant}'\?"
    assert re.search(rf"{told}|'{wrong}' is no loop or axis; did you mean '{meant}'\?", said), said


def test_all_names_that_are_wrong_are_told_together(refused, tmp_path):
    (tmp_path / "chip.yaml").write_text("version: 1\nname: c\n")
    words = ("--hardware", "chip.yaml,v10", "--methods", "fp,bol", "--accounting", "papr")
    said = refused("compare", "vgg-smal", *words)
    for word in ("'vgg-small'", "chip.yaml", "'v100'", "'bold'", "'paper'"):
        assert word in said
    assert said.count("did you mean") == 4
    alone = refused("compare", "vgg-small", "--methods", "bol")
    assert alone.count("did you mean") == 1
    layers = refused("compare", "vgg-small", "--freeze", "con1", "--checkpoint", "poo1")
    assert "freeze 'con1'" in layers and "checkpoint 'poo1'" in layers
    assert layers.count("did you mean") == 2
