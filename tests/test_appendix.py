"""The page for an appendix: what the table has, what the files say, nothing else, one page."""

import csv
import re

import pytest

from hwmodel.importers.load import load_network
from hwmodel.rerun.asked import CompareAsked, command_line
from hwmodel.rerun.question import question
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.views.appendix import sections
from hwmodel.views.figures.canvas import HEAVY, PLAIN, STYLES, settings, width_of
from hwmodel.views.pages import A4, SIZES, Section, laid_out
from hwmodel.views.rules import method_sentences
from tests.page import parsed
from tests.specs import CHIP, NETWORK, written

WORDS = ("--accounting", "paper", "--optimal-tiles", "no", "--csv", "c.csv")


@pytest.fixture
def made(hwmodel):
    """A table with published figures."""
    assert (
        hwmodel("compare", "vgg-small", "--hardware", "ascend", "--methods", "fp,bold", *WORDS)[0]
        == 0
    )


def test_the_page_has_the_residuals_the_constants_with_sources_and_the_command(
    hwmodel, made, tmp_path
):
    assert hwmodel("appendix", "c.csv", "-o", "a.html") == (0, "", "wrote a.html\n")
    tree = parsed((tmp_path / "a.html").read_text().removeprefix("<!doctype html>"))
    results, constants = (
        [[c.text for c in r.children] for r in t.all("tr")] for t in tree.all("table")
    )
    with (tmp_path / "c.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    for shown, row in zip(results[1:], rows, strict=True):
        numbers = ("percent_of_baseline", "source_percent", "residual_percent")
        assert shown[0] == row["method"]
        assert shown[2:] == [f"{float(row[name]):.2f}" for name in numbers]
    chip = load(Hardware, "ascend")
    memories = {memory.name: memory for level in chip.levels for memory in level.buffers}
    found = {row[0]: row for row in constants[1:]}
    assert set(found) == {*memories, "32-bit mac"}
    for name, memory in memories.items():
        price = re.search(r"([\d.]+) pJ/bit", found[name][1])[1]
        assert float(price) == pytest.approx(memory.read_energy_per_bit, rel=1e-3)
        assert found[name][2] == memory.source
    text = tree.text
    assert rows[0]["command"] in text and rows[0]["inputs_sha256"] in text
    assert "search level-by-level" in text and "biases, data loading" in text
    assert "NeurIPS 2024" in text


def test_choices_of_several_accountings_stand_side_by_side():
    asked = CompareAsked(
        network="vgg-small", hardware=("ascend",), methods=("fp",), accounting=("paper", "chip")
    )
    made = {"command": command_line(asked), "version": "0", "inputs_sha256": "a" * 8}
    (choices,) = (x for x in sections(question(asked), [], made) if x.title == "Choices")
    ((head, *rows),) = choices.tables
    assert head == ["accounting", "paper", "chip"]
    assert ["search", "level-by-level", "optimal"] in rows and len(rows) > 30


def test_a_pdf_is_of_one_page_and_the_same_again(hwmodel, made, tmp_path):
    for name in ("a.pdf", "b.pdf"):
        assert hwmodel("appendix", "c.csv", "-o", name)[0] == 0
    first = (tmp_path / "a.pdf").read_bytes()
    assert first == (tmp_path / "b.pdf").read_bytes() and first.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", first)) == 1
    assert b"/FontFile2" in first and b"/Type3" not in first


@pytest.fixture(scope="module")
def fonts():
    with settings(STYLES["paper"]):
        yield


def words(several):
    return " ".join(several).split()


def five_on_three():
    """Sections of an ordinary comparison, five methods on three chips."""
    asked = CompareAsked(
        network="resnet18", hardware=("ascend", "v100", "tpuv4i"),
        methods=("fp", "int8", "binaryconnect", "xnor-net", "bold"), accounting=("full",),
    )  # fmt: skip
    empty = dict.fromkeys(("source_percent", "residual_percent"), "") | {"batch": "1"}
    records = [
        {"network": "resnet18", "hardware": chip, "accounting": "full", "batch": "1", "method": method,
         "energy": "123456789.5", "unit": "pJ", "percent_of_baseline": "12.345", **empty}
        for chip in asked.hardware
        for method in asked.methods
    ]  # fmt: skip
    made = {"command": command_line(asked), "version": "0", "inputs_sha256": "a" * 8}
    return sections(question(asked), records, made)


@pytest.mark.parametrize("times", [1, 5])
def test_all_is_there_nothing_lies_on_another_and_no_column_ends_in_a_heading(fonts, times):
    found = five_on_three()
    found = [found[0], *found[1:] * times]
    size, pages = laid_out("Title", found)
    assert size in SIZES and (len(pages) <= 2 if times == 1 else len(pages) > 2)
    placed = [one for page in pages for one in page]
    tables = [table for one in found for table in one.tables]
    said = [text for one in found for text in one.texts]
    said += [cell for table in tables for row in table[1:] for cell in row]
    laid = words(one.text for one in placed if one.weight == PLAIN)
    assert sorted("".join(laid)) == sorted("".join(words(said)))
    heads = words(["Title", *(x.title for x in found), *(c for table in tables for c in table[0])])
    laid = words(one.text for one in placed if one.weight == HEAVY)
    assert set(laid) == set(heads)  # a table's again where it goes on in another column
    assert len(laid) > len(heads) if times > 1 else len(laid) >= len(heads)
    for page in pages:
        boxes = [
            (x, y, x + width_of(text, size, weight), y + size / 72)
            for x, y, text, weight in page
            if text.strip()
        ]
        for left, top, right, bottom in boxes:
            assert left >= 0.5 and top >= 0.5 and right <= A4[0] - 0.49 and bottom <= A4[1] - 0.4
        for n, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[n + 1 :]:
                across = min(right, other[2]) - max(left, other[0])
                assert min(across, min(bottom, other[3]) - max(top, other[1])) < 0.01
        for placed in page:
            if placed.weight == HEAVY and placed.text != "Title":
                assert any(
                    below.weight == PLAIN
                    and abs(below.x - placed.x) < 1.5
                    and 0 < below.y - placed.y < 3.7 * size / 72
                    for below in page
                )


def test_what_does_not_fit_one_page_is_in_type_that_is_read(fonts):
    long = Section("Long", ["word " * 6000])
    size, pages = laid_out("Title", [Section("First", ["one"]), long])
    assert len(pages) > 1 and size >= 8
    size, pages = laid_out("Title", [Section("First", ["word " * 9000]), long])
    assert len(pages) > 3
    wide = Section("Wide", [], [[["a" * 500, "b" * 500, "c" * 500]]])
    _, pages = laid_out("Title", [Section("First", ["one"]), wide])
    text = "".join(placed.text for placed in pages[0])
    assert [text.count(letter * 5) > 20 for letter in "abc"] == [True] * 3


def test_what_has_no_page_is_one_line(hwmodel, made, refused, tmp_path):
    assert "an appendix ends in .html or .pdf" in refused("appendix", "c.csv", "-o", "a.txt")
    hwmodel(
        "report",
        "conv-small",
        "--hardware",
        "ascend",
        "--method",
        "fp",
        *WORDS[:2],
        "--csv",
        "r.csv",
    )
    assert "an appendix is of a table of compare" in refused("appendix", "r.csv", "-o", "a.html")
    written(tmp_path, CHIP, name="chip.yaml")
    hwmodel(
        "compare",
        "conv-small",
        "--hardware",
        "chip.yaml",
        "--methods",
        "fp",
        *WORDS[:4],
        "--csv",
        "o.csv",
    )
    written(tmp_path, CHIP, ("4.6 pJ", "5 pJ"), name="chip.yaml")
    assert "its inputs are not as they were" in refused("appendix", "o.csv", "-o", "a.html")
    assert not (tmp_path / "a.html").exists()


def test_the_page_says_what_methods_are_what_chips_can_and_what_is_assumed(hwmodel, tmp_path):
    net, chip = NETWORK, CHIP.replace("energy_unit: pJ", "energy_unit: pJ\nlabel: My Chip")
    rates = "energy_unit: pJ\nclock: 200 MHz\nmacs_per_cycle: {32: 64}\nstatic_power: 2 mW"
    written(tmp_path, net, name="net.yaml")
    chip = chip.replace("unlimited,", "unlimited, bandwidth: 8 GB/s,")
    written(tmp_path, chip.replace("energy_unit: pJ", rates), name="chip.yaml")
    words = ("--hardware", "chip.yaml", "--methods", "bold-bn", "--accounting", "full")
    assert hwmodel("compare", "net.yaml", *words, "--csv", "c.csv")[0] == 0
    assert hwmodel("appendix", "c.csv", "-o", "a.html")[0] == 0
    text = parsed((tmp_path / "a.html").read_text().removeprefix("<!doctype html>")).text
    assert "bold-bn (BOLD with batch norm): products of all layers: as bold; outputs of" in text
    assert "weights 1 bit, inputs 1 bit" in text  # of bold, which it takes over
    said = "DRAM: bandwidth 8 GB/s; clock 200 MHz; macs per cycle (32 64); static power 0.002 W."
    assert f"My Chip (A chip): {said}" in text
    assert "8-bit int-mac 0.05 (horowitz: (0.2 + 0.03) / 4.6)" in text
    assert "a multiplier with the square of its width" in text


def test_a_word_that_two_passes_have_is_not_one_of_every_pass():
    """BinaryConnect's weight gradients are multiplied: Courbariaux et al., 2015, algorithm 1."""
    said, _ = method_sentences([load(Method, "binaryconnect")], load_network("vgg-small"))
    assert "add forward, add backward input" in said and "every pass" not in said


def test_rules_of_a_method_that_hold_for_no_layer_are_left_out():
    """VGG-small has convolutions, max-pools, norms and linear layers, and no roles."""
    methods = [load(Method, name) for name in ("bold", "xnor-net")]
    bold, xnor, *taken = method_sentences(methods, load_network("vgg-small"))
    for word in ("aspp-norm", "role", "layer-norm", "pixel-shuffle", "further", "squeeze"):
        assert word not in f"{bold} {xnor}"
    assert "outputs of layers of kind max-pool: input" in xnor
    assert "products of layers of position first or last: as fp" in bold
    fp, binarynet = taken
    assert fp.startswith("fp (Full precision), where a method names it: products of all layers")
    assert binarynet.startswith("binarynet (BinaryNet), where") and "outputs" not in binarynet
    with_norm, *_ = method_sentences(methods[:1], load_network("deeplabv3-boolean"))
    assert "aspp-norm" in with_norm
