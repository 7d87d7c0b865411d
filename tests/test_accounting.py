"""Accountings: fields in groups, files that state only what differs, and how a field is added."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import jsonschema
import pytest

from hwmodel import evaluate
from hwmodel.errors import SpecError, SpecWarning
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load, read_yaml
from hwmodel.specs.provenance import digest
from hwmodel.vary.paths import replaced, replaced_all
from hwmodel.views.catalogue import checked
from hwmodel.views.schema import schema
from tests.specs import ACCOUNTING, CHIP, METHOD, NETWORK, written

ROOT = Path(__file__).parent.parent
GROUPS = ("counting", "widths", "prices", "extras")
FULL = load(Accounting, "full")
WHOLE = [path for path in bundled(Accounting).values() if "based_on" not in read_yaml(path)]
FIELDS = [(group, field) for group in GROUPS for field in type(getattr(FULL, group)).model_fields]

BASED = """\
version: 1
name: mine
title: Mine
based_on: full
widths: {partial_sum_bits: 48}
"""

# The form of before the groups, as `hwmodel accounting show paper` printed it.
FLAT = """\
version: 1
name: flat
title: As before the groups
baseline: fp
search: level-by-level
stationary: filter
weight_gradient: signal-as-filters
counting: paper
rows: bounding
padding: counted
first_layer_input_gradient: false
full_precision_bits: 32
preactivation_bits: 32
partial_sum_bits: 32
boolean_signal_bits: 16
boolean_vote_bits: 1
boolean_sum_bits: fan-in
border_bits: 1
addition_price: operation-of-mac
boolean_price: share-of-mac
logic_price_macs: null
relative_prices:
  - {operation: int-add, bits: 32, macs: 0.02, source: me}
special_function_macs: 1
elementwise: preactivation-words
preactivation_words: 1
stored_activations: false
optimizer: sgd
boolean_update: false
accumulator_bits: 16
flip_rate: 0
teacher: false
accumulation: operand-width
not_counted: [biases]
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("  counting: paper", "  counting: exakt", "counting.counting 'exakt': must be "),
        ("baseline: fp\n", "", "baseline is missing"),
        ("precision_bits: 32", "precision_bits: 0", "widths.full_precision_bits 0: must be at least 1"),
        ("_macs: 0.001", "_macs: -1", "prices.logic_price_macs -1: must be at least 0"),
        ("_macs: 0.001", "_macs: .nan", "prices.logic_price_macs nan: must be finite"),
        ("_macs: 0.001", "_macs: '1e-3'", "prices.logic_price_macs '1e-3': must be a number"),
        ("_macs: 0.001", "_macs: no", "prices.logic_price_macs 'no': must be a number"),
        ("gradient: false", "gradient: no",
         "counting.first_layer_input_gradient 'no': must be true or false"),
        ("gradient: false", "gradient: 0", "counting.first_layer_input_gradient 0: must be true or false"),
        ("_macs: 0.001", "_macs: 1e-3", None),
    ],
)  # fmt: skip
def test_an_accounting_that_cannot_be_is_refused_in_one_sentence(tmp_path, old, new, sentence):
    path = written(tmp_path, ACCOUNTING, (old, new))
    if sentence is None:
        assert load(Accounting, path).prices.logic_price_macs == 0.001
        return
    with pytest.raises(SpecError) as caught:
        load(Accounting, path)
    where, problem = str(caught.value).split(": ", 1)
    line = 2 if "missing" in sentence else path.read_text().split(new)[0].count("\n") + 1
    assert where == f"{path}:{line}"
    assert problem.startswith(sentence)


def test_an_accounting_s_baseline_is_checked_with_it(tmp_path):
    path = written(tmp_path, ACCOUNTING, ("baseline: fp", "baseline: bolt"))
    line = path.read_text().split("baseline: bolt")[0].count("\n") + 1
    with pytest.raises(SpecError) as caught:
        checked("accounting", str(path))
    sentence = "baseline: 'bolt': no bundled method is called so; did you mean 'bold'?"
    assert str(caught.value) == f"{path}:{line}: {sentence}"


