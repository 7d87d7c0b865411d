"""An explanation adds up: its text is read back and done again on a pocket calculator."""

import dataclasses
import math
import re
import shlex
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pytest

from hwmodel.errors import HwmodelError
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate
from hwmodel.model.ledger import Ledger
from hwmodel.model.report import COLUMNS, Report
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.method import Method
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import (
    Array,
    Bound,
    Memories,
    Memory,
    MemoryLevel,
    SearchOptions,
    memories,
)
from hwmodel.vary.paths import replaced_all
from hwmodel.views.explain.explanation import explanation
from hwmodel.views.explain.lines import TIMES, computed, energy, exact
from hwmodel.views.loop_nest import loop_nest
from hwmodel.work.problem import Extents, Problem, Widths, Window
from hwmodel.work.tensor import Factor, Pass
from tests.specs import ALIKE, chip, written
from tests.test_architecture import PACKAGE
from tests.test_docs import blocks
from tests.traces import trace

SPAN = re.compile(r"`([^`]+)`")
ROW = re.compile(
    r"- \*\*row (\d+)\*\* (.*?): ([^`]*: )?`([^`]+)`; energy `([^`]+)` (pJ|MAC \(\w+\))( \[.*\])?"
)


def plain(number):
    return Fraction(number.replace(",", ""))


def half_unit(number, digits):
    """Half a unit of the last of so many significant digits."""
    value = Decimal(number.replace(",", ""))
    return Fraction(Decimal(5).scaleb(value.adjusted() - digits)) if value else Fraction(0)


def both_sides(span):
    """What a computation comes to, done on its printed numbers, and what it says it comes to."""
    left, _, right = span.rpartition(" = ")
    left = left or right
    rounded = left.startswith("round(")
    terms = left.removeprefix("round(").removesuffix(")" * rounded).split(" + ")
    return sum(math.prod(map(plain, term.split(" * "))) for term in terms), right, rounded


def counts(span):
    """A count, which must come out exactly, or rounded where it says so."""
    found, right, rounded = both_sides(span)
    ratio = "." in span and not rounded  # of the source's table, in floating-point
    slack = Fraction(1, 2) * rounded + abs(found) / 10**12 * ratio
    assert abs(found - plain(right)) <= slack, span
    return right


def constant(span):
    found, right, _ = both_sides(span)
    assert abs(found - plain(right)) <= abs(found) / 10**10, span
    return right


def worth(span):
    found, right, _ = both_sides(span)
    assert abs(found - plain(right)) <= half_unit(right, 6) + abs(found) / 10**11, span
    return right


def sum_of_rounded(span):
    found, right, _ = both_sides(span)
    parts = span.rpartition(" = ")[0].split(" + ")
    slack = half_unit(right, 6) + sum(half_unit(part, 6) for part in parts if part)
    assert abs(found - plain(right)) <= slack, span
    return right


def parts(markdown):
    """Headings, each with its table rows and list items; multiplied as on a keyboard."""
    found = []
    for line in markdown.replace(TIMES, "*").splitlines():
        if line.startswith("#"):
            found.append((line.lstrip("# "), [], []))
        elif line.startswith("|"):
            found[-1][1].append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif line.startswith("- "):
            found[-1][2].append(line)
    return found


@cache
def report(network, hardware, method, accounting, batch=1, mode="training"):
    return evaluate(network, hardware, method, accounting=accounting, batch=batch, mode=mode)


def rows_of(found, layer, pass_=None):
    """The rows of the report's table, by column."""
    rows = [dict(zip(COLUMNS, record, strict=True)) for record in found.records]
    return [row for row in rows if row["layer"] == layer and pass_ in (None, row["pass"])]


