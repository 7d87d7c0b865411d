"""docs/model.md, section 7: the effect of each choice of `paper`, computed anew row by row."""

import re
from functools import cache
from pathlib import Path

import pytest

from hwmodel import evaluate
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load

PAGE = Path(__file__).parent.parent / "docs" / "model.md"
PAPER, FULL = load(Accounting, "paper"), load(Accounting, "full")
NAMES = {
    "binaryconnect": "BinaryConnect", "xnor-net": "XNOR-Net", "binarynet": "BinaryNet",
    "bold": "BOLD", "bold-bn": "BOLD with batch norm", "int8": "`int8`", "luq": "`luq`",
}  # fmt: skip
CHIPS = ("ascend", "v100")
OPTIMAL = {"counting.search": "optimal", "counting.counting": "exact"}
ADAM = {"extras.optimizer": "adam"}
HOROWITZ = {"prices.addition_price": "relative",
            "prices.relative_prices": FULL.prices.relative_prices}  # fmt: skip

# Fields of a row, what is changed, batch, and the methods whose percentages the row has.
ROWS = [
    ("first_layer_input_gradient", {"counting.first_layer_input_gradient": True}, 1,
     ("bold", "binarynet")),
    ("tile_sizes", {"counting.tile_sizes": "integers"}, 1, ("binaryconnect", "binarynet", "bold")),
    ("search", OPTIMAL, 1, ("binaryconnect", "binarynet", "bold")),
    ("stationary", OPTIMAL | {"counting.stationary": "best"}, 1,
     ("binaryconnect", "binarynet", "bold")),
    ("weight_gradient", OPTIMAL | {"counting.weight_gradient": "best-of-two-roles"}, 1,
     ("binaryconnect", "binarynet")),
    ("counting", {"counting.counting": "exact"}, 1, ("binaryconnect", "binarynet", "bold")),
    ("rows", {"counting.counting": "exact", "counting.rows": "touched"}, 1, ("binaryconnect",)),
    ("padding", {"counting.counting": "exact", "counting.padding": "skipped"}, 1,
     ("binaryconnect", "binarynet", "bold")),
    ("transfers", {"counting.counting": "exact", "counting.transfers": "both"}, 1,
     ("binaryconnect", "binarynet", "bold")),
    ("boolean_price", {"counting.boolean_price": "adder"}, 1, ("bold", "binarynet")),
    ("accumulation", {"counting.accumulation": "fan-in"}, 1, ("bold", "int8", "luq")),
    ("boolean_signal_bits", {"widths.boolean_signal_bits": 16}, 1, ("bold",)),
    ("boolean_vote_bits", {"widths.boolean_vote_bits": 16}, 1, ("bold",)),
    ("boolean_vote_bits", {"widths.boolean_vote_bits": 16, "widths.boolean_signal_bits": 16}, 1,
     ("bold",)),
    ("boolean_sum_bits", {"widths.boolean_sum_bits": "fan-in"}, 1, ("bold-bn",)),
    ("preactivation_bits", {"widths.preactivation_bits": 16}, 1, ("binarynet",)),
    ("border_bits", {"widths.border_bits": 32}, 1, ("bold-bn",)),
    ("addition_price", HOROWITZ, 1, ("binaryconnect", "xnor-net", "binarynet", "bold")),
    ("logic_price_macs", {"prices.logic_price_macs": 0.0}, 1, ("bold",)),
    ("logic_price_macs", {"prices.logic_price_macs": 0.01}, 1, ("bold",)),
    ("elementwise", {"extras.elementwise": "streamed"}, 1,
     ("binaryconnect", "binarynet", "bold", "bold-bn")),
    ("preactivation_words", {"extras.preactivation_words": 2}, 1, ("bold-bn", "xnor-net")),
    ("optimizer", ADAM, 1, ("binaryconnect", "binarynet", "bold")),
    ("boolean_update", {"extras.boolean_update": True}, 1, ("bold",)),
    ("boolean_update", ADAM | {"extras.boolean_update": True}, 1, ("bold",)),
    ("batch", {}, 64, ("binaryconnect", "binarynet", "bold")),
]  # fmt: skip
IDLE = [  # fields that move nothing of VGG-small at batch 1
    ("zero_signals", {"counting.zero_signals": "skipped"}),
    ("loops", {"counting.loops": "flattened"}),
    ("masked_scores", {"counting.masked_scores": "skipped"}),
    ("partial_sum_bits", {"widths.partial_sum_bits": 64}),
    ("special_function_macs", {"prices.special_function_macs": 4.0}),
    ("stored_activations", {"extras.stored_activations": True}),
    ("accumulator_bits", {"extras.accumulator_bits": 32}),
    ("flip_rate", {"extras.flip_rate": 0.1}),
    ("update_order", {"extras.update_order": "as-gradients-finish"}),
    ("kept", {"extras.kept": "pytorch"}),
    ("teacher", {"extras.teacher": True}),
]