# What is stated, and what is taken over


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_a_bundled_file_that_is_based_on_none_states_every_field(path):
    stated = read_yaml(path)
    assert set(stated) == set(Accounting.model_fields) - {"based_on"}
    for group in GROUPS:
        assert list(stated[group]) == list(type(getattr(FULL, group)).model_fields)


def test_a_file_states_what_differs_and_the_rest_is_as_in_what_it_is_based_on(tmp_path):
    found = load(Accounting, written(tmp_path, BASED))
    assert found.widths.partial_sum_bits == 48
    assert replaced(found, "widths.partial_sum_bits", 32).widths == FULL.widths
    for field in ("counting", "prices", "extras", "baseline", "sources", "not_counted"):
        assert getattr(found, field) == getattr(FULL, field)
    assert (found.name, found.title, found.based_on) == ("mine", "Mine", "full")
    own = BASED + "sources: {me: here}\nnot_counted: [nothing]\n"
    own = load(Accounting, written(tmp_path, own))
    assert (own.sources, own.not_counted) == (FULL.sources | {"me": "here"}, ("nothing",))


def test_a_report_under_it_is_that_of_the_same_values_stated_in_full(tmp_path):
    wide = replaced_all(FULL, {"widths.partial_sum_bits": 48, "extras.optimizer": "sgd"})
    based = written(tmp_path, BASED + "extras: {optimizer: sgd}\n")
    stated, taken, plain = (
        evaluate("conv-small", "ascend", "bold", accounting=a) for a in (wide, based, "full")
    )
    assert counts(stated) == counts(taken) != counts(plain)
    assert stated.energy == taken.energy != plain.energy


def counts(report):
    return [(entry.name, entry.key, entry.count) for entry in report.ledger.entries]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("based_on: full", "based_on: ful",
         ":4: based_on: 'ful' is no bundled accounting; did you mean 'full'?"),
        ("based_on: full", "based_on: ./other.yaml",
         ":4: based_on: './other.yaml' is no bundled accounting; known: chip, full, paper, paper-stated"),
        ("based_on: full", "based_on: [full]",
         ":4: based_on: a list of 1 is no bundled accounting; did you mean 'full'?"),
        ("based_on: full\n", "",
         ":1: baseline, counting, prices, extras, not_counted are missing; line 4: widths."
         "full_precision_bits, preactivation_bits, boolean_signal_bits, boolean_vote_bits, "
         "boolean_sum_bits, border_bits are missing"),
        ("title: Mine\n", "", ":1: title is missing"),
        ("widths:", "wdiths:", ":5: wdiths is not a field; did you mean 'widths'?"),
        ("widths: {partial_sum_bits: 48}", "partial_sum_bits: 48",
         ":5: partial_sum_bits is not a field; did you mean 'widths.partial_sum_bits'?"),
        ("widths: {partial_sum_bits: 48}", "partial_sum_bit: 48",
         ":5: partial_sum_bit is not a field; did you mean 'widths.partial_sum_bits'?"),
        ("widths:", "prices:",
         ":5: prices.partial_sum_bits is not a field; did you mean 'widths.partial_sum_bits'?"),
        ("partial_sum_bits: 48", "baseline: fp",
         ":5: widths.baseline is not a field; did you mean 'baseline'?"),
        ("partial_sum_bits: 48", "border_bit: 1",
         ":5: widths.border_bit is not a field; did you mean 'border_bits'?"),
        ("{partial_sum_bits: 48}", "", ":5: widths None: must be 'field: value' lines"),
        ("partial_sum_bits: 48", "partial_sum_bits: 65",
         ":5: widths.partial_sum_bits 65: must be at most 64"),
        ("{partial_sum_bits: 48}", "{partial_sum_bits: 65, border_bits: 0}\nextras: {teacher: 1}",
         ":5: widths.partial_sum_bits 65: must be at most 64; line 5: widths.border_bits 0: "
         "must be at least 1; line 6: extras.teacher 1: must be true or false"),
        # what is stated goes together with what is taken over
        ("widths: {partial_sum_bits: 48}", "counting:\n  counting: paper",
         ":6: counting.counting: optimal needs counting exact: it minimises exact counts "
         "(search optimal: as in full); line 6: counting.counting: paper has rows bounding and "
             "padding counted, as its source (rows touched, padding skipped: as in full); "
             "line 6: counting.counting: paper counts what is asked of the upper memory alone "
             "(transfers both: as in full)"),
        ("widths: {partial_sum_bits: 48}", "counting: {search: level-by-level}",
         ":5: counting.search: level-by-level is for stationary filter and weight_gradient "
         "signal-as-filters (stationary best, weight_gradient best-of-two-roles: as in full)"),
        ("based_on: full\nwidths: {partial_sum_bits: 48}",
         "based_on: paper\ncounting: {padding: skipped}",
         ":5: counting.padding: paper has rows bounding and padding counted, as its source "
         "(counting paper, rows bounding: as in paper)"),
    ],
)  # fmt: skip
def test_a_mistake_in_what_differs_is_one_sentence_with_its_line(tmp_path, old, new, sentence):
    path = written(tmp_path, BASED, (old, new))
    with pytest.raises(SpecError) as caught:
        load(Accounting, path)
    assert str(caught.value) == f"{path}{sentence}"


