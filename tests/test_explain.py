"""An explanation adds up: its text is read back and done again on a pocket calculator."""

import dataclasses
import math
import re
import shlex
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pytest
from hwmodel.model.energy import COMPUTE

from hwmodel.errors import HwmodelError
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.tiling.accesses import Mapping
from hwmodel.vary.paths import replaced_all
from hwmodel.views.explain.explanation import explanation, explanation_markdown
from hwmodel.views.explain.steps import TIMES, computed, energy, exact
from hwmodel.views.loop_nest import loop_nest
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.specs import chip, written
from tests.test_architecture import PACKAGE
from tests.test_docs import blocks
from tests.test_measured import trace

STEP = re.compile(
    r"^- (?:\*\*row (?P<row>\d+)\*\* )?(?P<text>[^`]*)(?:`(?P<sum>[^`]+)`(?P<unit>.*))?$"
)
TOKEN = re.compile(r"\s*(?:([\d.]+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?)|([a-z]+|[-+*/(),]))")


FUNCTIONS = {"ceil": math.ceil, "floor": math.floor, "min": min, "max": max, "round": Fraction}


class Calculator:
    """Numbers, brackets, four operations and a few functions, in exact fractions."""

    def __init__(self, text):
        self.tokens = [match.groups() for match in TOKEN.finditer(text)]
        assert "".join(a or b for a, b in self.tokens) == text.replace(" ", ""), text

    def value(self):
        found = self.sum()
        assert not self.tokens
        return found

    def sum(self):
        total = self.product()
        while self.next_is("+", "-"):
            sign = 1 if self.take() == "+" else -1
            total += sign * self.product()
        return total

    def product(self):
        total = self.factor()
        while self.next_is("*", "/"):
            times = self.take() == "*"
            other = self.factor()
            total = total * other if times else total / other
        return total

    def factor(self):
        number, word = self.tokens.pop(0)
        if number:
            return Fraction(number.replace(",", ""))
        function = FUNCTIONS.get(word)
        if function:
            assert self.take() == "("
        else:
            assert word == "(", word
        inside = [self.sum()]
        while self.next_is(","):
            self.take()
            inside.append(self.sum())
        assert self.take() == ")"
        return Fraction(function(*inside)) if function else inside[0]

    def next_is(self, *words):
        return bool(self.tokens) and self.tokens[0][1] in words

    def take(self):
        return self.tokens.pop(0)[1]


def half_unit(number, digits):
    """Half a unit of the last of so many significant digits."""
    value = Decimal(number.replace(",", ""))
    return Fraction(Decimal(5).scaleb(value.adjusted() - digits)) if value else Fraction(0)


def plain(number):
    return Fraction(number.replace(",", ""))


def do_the_sum(step):
    """One line's computation, which must come to what is printed, to the printed precision."""
    left, right = step["sum"].rsplit(" = ", 1)
    found, printed = Calculator(left).value(), plain(right)
    if step["text"].startswith("energy of ") and not step["row"]:  # a sum of rounded numbers
        slack = half_unit(right, 6) + sum(half_unit(part, 6) for part in left.split(" + "))
    elif step["row"]:
        slack = half_unit(right, 6) * Fraction(1_000_001, 1_000_000)
    elif step["text"].startswith("one "):  # a price
        slack = abs(printed) * Fraction(1, 10**11)
    else:
        decimals = abs(printed) * Fraction(1, 10**12) if "." in right else 0
        slack = Fraction(1, 2) if "round(" in left else decimals
    assert abs(found - printed) <= slack, step["sum"]


def parts(markdown):
    """Headings with their table rows and steps; the sign of multiplication as on a keyboard."""
    found = []
    for line in markdown.replace(TIMES, "*").splitlines():
        if line.startswith("#"):
            found.append((line.lstrip("# "), [], []))
        elif line.startswith("|"):
            found[-1][1].append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif line.startswith("- "):
            found[-1][2].append(STEP.match(line).groupdict())
    return found


@cache
def report(network, hardware, method, accounting, batch=1, mode="training"):
    return evaluate(network, hardware, method, accounting=accounting, batch=batch, mode=mode)