def changed(fields):
    """`paper` with some fields changed, by their dotted paths."""
    groups = {}
    for path, value in fields.items():
        group, field = path.split(".")
        groups.setdefault(group, {})[field] = value
    update = {g: getattr(PAPER, g).model_copy(update=of) for g, of in groups.items()}
    return PAPER.model_copy(update=update)


@cache
def usual(method, chip, batch):
    return evaluate("vgg-small", chip, method, accounting=PAPER, batch=batch).energy


def percents(fields, method, batch):
    """Energy in percent of full precision, on both chips."""
    accounting = changed(fields)
    found = []
    for chip in CHIPS:
        of = {"accounting": accounting, "batch": batch}
        whole = evaluate("vgg-small", chip, "fp", **of).energy
        found.append(f"{100 * evaluate('vgg-small', chip, method, **of).energy / whole:.2f}")
    return " / ".join(found)


def rows():
    """The lines of the table of `paper`, by their fields."""
    section = PAGE.read_text(encoding="utf-8").partition("## 7 ")[2].partition("\n`full`: ")[0]
    return [line for line in section.splitlines() if line.startswith("|")]


def row_of(field):
    start = r"\| batch" if field == "batch" else rf"\|[^|]*`(\w+\.)?{field}`"
    found = [row for row in rows() if re.match(start, row)]
    assert len(found) == 1, f"docs/model.md, section 7: `paper` has {len(found)} rows of {field}"
    return found[0]


@pytest.mark.parametrize(
    ("field", "fields", "batch", "methods"), ROWS, ids=[f"{n}-{x[0]}" for n, x in enumerate(ROWS)]
)
def test_the_effect_of_a_choice_is_what_is_computed(field, fields, batch, methods):
    row = row_of(field)
    for method in methods:
        found = percents(fields, method, batch)
        assert found in row, (NAMES[method], found)


@pytest.mark.parametrize(("field", "fields"), IDLE, ids=[x[0] for x in IDLE])
def test_a_choice_that_moves_nothing_moves_nothing(field, fields):
    assert re.search(r"no effect|not used|no change", row_of(field))
    for method in ("fp", "binaryconnect", "bold", "bold-bn"):
        found = evaluate("vgg-small", "ascend", method, accounting=changed(fields)).energy
        assert found == usual(method, "ascend", 1)


def test_the_first_line_of_the_section_has_the_percentages_of_paper():
    section = PAGE.read_text(encoding="utf-8").partition("## 7 ")[2].partition("| field |")[0]
    for method, name in [*NAMES.items()][:5]:
        assert f"{name} {percents({}, method, 1)}" in section


def test_every_field_of_paper_has_a_row_in_its_table():
    for group in ("counting", "widths", "prices", "extras"):
        for field in type(getattr(PAPER, group)).model_fields:
            assert row_of(field), field
    assert row_of("published_run")