def test_an_editor_asks_for_all_fields_of_a_file_that_is_based_on_none():
    right = [{"version": 1, "name": "a", "title": "A", "based_on": "full"}]
    right += [right[0] | {"widths": {"border_bits": 3}}]
    validator = jsonschema.Draft202012Validator(schema("accounting"))
    assert all(validator.is_valid(value) for value in right)
    whole = FULL.model_dump(mode="json")
    assert validator.is_valid(whole)
    for group, field in FIELDS:
        assert not validator.is_valid(whole | {group: {
            name: value for name, value in whole[group].items() if name != field
        }})  # fmt: skip


# Files of before the groups


def test_a_flat_file_is_still_read_and_told_so(tmp_path):
    path = written(tmp_path, FLAT)
    said = (
        "stand in groups now (counting, widths, prices, extras), as 'hwmodel accounting show full'"
    )
    with pytest.warns(SpecWarning, match=re.escape(f"{path}: fields {said} has them")) as told:
        found = load(Accounting, path)
    assert len(told) == 1
    grouped = {
        "name": "flat", "title": "As before the groups", "sources": {},
        "not_counted": ("biases",), "not_counted_in_training": (),
    }  # fmt: skip
    changes = {
        "widths.boolean_signal_bits": 16, "widths.boolean_sum_bits": "fan-in",
        "prices.logic_price_macs": None, "extras.optimizer": "sgd",
    }  # fmt: skip
    wanted = replaced_all(load(Accounting, "paper"), changes).model_copy(update=grouped)
    price = {"operation": "int-add", "bits": 32, "macs": 0.02, "source": "me"}
    assert [p.model_dump() for p in found.prices.relative_prices] == [price]
    for field in ("counting", "widths", "extras", *grouped):
        assert getattr(found, field) == getattr(wanted, field)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("rows: bounding", "rows: bonding",
         ":9: counting.rows 'bonding': must be 'touched' or 'bounding'"),
        ("flip_rate: 0", "flip_rat: 0",
         ":31: flip_rat is not a field; did you mean 'extras.flip_rate'?; "
         "line 25: extras.flip_rate is missing"),
        ("padding: counted", "padding: skipped",
         ":8: counting.counting: paper has rows bounding and padding counted, as its source"),
        ("border_bits: 1\n", "", ":12: widths.border_bits is missing"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_flat_file_is_told_by_its_line(tmp_path, old, new, sentence):
    path = written(tmp_path, FLAT, (old, new))
    with pytest.raises(SpecError) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(Accounting, path)
    assert str(caught.value) == f"{path}{sentence}"


def test_the_command_line_says_it_in_one_line(tmp_path):
    path = written(tmp_path, FLAT)
    command = [sys.executable, "-m", "hwmodel", "accounting", "check", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith(f"hwmodel: warning: {path}: fields stand in groups now")
    assert ran.stdout == f"{path}: accounting flat is right\n"


def test_what_an_accounting_is_based_on_does_not_enter_its_hash(tmp_path):
    based = load(Accounting, written(tmp_path, BASED, ("widths: {partial_sum_bits: 48}\n", "")))
    assert digest(based.model_copy(update={"name": "full", "title": FULL.title})) == digest(FULL)


# docs/extend.md: a new field is five places


@pytest.mark.parametrize(("group", "field"), FIELDS)
def test_a_field_stands_in_the_five_places_that_the_page_on_extending_names(group, field):
    """Its line in the group, its value in the two bundled files, its readers, its row of docs."""
    reader = re.compile(rf"\baccounting\.{group}\.{field}\b")
    files = sorted((ROOT / "hwmodel").rglob("*.py"))
    read = [p for p in files if "views" not in p.parts and reader.search(p.read_text())]
    assert read, f"nothing in hwmodel/ reads accounting.{group}.{field}"
    section = (ROOT / "docs" / "model.md").read_text().partition("## 7 ")[2].partition("## 8 ")[0]
    rows = [line for line in section.splitlines() if re.match(rf"\|[^|]*`{group}\.{field}`", line)]
    assert rows, f"docs/model.md, section 7, has no row of {field}"
    for path in WHOLE:
        assert field in read_yaml(path)[group]


def test_the_page_on_extending_names_them():
    page = (ROOT / "docs" / "extend.md").read_text()
    (line,) = [x for x in page.splitlines() if x.startswith("| field of all accountings |")]
    for place in ("specs/accounting.py", "accountings/paper.yaml", "accountings/full.yaml",
                  "the place that reads it", "docs/model.md"):  # fmt: skip
        assert place in line


def test_a_list_that_is_taken_over_says_what_is_counted_otherwise(tmp_path):
    """The list of `full` supposes Adam; without an optimizer it would leave that unsaid."""
    text = "version: 1\nname: mine\ntitle: t\nbased_on: full\nextras: {optimizer: none}\n"
    (tmp_path / "mine.yaml").write_text(text)
    line = (
        "what mine counts otherwise than full, whose list this is: optimizer none instead of adam"
    )
    report = evaluate("conv-small", "ascend", "fp", accounting=tmp_path / "mine.yaml")
    assert line in report.not_counted
    (tmp_path / "own.yaml").write_text(text + "not_counted: [everything]\n")
    own = evaluate("conv-small", "ascend", "fp", accounting=tmp_path / "own.yaml").not_counted
    assert "everything" in own and line not in own


def test_show_resolves_what_a_file_is_based_on(hwmodel, tmp_path):
    """What is printed is a file that says the same, and states every field."""
    path = written(tmp_path, BASED)
    code, out, _ = hwmodel("accounting", "show", path.name)
    assert code == 0
    assert out.startswith("# what the file does not state is as in full\nversion: 1\nname: mine\n")
    assert "\n  partial_sum_bits: 48\n" in out and "\n  border_bits: 32\n" in out
    again = tmp_path / "again.yaml"
    again.write_text(out)
    stated = read_yaml(again)
    for group in GROUPS:
        assert set(stated[group]) == set(type(getattr(FULL, group)).model_fields)
    assert load(Accounting, again) == load(Accounting, path).model_copy(update={"based_on": None})


def test_show_prints_other_files_as_they_are(hwmodel, tmp_path):
    path = written(tmp_path, ACCOUNTING)
    assert hwmodel("accounting", "show", path.name)[1].rstrip() == path.read_text().rstrip()
    for file in WHOLE:
        assert hwmodel("accounting", "show", file.stem)[1].rstrip() == file.read_text().rstrip()


@pytest.mark.parametrize("word", ["hardware", "method", "accounting", "training", "network"])
def test_a_file_of_another_kind_is_called_what_it_is(refused, tmp_path, word):
    texts = {"hardware": CHIP, "method": METHOD, "accounting": ACCOUNTING, "network": NETWORK}
    for other, text in texts.items():
        if other != word:
            path = written(tmp_path, text, name=f"{other}.yaml")
            assert refused(word, "check", path.name) == (
                f"{other}.yaml: is a file of kind {other}, by its fields; one of kind {word} is "
                "expected here"
            )