def check(found, layer, phase=None):
    """Every computation done again; every row reached from counts and prices printed before."""
    explained = explanation(found, layer, phase)
    sections = parts(explanation_markdown(explained))
    rows = [r for r in found.rows if r.layer == layer and phase in (None, r.phase)]
    prices, reached = {}, {}
    for title, table, steps in sections:
        if title == "What memories cost":
            prices = {line[1]: line[4:6] for line in table[2:]}
        results = set()
        for step in steps:
            if step["sum"] and " = " in step["sum"]:
                do_the_sum(step)
            if title == "What operations cost":
                price = step["sum"].rsplit(" = ", 1)[-1]
                prices[price] = prices.get(price, "") + step["text"]
            elif step["row"]:
                number = int(step["row"])
                assert number not in reached
                reached[number] = step["sum"].rsplit(" = ", 1)[1]
                add_up(step, rows[number - 1], prices, results)
            elif step["sum"]:
                results.add(step["sum"].rsplit(" = ", 1)[-1])
    assert sorted(reached) == list(range(1, len(rows) + 1))
    the_table_is_the_reports(sections, rows, reached, found.unit)
    assert explained.energy == math.fsum(r.energy for r in rows)
    return sections


def add_up(step, row, prices, results):
    """The line of one row: counts that the lines before it arrived at, prices of its memory."""
    left, _ = step["sum"].rsplit(" = ", 1)
    accesses = bits = 0
    for term in left.split(" + "):
        count, *width, price = term.split(" * ")
        assert count in results
        accesses += plain(count)
        if row.level == COMPUTE:
            assert prices[price].startswith("one ")
            assert row.tensor in prices[price]
        else:
            assert price in prices[row.level]
            bits += plain(count) * plain(width[0])
    assert accesses == (row.operations if row.level == COMPUTE else row.accesses)
    assert bits == row.bits


def the_table_is_the_reports(sections, rows, reached, unit):
    (_, table, steps) = next(part for part in sections if part[0] == "Sum")
    assert len(table) - 2 == len(rows)
    for number, (cells, row) in enumerate(zip(table[2:], rows, strict=True), 1):
        counted = row.operations if row.level == COMPUTE else row.accesses
        assert cells[:6] == [str(number), *row[1:5], f"{counted:,}"]
        assert cells[6] == reached[number]
        assert abs(plain(cells[6]) - Fraction(row.energy)) <= half_unit(cells[6], 6)
    by_pass = {}
    for row in rows:
        by_pass.setdefault(row.phase, []).append(row.energy)
    *subtotals, total = steps
    for (phase, energies), step in zip(by_pass.items(), subtotals, strict=True):
        assert step["text"] == f"energy of {phase}: "
        last = step["sum"].rsplit(" = ", 1)[-1]
        assert abs(plain(last) - Fraction(math.fsum(energies))) <= half_unit(last, 6)
    last = total["sum"].rsplit(" = ", 1)[-1]
    whole = Fraction(math.fsum(row.energy for row in rows))
    assert abs(plain(last) - whole) <= half_unit(last, 6)
    assert total["unit"].strip() == unit


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
    assert sum(len(steps) for _, _, steps in sections) > 10


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
    sums = [
        step["sum"] for _, _, steps in sections for step in steps if "layers take" in step["text"]
    ]
    assert len(sums) == 6  # elements read and written, operations
    assert {"2 * 2 * 512 = 2,048", "2 * 512 = 1,024", "3 * 2 * 128 = 768", "2 * 128 = 256"} < set(
        sums
    )