def check(found, layer, pass_=None):
    """Every computation done again; every row reached from factors and prices that are printed."""
    whole = parts(explanation(found, layer, pass_))
    # What other tiles would cost is of another search: tests/test_optimal_tiles.py.
    sections = [part for part in whole if part[0] != "With optimal tiles"]
    every = dict(enumerate(rows_of(found, layer), 1))  # numbered, whichever are explained
    rows = {n: row for n, row in every.items() if pass_ in (None, row["pass"])}
    reached, prices = {}, {}
    for title, table, lines in sections:
        if title == "What memories cost":
            for line in table[2:]:
                prices |= {("read", line[1]): line[4], ("write", line[1]): line[5]}
        for line in lines:
            spans = SPAN.findall(line)
            if title == "What operations cost":
                prices["operate", line.split(":")[0].removeprefix("- one ")] = constant(*spans)
            elif match := ROW.fullmatch(line):
                number, name, _, counted, paid, unit, _ = match.groups()
                assert int(number) not in reached and unit == found.unit
                row = rows[int(number)]
                reached[int(number)] = (paid, row)
                the_row(row, name, counts(counted), paid, prices)
            elif title == "Sum":
                sum_of_rounded(*spans)
            else:
                assert [counts(span) for span in spans]
    assert sorted(reached) == [*rows]
    (*_, (_, _, sums)) = [part for part in sections if part[0] == "Sum"]
    the_sums(found, layer, reached, sums)
    return sections


def the_row(row, name, elements, paid, prices):
    """One row: the elements, bits and price printed are those of the table and of its price."""
    operated = row["direction"] == "operate"
    what = f"{row['bits']}-bit {row['operation']}" if operated else row["memory"]
    if row["operation"] == "int-mul":  # the other operand's bits stand before it
        what = re.fullmatch(rf"(\d+ x {what}) for .*", name)[1]
    if match := re.fullmatch(r"(e\dm\d x e\dm\d mac) for .*", name):
        what = match[1]
    tensor = row["tensor"] + ("" if row["role"] == "operand" else f" ({row['role']})")
    done = {"read": f"{tensor} read from {what}", "write": f"{tensor} written to {what}"}
    assert name == done.get(row["direction"], f"{what} for {tensor}")
    worth(paid)
    left, _, right = paid.rpartition(" = ")
    first, *bits, price = left.split(" * ")
    assert elements == f"{row['elements']:,}"
    whole = isinstance(row["bits"], int)  # else with scales of blocks, rounded up once
    assert first == (elements if whole else f"{row['count']:,}")
    assert bits == ([] if operated or not whole else [str(row["bits"])])
    assert price == prices[row["direction"], what]
    assert abs(plain(price) - Fraction(row["price"])) <= half_unit(price, 12)
    assert abs(plain(right) - Fraction(row["energy"])) <= half_unit(right, 6)


def the_sums(found, layer, reached, lines):
    """The passes are the sums of their rows, the layer of its passes, and that is the report's."""
    whole = 0.0
    *by_pass, last = lines
    there = {row["pass"] for _, row in reached.values()}
    passes = [pass_ for pass_ in Pass if pass_ in there]
    for pass_, line in zip(passes, by_pass, strict=True):
        assert line.startswith(f"- energy of {pass_}: ")
        here = [(paid, row) for _, (paid, row) in sorted(reached.items()) if row["pass"] == pass_]
        (span,) = SPAN.findall(line)
        added = span.rpartition(" = ")[0] or span
        assert added.split(" + ") == [paid.rpartition(" = ")[2] for paid, _ in here]
        exactly = math.fsum(
            math.prod(int(plain(n)) for n in paid.rpartition(" = ")[0].split(" * ")[:-1])
            * row["price"]
            for paid, row in here
        )
        reported = found.energies("layer", "pass")[layer, pass_]
        assert math.isclose(exactly, reported, rel_tol=1e-12)
        assert abs(plain(span.rpartition(" = ")[2]) - Fraction(reported)) <= half_unit(
            span.rpartition(" = ")[2], 6
        )
        whole += reported
    (span,) = SPAN.findall(last)
    result = span.rpartition(" = ")[2]
    assert abs(plain(result) - Fraction(whole)) <= half_unit(result, 6)
    assert last.startswith("- energy of the layer: ") and last.endswith(f" {found.unit}")


CASES = {
    "first convolution": ("vgg-small", "ascend", "fp", "paper", "conv1"),
    "middle convolution": ("vgg-small", "ascend", "bold", "full", "conv3"),
    "middle convolution, paper": ("vgg-small", "v100", "bold", "paper", "conv3"),
    "words for pre-activations": ("vgg-small", "v100", "xnor-net", "paper", "conv4"),
    "strided convolution": ("resnet18", "ascend", "bold", "full", "layer2.0.conv1"),
    "strided convolution, paper": ("resnet18", "v100", "binaryconnect", "paper", "layer2.0.conv1"),
    "strided shortcut, paper": ("resnet18", "ascend", "fp", "paper", "layer3.0.shortcut"),
    "depthwise convolution": ("mobilenet-v1", "v100", "fp", "paper", "depthwise2"),
    "grouped convolution": ("alexnet-grouped", "ascend", "binarynet", "paper", "conv2"),
    "linear, latent weights": ("vgg-small", "v100", "binaryconnect", "full", "fc2"),
    "attention scores": ("bert-base", "ascend", "fp", "full", "layer0.scores"),
    "softmax": ("bert-base", "ascend", "fp", "full", "layer0.softmax"),
    "embedding": ("bert-base", "ascend", "fp", "full", "embedding.token"),
    "batch norm": ("resnet18", "ascend", "fp", "full", "layer2.0.conv1.bn"),
    "pooling": ("resnet18", "ascend", "bold", "full", "maxpool"),
    "addition": ("resnet18", "ascend", "bold", "full", "layer2.0.sum"),
    "activation, fork": ("resnet18", "ascend", "fp", "full", "layer2.0.act"),
    "activation, kept sum": ("resnet18", "ascend", "bold", "full", "layer2.0.act"),
    "integer products": ("vgg-small", "ascend", "int8", "full", "conv2"),
}


@pytest.mark.parametrize("case", CASES)
def test_layers_of_every_kind_add_up_to_the_rows_of_the_table(case):
    *asked, layer = CASES[case]
    sections = check(report(*asked), layer)
    assert sum(len(lines) for _, _, lines in sections) > 10


@pytest.mark.parametrize("accounting", ["paper", "full"])
@pytest.mark.parametrize("method", sorted(bundled(Method).keys() - ALIKE))
def test_every_layer_of_a_network_adds_up_under_every_bundled_method(method, accounting):
    wider = replaced_all(load(Accounting, accounting), {"prices.narrow_floats": "expanded"})
    mode = "training" if load(Method, method).trains else "inference"
    found = evaluate("conv-small", "ascend", method, accounting=wider, batch=3, mode=mode)
    own = [layer for (layer,) in found.energies("layer") if ":" not in layer]
    assert own
    for layer in own:
        check(found, layer)


def test_a_teacher_s_layers_add_up_to_what_it_costs():
    full = load(Accounting, "full")
    paid = full.model_copy(update={"extras": full.extras.model_copy(update={"teacher": True})})
    found = evaluate("vgg-small", "ascend", "bnext", accounting=paid)
    layers = [layer for (layer,) in found.energies("layer") if layer.startswith("resnet34:")]
    assert len(layers) > 100
    for layer in layers[::16]:
        titles = [title for title, _, _ in check(found, layer)]
        assert not {"Pass backward_input", "Pass backward_weight", "Weight update"} & {*titles}
    text = explanation(found, "resnet34:conv1")
    assert "A layer of kind conv at position first; shapes are (C, H, W)" in text
    assert "fp, layers rule 1" in text  # the teacher's method, not the one that learns from it
    with pytest.raises(HwmodelError, match="vgg-small has no layer 'resnet34:conv0'"):
        explanation(found, "resnet34:conv0")