def test_a_reduction_that_is_cut_pays_for_its_unfinished_sums():
    sections = check(report("vgg-small", "ascend", "fp", "paper", 1000), "conv6", "backward_weight")
    texts = [step["text"] for _, _, steps in sections for step in steps]
    assert any("unfinished sums read" in text for text in texts)
    assert any("as many as come back" in text for text in texts)


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
    "extras.optimizer": "sgd",
}  # fmt: skip
CHOICES = {
    "paper": ("fp", "paper", {}, ()),
    "paper, Boolean": ("bold", "paper", {}, ()),
    "exact but greedy": ("bold", "full", GREEDY, ()),
    "proved": ("binaryconnect", "full", {}, TWO_LEVELS),
    "anything held": (
        "fp", "full", {"counting.stationary": "best", "widths.partial_sum_bits": 24}, TWO_LEVELS
    ),
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
    counted = {row.layer for row in found.rows}
    assert "fc" in counted  # the last product, at least
    for layer in network.layers:
        if layer.name in counted:
            check(found, layer.name)


def test_the_loop_nest_has_a_line_for_every_loop_that_is_cut():
    """Worked out by hand: 8 rows under 3 taps are 10 rows of I, of which 4 channels of 16 bit."""
    whole, tile = Extents(1, 6, 4, 8, 8, 3, 3), Extents(1, 2, 4, 8, 8, 3, 3)
    window = Window(10)
    problem = Problem(whole, window, window, Widths(16, 8, 32), groups=5)
    mapping = Mapping((tile, tile._replace(M=1, HO=4)), ("F", "I"))
    hardware = chip((None, 9, 9), (32_000, 3, 3), (16_000, 1, 1))
    nest = loop_nest(problem, mapping, hardware, load(Accounting, "full"))
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
    first, middle = (
        explanation_markdown(explanation(found, layer, "forward")) for layer in ("conv1", "conv2")
    )
    assert "bold, layers rule 1 (position first or last), which takes over fp, layers rule" in first
    assert "| 32 | 32 | the network's input: a full-precision word |" in first
    assert (
        "| F | 147,456 weights | 1 | 16 | bold, layers rule 3: weights 1, weight_signal "
        "boolean_vote (accounting full: 16), inputs 1 | bold: paper |"
    ) in middle
    assert (
        "| I, from act1 | (128, 32, 32) | 1 | 16 | tensors rule 4 (kind activation): bits 1, "
        "signal boolean_signal (accounting full: 16) | bold: paper |"
    ) in middle


def test_streams_say_what_they_pass_over_and_how_wide_they_add(tmp_path):
    """A threshold on the way back: one 16-bit addition, 2 * 16 - 1 of logic, for each element."""
    found = report("vgg-small", "ascend", "bold", "full")
    text = explanation_markdown(explanation(found, "act1")).replace(TIMES, "*")
    assert "`1 * 1 * 128 * 32 * 32 * (2 * 16 - 1) = 4,063,232`" in text
    narrow = written(tmp_path, CHIP, *TWO_LEVELS, name="chip.yaml")
    odd = evaluate(written(tmp_path, NET), narrow, "fp", accounting="full")
    text = explanation_markdown(explanation(odd, "conv1", "update")).replace(TIMES, "*")
    assert (
        "dF, elements read, 32 bit each (as F above): weights: `48`" in text
    )  # 4 filters of 2 * 3 * 2
    assert "(accounting full, full_precision_bits): biases, scales, shifts and tables: `4`" in text
    assert "operations of kind mac, 6 for each element: 6 weights: `6 * 48 = 288`" in text


def test_what_a_trace_measured_is_what_is_explained():
    traced = evaluate("conv-small", "ascend", "bold", accounting="full", batch=4, trace=trace())
    layer = next(row.layer for row in traced.rows if row.tensor == "accumulator")
    sections = check(traced, layer)
    (flips,) = [
        step["sum"]
        for _, _, steps in sections
        for step in steps
        if step["text"].startswith("F, elements written") and "flip rate" in step["text"]
    ]
    assert flips.startswith("round(0.25 *")


def test_numbers_worked_out_by_hand():
    """conv2 of VGG-small: 128 to 128 channels, 32 x 32, 3 x 3, padding 1; L3 at 1/(8 0.02) pJ/bit."""
    found = report("vgg-small", "ascend", "bold", "paper")
    text = explanation_markdown(explanation(found, "conv2", "forward")).replace(TIMES, "*")
    for line in (
        "1 * 128 * 128 * 32 * 32 * 3 * 3 = 150,994,944",  # 128 * 128 * 1024 * 9
        "2 / 1.7 = 1.17647058824",
        "(32 - 1) * 1 + (3 - 1) * 1 + 1 = 34",
        "1 * 128 * 34 * 34 * 1 = 147,968",  # 128 * 1156
        "147,968 * 1 * 6.25 = 924,800",
        "1 * 128 * 96 * 96 * 1 = 1,179,648",  # 128 * 9216, each MAC by its own
        "150,994,944 * 0.00117647058824 = 177,641",
    ):
        assert f"`{line}`" in text


def test_layers_of_which_nothing_is_counted_say_so():
    found = report("resnet18", "v100", "binaryconnect", "paper")
    for layer, word in (("maxpool", "kind max-pool"), ("conv1.bn", "Nothing is counted")):
        text = explanation_markdown(explanation(found, layer))
        assert word in text
        assert explanation(found, layer).energy == 0
    assert "Words for batch norm and scaling stand with the layer whose sums they take." in text
    bold = report("resnet18", "ascend", "bold", "full")
    assert "does without layers of kind batch-norm" in explanation_markdown(
        explanation(bold, "conv1.bn")
    )


def test_a_report_that_says_otherwise_is_refused():
    found = report("vgg-small", "ascend", "bold", "paper")
    rows = [
        row._replace(energy=math.nextafter(row.energy, 0)) if row.layer == "conv2" else row
        for row in found.rows
    ]
    with pytest.raises(AssertionError, match="not those of the report"):
        explanation(dataclasses.replace(found, rows=tuple(rows)), "conv2")


@pytest.mark.parametrize(
    ("numbers", "value", "show"),
    [("2 * 3", 7, None), ("2 * 3.5", 7.0000001, energy), ("round(5 / 2)", 4, None),
     ("12 - 1,000", 0, None), ("min(1,000, 20)", 1, None), ("1 / 3", 0.3333, exact)],
)  # fmt: skip
def test_a_computation_that_does_not_come_out_is_refused(numbers, value, show):
    with pytest.raises(AssertionError, match="the report has"):
        computed("a count", "", numbers, value, **({"show": show} if show else {}))


def test_a_wrong_name_is_one_message(hwmodel, tmp_path):
    asked = ("explain", "vgg-small", "--hardware", "ascend", "--method", "bold")
    for words, message in (
        (("--layer", "conv22"), "vgg-small has no layer 'conv22': did you mean 'conv2'?"),
        (("--layer", "xyz"), "vgg-small has no layer 'xyz': `hwmodel network show vgg-small` lists its 28 layers"),
        (("--layer", "conv2", "--pass", "back"), "--pass 'back': known: backward-input, backward-weight, forward, update"),
        (("--layer", "conv2", "--pass", "update"), "conv2 has no work in pass update, only in forward, backward_input, backward_weight"),
        (("--layer", "conv2", "--output", "x.yaml"), "--output x.yaml: an explanation is written to a .md file"),
    ):  # fmt: skip
        assert hwmodel(*asked, *words) == (2, "", f"hwmodel: {message}\n")
    assert not list(tmp_path.iterdir())


def test_the_screen_a_pipe_and_a_file_have_the_same(hwmodel, tmp_path, monkeypatch):
    asked = ("explain", "vgg-small", "--layer", "conv1", "--hardware", "ascend", "--method", "fp")
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


def test_the_layer_of_a_teacher_or_of_nothing_is_refused():
    found = report("vgg-small", "ascend", "bold", "paper")
    with pytest.raises(HwmodelError, match="no layer"):
        explanation(found, "")


def test_the_excerpt_in_the_documents_is_what_is_printed(hwmodel):
    text = (PACKAGE.parent / "docs" / "explain.md").read_text(encoding="utf-8")
    (command,) = "".join(blocks(text, "sh")).splitlines()
    (excerpt,) = blocks(text, "markdown")
    _, printed, _ = hwmodel(*shlex.split(command)[1:])
    lines = iter(printed.splitlines())
    assert len(excerpt.splitlines()) > 10
    for line in excerpt.splitlines():
        assert line in ("", "...") or line in lines, line  # in this order