def test_signals_that_are_added_up_in_parts_of_a_tensor_add_up(tmp_path):
    """Two layers take 8 x 6 x 8 and 8 x 2 x 8 places, three take 8 x 2 x 8 (test_full.py)."""
    path = written(tmp_path, """
version: 1
name: parts
title: parts
input: [3, 8, 8]
layers:
  - {name: conv, kind: conv, channels: 16, kernel: 3, padding: 1}
  - {name: act, kind: activation}
  - {name: whole, kind: activation}
  - {name: channels, kind: slice, inputs: [act], start: 0, stop: 8}
  - {name: rows, kind: slice, inputs: [act], axis: rows, start: 6, stop: 8}
  - {name: a, kind: global-average-pool, inputs: [whole]}
  - {name: b, kind: global-average-pool, inputs: [channels]}
  - {name: c, kind: global-average-pool, inputs: [rows]}
  - {name: all, kind: concat, inputs: [a, b, c]}
  - {name: fc, kind: linear, features: 10}
""")  # fmt: skip
    sections = check(report(path, "ascend", "bold", "full", 2), "act")
    sums = {
        SPAN.findall(line)[0]
        for _, _, lines in sections
        for line in lines
        if "dO2 (fork)" in line or "dO3 (fork)" in line
    }
    assert sums == {
        "2 * 2 * 512 = 2,048", "2 * 512 = 1,024", "2 * 512 * 31 = 31,744",
        "3 * 2 * 128 = 768", "2 * 128 = 256", "2 * 2 * 128 * 31 = 15,872",
    }  # fmt: skip


def test_a_reduction_that_is_cut_pays_for_its_unfinished_sums():
    sections = check(report("vgg-small", "ascend", "fp", "paper", 1000), "conv6", "backward_weight")
    lines = [line for _, _, lines in sections for line in lines]
    assert any("dF (unfinished sum) read from" in line for line in lines)
    assert any("dF (unfinished sum) written to" in line for line in lines)
    assert any("sums of an output arrive" in line for line in lines)


def test_inference_has_one_pass_and_batches_count():
    found = report("vgg-small", "ascend", "bold", "full", 3, "inference")
    titles = [title for title, _, _ in check(found, "conv2")]
    assert [title for title in titles if title.startswith("Pass")] == ["Pass forward"]


NET = """\
version: 1
name: odd
title: What others have not
input: [2, 7, 5]
layers:
  - {name: conv1, kind: conv, channels: 4, kernel: [3, 2], stride: [2, 1], padding: [1, 0, 2, 1], bias: true}
  - {name: act1, kind: activation, function: prelu}
  - {name: up, kind: conv-transpose, channels: 2, kernel: 3, stride: 2, padding: 1}
  - {name: wide, kind: conv, channels: 2, kernel: 3, dilation: 2, padding: 2, groups: 2}
  - {name: again, kind: conv, channels: 2, kernel: 3, dilation: 2, padding: 2, groups: 2, shares: wide}
  - {name: joined, kind: concat, inputs: [wide, again]}
  - {name: shift, kind: source, shape: [4, 1, 1], learned: true}
  - {name: shifted, kind: add, inputs: [joined, shift]}
  - {name: fc, kind: linear, features: 5, bias: true}
"""
CHIP = """\
version: 1
name: narrow
title: A chip with little room, dearer to write
energy_unit: pJ
sources: {me: "me, 2024"}
levels:
  - {level: 2, name: DRAM, capacity: unlimited, read_energy: 50 pJ/B, write_energy: 70 pJ/B, source: me}
  - {level: 1, name: SRAM, capacity: 500 B, access_energy: 5 pJ/B, source: me}
  - level: 0
    name: RF
    split:
      - {name: RI, holds: [I, O], capacity: 60 B, access_energy: 0.5 pJ/B, source: me}
      - {name: RF0, holds: [F], capacity: 50 B, efficiency: 3.3 GB/s/mW, source: me}
arithmetic:
  - {operation: mac, bits: 32, efficiency: 1.7 TOPS/W, operations: 2, source: me}
  - {operation: logic, bits: 1, energy: 3 fJ, source: me}
"""
MIDDLE = "  - {level: 1, name: SRAM, capacity: 500 B, access_energy: 5 pJ/B, source: me}\n"
TWO_LEVELS = (MIDDLE, ""), ("level: 2", "level: 1")  # which are searched sooner
GREEDY = {
    "counting.search": "level-by-level", "counting.weight_gradient": "signal-as-filters",
    "counting.stationary": "filter", "extras.optimizer": "sgd",
}  # fmt: skip
HELD = {"counting.stationary": "filter", "counting.transfers": "upper"}
CHOICES = {
    "paper": ("fp", "paper", {}, ()),
    "paper, Boolean": ("bold", "paper", {}, ()),
    "exact but greedy": ("bold", "full", GREEDY, ()),
    "proved": ("binaryconnect", "full", {}, TWO_LEVELS),
    "filters held": ("fp", "full", HELD | {"widths.partial_sum_bits": 24}, TWO_LEVELS),
    "padding fetched": (
        "bold", "full",
        {"counting.rows": "bounding", "counting.padding": "counted", "extras.optimizer": "momentum"},
        TWO_LEVELS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES)
def test_odd_layers_on_a_narrow_chip_add_up_under_other_choices(tmp_path, choice):
    """Cut reductions, ragged tiles, split levels, groups, biases, shared weights, no products."""
    method, preset, changed, levels = CHOICES[choice]
    narrow = written(tmp_path, CHIP, *levels, name="chip.yaml")
    accounting = replaced_all(load(Accounting, preset), changed)
    network = load_network(written(tmp_path, NET))
    found = evaluate(network, narrow, method, accounting=accounting, batch=2)
    counted = {layer for (layer,) in found.energies("layer")}
    assert "fc" in counted  # the last product, at least
    for layer in network.layers:
        if layer.name in counted:
            check(found, layer.name)


def test_a_pass_has_as_many_macs_as_the_layer_whatever_zeros_its_loops_meet(tmp_path):
    """Each of 4 x 5 places of 4 channels meets 2 x 3 x 3 weights of `up`, in 2 images."""
    narrow = written(tmp_path, CHIP, *TWO_LEVELS, name="chip.yaml")
    found = evaluate(
        load_network(written(tmp_path, NET)), narrow, "fp", batch=2, accounting="paper"
    )
    operated = [row for row in rows_of(found, "up") if row["direction"] == "operate"]
    assert [row["pass"] for row in operated] == ["forward", "backward_input", "backward_weight"]
    assert {row["elements"] for row in operated} == {2 * 4 * 5 * 4 * 2 * 3 * 3}


@pytest.mark.parametrize(
    ("rests", "order"),
    [
        ("F", ["C", "HF", "M", "N", "HO"]),
        ("I", ["C", "HF", "N", "HO", "M"]),
        ("O", ["M", "N", "HO", "C", "HF"]),
    ],
)
def test_cycles_are_in_the_order_in_which_an_operand_rests(rests, order):
    """What rests in the MACs stays while the loops that do not index it pass: they are inside."""
    extent = Extents(4, 16, 16, 8, 1, 3, 1)
    problem = Problem(extent, Window(10), Window(1), Widths(8, 8, 8), 1)
    free = Memory("free", ("I", "F", "O"), None, 1.0, 1.0)
    levels = MemoryLevel("L1", (free,)), MemoryLevel("L0", (free,))
    array = Array((Bound(("M",), 8), Bound(("C",), 8)), rests)
    cycle = Extents(1, 8, 8, 1, 1, 1, 1)
    options = SearchOptions.of(load(Accounting, "full"), Pass.FORWARD)
    mapping = Mapping((extent,), ("F",), (extent,), cycle)
    nest = loop_nest(problem, mapping, Memories(levels, array), options)
    lines = [line.split()[1] for line in nest.splitlines() if line.split()[0] == "for"]
    assert lines == order and f"{rests} rests in the MACs" in nest


def test_the_loop_nest_has_a_line_for_every_loop_that_is_cut():
    """Worked out by hand: 8 rows under 3 taps are 10 rows of I, of which 4 channels of 16 bit."""
    whole, tile = Extents(1, 6, 4, 8, 8, 3, 3), Extents(1, 2, 4, 8, 8, 3, 3)
    window = Window(10)
    problem = Problem(whole, window, window, Widths(16, 8, 32), groups=5)
    mapping = Mapping((tile, tile._replace(M=1, HO=4)), ("F", "I"))
    hardware = chip((None, 9, 9), (32_000, 3, 3), (16_000, 1, 1))
    options = SearchOptions.of(load(Accounting, "full"), Pass.FORWARD)
    nest = loop_nest(problem, mapping, memories(hardware), options)
    # 16 * 4 * 100 + 8 * 2 * 4 * 9 = 6,976 of 32,000 bit; 16 * 4 * 60 + 8 * 36 = 4,128 of 16,000
    assert nest.splitlines() == [
        "L0: all of N=1 M=6 C=4 HO=8 WO=8 HF=3 WF=3, 5 groups one by one",
        "  for M in blocks of 2:",
        "    L1: N=1 M=2 C=4 HO=8 WO=8 HF=3 WF=3  # F held; L1 21.8 % full",
        "      for HO in blocks of 4:",
        "        for M in blocks of 1:",
        "          L2: N=1 M=1 C=4 HO=4 WO=8 HF=3 WF=3  # I held; L2 25.8 % full",
    ]


def test_widths_are_traced_to_the_rules_that_set_them():
    found = report("vgg-small", "ascend", "bold", "full")
    first, middle = (explanation(found, layer, "forward") for layer in ("conv1", "conv2"))
    assert "bold, layers rule 1 (position first or last), which takes over fp, layers rule" in first
    assert "| 32 | 32 | the network's input: a full-precision word |" in first
    assert (
        "| F | 147,456 weights | 1 | 16 | bold, layers rule 3: weights 1, weight_signal "
        "boolean_vote (accounting full: 16), inputs 1 | bold: paper |"
    ) in middle
    assert (
        "| I, from act1 | (128, 32, 32) | 1 | 16 | bold, tensors rule 6 (kind activation): bits 1, "
        "signal boolean_signal (accounting full: 16) | bold: paper |"
    ) in middle


def test_streams_say_what_they_pass_over_and_how_wide_they_add(tmp_path):
    """A threshold on the way back: one 16-bit addition, 2 * 16 - 1 of logic, for each element."""
    found = report("vgg-small", "ascend", "bold", "full")
    text = explanation(found, "act1").replace(TIMES, "*")
    assert "1-bit logic for O: C * H * W * (2b - 1): `128 * 32 * 32 * 31 = 4,063,232`" in text
    assert "2b - 1: logic operations of an adder of b = 16 bit, the width of dI" in text
    narrow = written(tmp_path, CHIP, *TWO_LEVELS, name="chip.yaml")
    odd = evaluate(written(tmp_path, NET), narrow, "fp", accounting="full")
    text = explanation(odd, "conv1", "update").replace(TIMES, "*")
    assert "dF read from DRAM: weights: `48`" in text  # 4 filters of 2 * 3 * 2
    assert "dP read from DRAM: parameters: `4`" in text
    assert "[parameters: biases, scales, shifts, tables]" in text
    assert "32-bit mac for F: operations for each * weights: `6 * 48 = 288`" in text


def test_what_a_trace_measured_is_what_is_explained():
    traced = evaluate("conv-small", "ascend", "bold", accounting="full", batch=4, trace=trace())
    layer = next(e.layer for e in traced.ledger.entries if e.role == "accumulator")
    sections = check(traced, layer)
    update = [line for title, _, lines in sections if title == "Weight update" for line in lines]
    flips = [line for line in update if "flip rate" in line]
    assert len(flips) == 4  # memories
    assert all("`round(0.25 *" in line for line in flips)
    assert "flip rate: as traces measured" in flips[0]
    assert any("[accumulator_bits as traces measured]" in line for line in update)


def test_numbers_worked_out_by_hand():
    """conv2 of VGG-small: 128 to 128 channels, 32 x 32, 3 x 3, padding 1; L3 at 1/(8 0.02) pJ/bit."""
    found = report("vgg-small", "ascend", "bold", "paper")
    text = explanation(found, "conv2", "forward").replace(TIMES, "*")
    for line in (
        "128 * 128 * 32 * 32 * 3 * 3 = 150,994,944",  # 128 * 128 * 1024 * 9
        "0.001 * 2 * 0.588235294118 = 0.00117647058824",  # 1 / 1.7
        "128 * 34 * 34 = 147,968",  # 128 * 1156
        "147,968 * 1 * 6.25 = 924,800",
        "128 * 96 * 96 = 1,179,648",  # 128 * 9216, each MAC by its own
        "150,994,944 * 0.00117647058824 = 177,641",
    ):
        assert f"`{line}`" in text
    assert "- rows(2): HI(2): `34` [HI(2): rows under 32 outputs and 3 taps" in text


def test_pieces_and_rows_worked_out_by_hand():
    """A loop of 16 cut by 6; under padding 1 its pieces load 0 to 6, 5 to 12 and 11 to 15 of I."""
    accounting = replaced_all(load(Accounting, "full"), HELD)
    found = evaluate("vgg-small", "ascend", "bold", accounting=accounting)
    text = explanation(found, "conv3", "backward_input").replace(TIMES, "*")
    assert "for WO in blocks of 6:" in text
    assert "- #WO(0): pieces of 6 + pieces of 4: `2 + 1 = 3`" in text
    assert "- columns(0): blocks * columns of each: `1 * 5 + 1 * 7 + 1 * 8 = 20`" in text
    assert "L0-A is taken up, b_I * C * rows * columns: `16 * 256 * 16 * 8 = 524,288` bit" in text
    assert "F read from L0-B: M * C * HF * WF * #WO(0): `128 * 256 * 3 * 3 * 3 = 884,736`" in text
    assert "[#WO(0): WO = 16 cut by 6]" in text


def test_layers_of_which_nothing_is_counted_say_so():
    found = report("resnet18", "v100", "binaryconnect", "paper")
    for layer, word in (("maxpool", "kind max-pool"), ("conv1.bn", "Nothing is counted")):
        text = explanation(found, layer)
        assert word in text
        assert text.endswith("- energy of the layer: `0` MAC (fp32)\n")
    assert "Words for batch norm and scaling stand with the layer whose sums they take." in text
    bold = report("resnet18", "ascend", "bold", "full")
    assert "does without layers of kind batch-norm" in explanation(bold, "conv1.bn")


def changed(found, **values):
    """The report with one entry of conv2 that is not as it was."""
    entries = list(found.ledger.entries)
    place = next(i for i, e in enumerate(entries) if e.layer == "conv2" and e.elements > 1)
    entries[place] = dataclasses.replace(entries[place], **values)
    return dataclasses.replace(found, ledger=Ledger(tuple(entries)))


def test_a_report_that_says_otherwise_is_refused(monkeypatch):
    found = report("vgg-small", "ascend", "bold", "paper")
    with pytest.raises(AssertionError, match="but the report has 5"):
        explanation(changed(found, elements=5), "conv2")
    with pytest.raises(AssertionError, match=r"7 is 7\.0, but the report has"):
        explanation(changed(found, factors=(Factor("N", 7),)), "conv2")
    energies = {
        k: math.nextafter(v, 0) * (1 - 1e-11) for k, v in found.energies("layer", "pass").items()
    }
    monkeypatch.setattr(Report, "energies", lambda *_: energies)
    with pytest.raises(AssertionError, match="the entries come to"):
        explanation(found, "conv2")


@pytest.mark.parametrize(
    ("factors", "value", "show"),
    [((2, 3), 7, None), ((2, 3.5), 7.0000001, energy), ((0.5, 5), 4, None), ((12,), 13, None),
     ((0.3333,), 1 / 3, exact), ((0.1, 36), 3.61, None)],
)  # fmt: skip
def test_a_computation_that_does_not_come_out_is_refused(factors, value, show):
    with pytest.raises(AssertionError, match="the report has"):
        computed([[Factor("x", number) for number in factors]], value, *([show] if show else []))


def test_a_computation_leaves_out_what_is_1_but_not_all_of_it():
    N, C = Factor("N", 1), Factor("C", 64)
    assert computed([[N, C]], 64) == "C: `64`"
    assert computed([[N, N]], 1) == "N: `1`"
    assert computed([[N, C], [C]], 128) == f"N {TIMES} C + C: `1 {TIMES} 64 + 64 = 128`"
    assert computed([[Factor("r", 0.1), C]], 6) == f"r {TIMES} C: `round(0.1 {TIMES} 64) = 6`"


def test_a_wrong_name_is_one_message(hwmodel, tmp_path):
    asked = ("explain", "vgg-small", "--hardware", "ascend", "--method", "bold")
    asked = (*asked, "--accounting", "paper")
    for words, message in (
        (("--layer", "conv22"), "vgg-small has no layer 'conv22': did you mean 'conv2'?"),
        (("--layer", "xyz"), "vgg-small has no layer 'xyz': `hwmodel network show vgg-small` lists its 28 layers"),
        (("--layer", "conv2", "--pass", "back"), "--pass 'back': known: backward-input, backward-weight, forward, recompute, update"),
        (("--layer", "conv2", "--pass", "update"), "conv2 has no work in pass update, only in forward, backward_input, backward_weight"),
        (("--layer", "conv2", "--output", "x.yaml"), "--output x.yaml: an explanation is written to a .md file"),
    ):  # fmt: skip
        assert hwmodel(*asked, *words) == (2, "", f"hwmodel: {message}\n")
    assert not list(tmp_path.iterdir())


def test_the_screen_a_pipe_and_a_file_have_the_same(hwmodel, tmp_path, monkeypatch):
    asked = ("explain", "vgg-small", "--layer", "conv1", "--hardware", "ascend", "--method", "fp")
    asked = (*asked, "--accounting", "paper")
    code, piped, _ = hwmodel(*asked)
    assert code == 0
    assert piped.startswith("# conv1 of vgg-small on ascend under fp, accounting paper")
    assert hwmodel(*asked)[1] == piped
    code, out, err = hwmodel(*asked, "--output", "conv1.md")
    assert (code, out, err) == (0, "", "wrote conv1.md\n")
    assert (tmp_path / "conv1.md").read_text(encoding="utf-8") == piped
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = hwmodel(*asked)[1]
    assert "\x1b[" in shown
    assert "What memories cost" in shown
    assert "## " not in shown


def test_the_layer_of_nothing_is_refused():
    found = report("vgg-small", "ascend", "bold", "paper")
    with pytest.raises(HwmodelError, match="no layer"):
        explanation(found, "")


def test_the_excerpt_in_the_documents_is_what_is_printed(hwmodel):
    text = (PACKAGE.parent / "docs" / "explain.md").read_text(encoding="utf-8")
    command = "".join(blocks(text, "sh")).splitlines()[0]
    (excerpt,) = blocks(text, "markdown")
    _, printed, _ = hwmodel(*shlex.split(command)[1:])
    lines = iter(printed.splitlines())
    assert len(excerpt.splitlines()) > 10
    for line in excerpt.splitlines():
        assert line in ("", "...") or line in lines, line  # in this order


def test_a_pass_is_called_as_tables_call_it_or_as_options_are_written(hwmodel):
    asked = ("explain", "conv-small", "--layer", "fc4", "--hardware", "ascend", "--method", "bold")
    first, second = (hwmodel(*asked, "--pass", p)[:2] for p in ("backward_input", "backward-input"))
    assert first == second and first[0] == 0


def test_a_row_has_one_number_whichever_passes_are_explained():
    found = report("conv-small", "ascend", "bold", "full")

    def rows(pass_):
        text = explanation(found, "conv2", pass_)
        return re.findall(r"\*\*row (\d+)\*\* (.*?): ", text)

    whole = rows(None)
    assert sorted(int(number) for number, _ in whole) == [*range(1, len(whole) + 1)]
    parts = [rows(one) for one in ("forward", "backward_input", "backward_weight", "update")]
    assert sorted(row for part in parts for row in part) == sorted(whole)
    assert all(parts)
