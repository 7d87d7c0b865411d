"""Measured chips beside ours: the data, the rules of the comparison, and the page that prints it."""

import csv
import io
import os
import re

import pytest

from hwmodel.importers.load import load_network
from hwmodel.rerun.tables import against_table
from hwmodel.specs.coding import RunLength
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.measured import Run, measured_table, measured_tables
from hwmodel.specs.provenance import Provenance
from hwmodel.vary.against import CALIBRATION, against, network_of, run_of, verdict
from hwmodel.views.figures.canvas import STYLES, title_of
from hwmodel.views.figures.measured import measured_figure
from hwmodel.views.measured_tables import ORDER
from hwmodel.views.measured_tables import measured_tables as shown
from tests.test_docs import ROOT

PAGE = ROOT / "docs" / "measured.md"
# Rows that take a second or two, or five: the others are computed under HWMODEL_TESTS=thorough, in test_docs.
QUICK = {
    "eyeriss_alexnet_isca": [],  # all
    "resnet50_training_v100": ["batch 64"],
    "resnet50_training_a40": ["batch 8 if TF32"],
    "bert_training": ["V100, batch 8"],
    "resnet50_training_rates": ["V100, fp32"],
    "resnet50_inference": [],
    "mlperf_tiny": [],
    "llama31_8b_decode": ["batch 8", "batch 691"],
}


def page_rows():
    """(table, row, quantity) -> the other cells of the page's tables, as printed."""
    found, name = {}, ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if (heading := re.match(r"(\w+): ", line)) and heading[1] in measured_tables():
            name = heading[1]
        elif len(cells) > 5 and cells[0] != "row":
            found[name, cells[0], cells[1]] = cells[2:]
    return found


@pytest.fixture(scope="module")
def quick():
    return {name: list(against(measured_table(name), rows=rows)) for name, rows in QUICK.items()}


def test_every_figure_stands_in_the_page():
    every = {
        (table.name, row.row, quantity)
        for table in measured_tables().values()
        for row in table.rows
        for quantity in row.published
    }
    assert page_rows().keys() == every and len(every) == 118


def test_residuals_of_the_page_are_those_computed(quick):
    """Each cell: published, ours, the serial figure, the ratio and the verdict."""
    from rich.console import Console

    page = page_rows()
    for name, lines in quick.items():
        screen = Console(file=io.StringIO(), width=250)
        for piece in shown([measured_table(name)], {name: lines}):
            screen.print(piece)
        printed = [re.split(r"\s{2,}", x.strip()) for x in screen.file.getvalue().splitlines()]
        told = {(x[0], x[1]): x[2:] for x in printed if len(x) > 5 and x[0] != "row"}
        assert len(told) == len(lines)
        units_may_differ = (
            0
            if len(lines) == len([q for row in measured_table(name).rows for q in row.published])
            else 3
        )  # part of a table may be in another unit of energy
        for (row, quantity), cells in told.items():
            there = page[name, row, quantity]
            assert cells[-2:] == there[-2:], (name, row, quantity)
            if not units_may_differ or quantity != "energy":
                assert cells == there, (name, row, quantity)


def ratio(table, row, quantity):
    return float(page_rows()[table, row, quantity][-2])


def test_what_is_claimed_of_eyeriss_holds():
    """DRAM within 10 % in sum and 25 % a layer, buffer within 30 % in sum, RF within 2 %."""
    of = "eyeriss_alexnet"
    layers = [f"conv{n}" for n in range(1, 6)]
    assert abs(ratio(of, "all five", "dram") - 1) <= 0.10
    assert all(abs(ratio(of, layer, "dram") - 1) <= 0.25 for layer in layers)
    assert abs(ratio(of, "all five", "buffer") - 1) <= 0.30
    assert abs(ratio("eyeriss_alexnet_isca", "RF", "levels") - 1) <= 0.02
    assert all("between the bounds" in page_rows()[of, layer, "time"][-1] for layer in layers)


def test_what_is_claimed_of_boards_holds():
    v100 = "resnet50_training_v100"
    assert all(abs(ratio(v100, f"batch {n}", "energy") - 1) <= 0.25 for n in (64, 128, 192))
    assert all(1.25 < ratio(v100, f"batch {n}", "energy") < 1.27 for n in (256, 360))  # is missed
    assert abs(ratio(v100, "batch 8", "energy") - 1) <= 0.40
    every = page_rows()
    rates = [float(x[-2]) for (_, _, quantity), x in every.items() if quantity == "rate"]
    assert min(rates) > 1  # a bound that a real run misses
    assert ratio("mlperf_tiny", "gap9 ad", "energy") < 1 / 3  # is missed, as kws is
    tiny = [x for (table, *_), x in every.items() if table == "mlperf_tiny"]
    assert [x[-1] for x in tiny].count("calibration") == 1


def test_what_prices_are_from_is_no_verdict_and_a_hollow_point(quick):
    lines = quick["mlperf_tiny"]
    (one,) = [line for line in lines if line.verdict == CALIBRATION]
    assert one.row == "mcu-m4 ic"
    figure = measured_figure(lines, STYLES["slides"])
    hollow = [x for x in figure.axes[0].get_lines() if x.get_markerfacecolor() == "white"]
    assert [x.get_xdata()[0] for x in hollow] == [one.published]
    assert "hollow point" in title_of(figure)


def test_points_of_a_figure_have_names(quick):
    """All where they are few; of many those that are off, ends and middle of a table."""
    lines = quick["mlperf_tiny"]

    def names(of):
        return {text.get_text() for text in measured_figure(of, STYLES["slides"]).axes[0].texts}

    assert {line.row for line in lines} <= names(lines)
    many = [line._replace(row=f"{line.row} {n}") for n in range(2) for line in lines]
    off = [line.row for line in many if line.verdict == "off"]
    assert len(off) == 6 and names(many) & {x.row for x in many} == {off[0], off[3], off[-1]}


def test_names_of_points_of_several_tables_end_in_the_number_that_the_legend_has(quick):
    lines = [line for several in quick.values() for line in several]
    figure = measured_figure(lines, STYLES["slides"])
    (legend,) = figure.legends
    listed = dict(
        re.fullmatch(r"(\w+) \((\d)\)", t.get_text()).groups() for t in legend.get_texts()
    )
    assert list(listed) == list(quick)
    said = [t.get_text().replace("\n", " ") for one in figure.axes for t in one.texts]
    ends = {
        f"{line.row}{more} ({listed[line.table]})"
        for line in lines
        for more in ("", f", {line.quantity}")
    }
    assert said and set(filter(None, said)) <= ends


@pytest.mark.parametrize("style", ["ieee", "neurips", "slides"])
def test_a_csv_of_measured_rows_is_drawn(quick, hwmodel, tmp_path, style):
    lines = [line for several in quick.values() for line in several]
    text = against_table(lines).csv(Provenance("hwmodel reproduce --measured", ()))
    (tmp_path / "m.csv").write_text(text)
    code, out, err = hwmodel("plot", "m.csv", "--style", style, "-o", "m.svg")
    assert (code, out, err) == (0, "", "wrote m.svg\n")
    svg = (tmp_path / "m.svg").read_text()
    assert "Published against ours" in svg and "mlperf_tiny" in svg


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("table,row", "tabel,row", "m.csv:1: has not the columns of a `compare` or a `report` CSV"),
        (",energy,", ",enrgy,", "m.csv:2: no quantity is called 'enrgy'"),
        ("J/inference,", "J/inference,x", "m.csv:2: published 'x"),
    ],
)
def test_a_damaged_csv_of_measured_rows_is_refused(quick, hwmodel, tmp_path, old, new, sentence):
    lines = quick["mlperf_tiny"]
    text = against_table(lines).csv(Provenance("hwmodel reproduce --measured", ()))
    (tmp_path / "m.csv").write_text(text.replace(old, new))
    code, out, err = hwmodel("plot", "m.csv", "-o", "m.svg")
    assert (code, out) == (2, "") and sentence in err
    assert not (tmp_path / "m.svg").exists()
    assert "is drawn as kind measured, not methods" in told(hwmodel, text, tmp_path)


def told(hwmodel, text, tmp_path):
    """What is said of the right table, drawn as another kind."""
    (tmp_path / "m.csv").write_text(text)
    return hwmodel("plot", "m.csv", "--kind", "methods", "-o", "m.svg")[2]


def test_networks_of_measurements_are_called_by_name():
    for name in ("tiny-ic", "tiny-kws", "tiny-vww", "tiny-ad"):
        net = load_network(name)
        assert net.name == name and net == network_of(Run(network=name))


@pytest.mark.parametrize(
    ("name", "macs"),
    [
        ("tiny-ic", 12_501_632), ("tiny-kws", 2_656_768), ("tiny-vww", 7_489_664),
        ("tiny-ad", 264_192), ("alexnet-convolutions", 665_784_864),
        # 12 blocks of 768 features, 384 tokens: linear layers, attention; two features a token
        ("bert-base-384", 12 * (12 * 768**2 * 384 + 2 * 768 * 384**2) + 2 * 768 * 384),
        # 32 (2 4096^2 + 2 4096 1024 + 3 4096 14336) + 4096 128256
        # and 32 x 2 products of 32 heads, 197 keys and 128 features
        ("llama31-8b-step", 7_504_658_432 + 32 * 2 * 32 * 197 * 128),
    ],
)  # fmt: skip
def test_networks_have_the_published_products(name, macs):
    assert sum(node.macs or 0 for node in network_of(Run(network=name)).nodes()) == macs


def test_runs_of_zeros_by_hand():
    """Eyeriss: 64 / 3 bits a pair; without zeros a word would be longer than itself."""
    code = load(Hardware, "eyeriss").levels[0].coding
    assert code.bits(0.0) == 16
    # half zeros: 1 + 1/2 + ... + 1/2^31 words a pair, next to two
    assert code.bits(0.5) == pytest.approx(64 / 3 / 2, rel=1e-9)
    assert code.bits(1.0) == pytest.approx(64 / 3 / 32)
    small = RunLength(word_bits=8, run_bits=1, packed_bits=9, source="made-up")
    assert small.bits(0.5) == pytest.approx(9 / 1.5)  # a pair is a word, or a zero and a word


def test_coded_words_against_counting_them():
    """A drawn tensor, coded pair by pair, takes what the formula says."""
    from random import Random

    draw, zeros, longest = Random(1), 0.7, 31
    words = [draw.random() >= zeros for _ in range(200_000)]
    pairs, run = 0, 0
    for word in words:
        if word or run == longest:
            pairs, run = pairs + 1, 0
        else:
            run += 1
    code = load(Hardware, "eyeriss").levels[0].coding
    assert code.bits(zeros) == pytest.approx(64 / 3 * pairs / len(words), rel=0.01)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (0.9, "within 10 %"), (1.1, "within 10 %"), (0.89, "within 25 %"), (1.25, "within 25 %"),
        (0.74, "within 2 x"), (2.0, "within 2 x"), (0.5, "within 2 x"), (0.499, "off"),
        (2.01, "off"),
    ],
)  # fmt: skip
def test_verdicts(found, said):
    assert verdict(found) == said


def test_a_ceiling_is_one():
    assert (verdict(1.0, True), verdict(1.01, True)) == ("below", "above: impossible")


def test_a_board_s_energy_is_its_ledger_s_and_static_power_by_time(quick):
    """By hand of the report: dynamic energy and 54 W x the time, over tokens."""
    line = next(
        x for x in quick["llama31_8b_decode"] if (x.row, x.quantity) == ("batch 8", "energy")
    )
    rate = next(x for x in quick["llama31_8b_decode"] if (x.row, x.quantity) == ("batch 8", "rate"))
    # Weights once in 16 bit, 15.01 GB, and 8 caches of 196 keys and values of 32 x 8 heads: at
    # 3,350 GB/s, and 11.68 pJ a bit of HBM alone.
    weights = 2 * 7_504_658_432 + 8 * 196 * 32 * 2 * 1024 * 2
    assert 8 / rate.ours == pytest.approx(weights / 3350e9, rel=0.01)
    least = (weights * 8 * 11.68e-12 + 54 * weights / 3350e9) / 8
    assert least < line.ours < 2 * least


def test_a_figure_has_a_panel_for_each_kind(quick):
    lines = [line for several in quick.values() for line in several]
    figure = measured_figure(lines, STYLES["slides"])
    assert len([one for one in figure.axes if one.get_visible()]) == 3
    points = sum(
        len(line.get_xdata()) for one in figure.axes for line in one.get_lines()
        if line.get_linestyle() == "None"
    )  # fmt: skip
    assert points == len(lines)


def test_one_table_as_csv_is_verified(hwmodel, tmp_path):
    code, out, err = hwmodel("reproduce", "resnet50_inference", "--csv", "t.csv")
    assert code == 0, err
    assert "energies are of the whole server" in out
    assert "Run: accounting full with counting.transfers upper (its file: both)" in out
    assert "All: " not in out  # of one table its own count is enough
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["quantity"] for row in rows] == [
        "energy",
        "bandwidth",
        "energy",
        "bandwidth",
        "bandwidth",
    ]
    for row in rows:
        assert float(row["ratio"]) == pytest.approx(float(row["ours"]) / float(row["published"]))
        assert "extras.elementwise fused (its file: streamed); chip a100-sxm-board" in row["run"]
    assert rows[0]["command"] == "hwmodel reproduce --measured resnet50_inference"
    if os.environ.get("HWMODEL_TESTS") == "thorough":
        assert "5 rows equal" in hwmodel("verify", "t.csv")[1]


def test_what_goes_beside_measured_is_told(refused):
    said = "--measured states networks, chips and accountings of its own"
    assert said in refused("reproduce", "--measured", "--readings")
    assert said in refused("reproduce", "mlperf_tiny", "--batch", "2")
    assert "nope" in refused("reproduce", "mlperf_tiny", "--style", "nope")
    assert "--ours sets off methods" in refused("reproduce", "mlperf_tiny", "--ours", "bold")
    assert "no table of measurements is called 'tiny'" in refused("reproduce", "--measured", "tiny")


def test_runs_are_named_under_their_tables():
    """What differs from files, and what is from the measurement's own paper: in page and column."""
    page = PAGE.read_text(encoding="utf-8")
    for table in measured_tables().values():
        for row in table.rows:
            missing = [part for part in run_of(table, row).split("; ") if part not in page]
            assert not missing, (table.name, row.row)
    rates = measured_table("resnet50_training_rates")
    said = run_of(rates, rates.rows[0])
    assert "chip v100-pcie-board with clock 1,530,000,000 Hz (its file: 1,380,000,000)" in said
    said = run_of(measured_table("eyeriss_alexnet"), measured_table("eyeriss_alexnet").rows[1])
    assert "135 PEs at work, as published" in said and "conv2 0.725" in said


def test_codes_that_cannot_hold_their_pairs_are_refused(hwmodel, tmp_path):
    """Eyeriss packs three pairs of 5 and 16 bit into 64: 63 fit, 62 do not."""
    assert RunLength(word_bits=16, run_bits=5, pairs=3, packed_bits=63, source="made-up")
    text = (ROOT / "hardware_specs" / "eyeriss.yaml").read_text(encoding="utf-8")
    (tmp_path / "chip.yaml").write_text(text.replace("packed_bits: 64", "packed_bits: 62"))
    code, _, err = hwmodel("hardware", "check", "chip.yaml")
    assert code == 2 and re.search(r"chip.yaml:\d+: .*packed_bits is 62, .* are 63", err)


def test_the_recipe_of_a_board_is_a_whole_file(hwmodel, tmp_path):
    page = (ROOT / "docs" / "chips.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("**A board in ten lines.**")
    (tmp_path / "my-board.yaml").write_text(rest.partition("```yaml\n")[2].partition("```")[0])
    code, _, err = hwmodel("hardware", "check", "my-board.yaml")
    assert code == 0, err
    assert load(Hardware, str(tmp_path / "my-board.yaml")).path_prices


def test_power_in_the_page_of_checks_is_that_of_the_rows():
    """Our energy of an item times our items a second, smallest and largest [W]."""
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")

    def watts(table, begins, unit):
        page = page_rows()
        rows = [x.row for x in measured_table(table).rows if x.row.startswith(begins)]
        found = [
            unit * float(page[table, row, "energy"][2].replace(",", ""))
            * float(page[table, row, "rate"][2].replace(",", ""))
            for row in rows if "TF32" not in row
        ]  # fmt: skip
        return f"{min(found):,.0f}", f"{max(found):,.0f}"

    for said, *of in (
        ("ResNet-50 {} to {} W on a V100", "resnet50_training_v100", "batch", 1e-3),
        ("{} to {} on an A40 of 300", "resnet50_training_a40", "batch", 1e-3),
        ("BERT-base {} to {} and", "bert_training", "V100", 1),
        ("and {} to {} W; decoding", "bert_training", "A40", 1),
        ("decoding {} to {} W on an H100", "llama31_8b_decode", "batch", 1e-3),
    ):
        assert said.format(*watts(*of)) in text


def test_every_constant_of_the_comparison_has_a_source():
    from hwmodel.specs.measured import _measured

    known = set(_measured().sources)
    for table in measured_tables().values():
        assert set(table.source.split("; ")) <= known


def test_what_the_page_of_checks_says_follows_from_the_rows():
    """Counts of verdicts, and ratios of networks and precisions, to the digits printed."""
    page = page_rows()
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    counts = {}
    for cells in page.values():
        word = cells[-1].partition(",")[0]
        counts[word] = counts.get(word, 0) + 1
    assert (
        f"{counts['within 10 %']} within 10 %, {counts['within 25 %']} within 25 %, "
        f"{counts['within 2 x']} within a factor of two, {counts['off']} off" in text
    )

    order = [f"{counts[word]} {word}" for word in ORDER if word in counts]
    assert f"All: {len(page)} figures: {', '.join(order)}." in PAGE.read_text(encoding="utf-8")

    def both(table, first, second, quantity):
        pairs = [
            [float(x.replace(",", "")) for x in page[table, row, quantity][1:3]]
            for row in (first, second)
        ]
        return [a / b for a, b in zip(*pairs, strict=True)]

    rates = "resnet50_training_rates"
    for name, first, second in (
        ("A100 over V100", "A100, mixed", "V100, mixed"),
        ("mixed over full precision", "V100, mixed", "V100, fp32"),
        ("mixed over TF32", "A100, mixed", "A100, TF32"),
    ):
        line = next(x for x in text.splitlines() if x.startswith(f"| {name}"))
        stated = [float(x) for x in line.split("|")[2:4]]
        assert stated == [pytest.approx(x, abs=0.006) for x in both(rates, first, second, "rate")]
    line = next(x for x in text.splitlines() if x.startswith("| batch 8 over 256"))
    columns = [[float(x) for x in cell.split(";")] for cell in line.split("|")[2:4]]
    for gpu, stated in zip(("v100", "a40"), zip(*columns, strict=True), strict=True):
        found = both(f"resnet50_training_{gpu}", "batch 8", "batch 256", "energy")
        assert list(stated) == [pytest.approx(x, abs=0.006) for x in found]
    line = next(x for x in text.splitlines() if x.startswith("| BERT-base (384 tokens) over"))
    columns = [[float(x) for x in cell.split(";")] for cell in line.split("|")[2:4]]
    for n, (gpu, batch) in enumerate((("V100", 32), ("A40", 8))):
        pair = page["bert_training", f"{gpu}, batch {batch}", "energy"][1:3]
        small = page[f"resnet50_training_{gpu.lower()}", f"batch {batch}", "energy"][1:3]
        for column, J, mJ in zip(columns, pair, small, strict=True):
            assert column[n] == pytest.approx(
                1e3 * float(J) / float(mJ.replace(",", "")), abs=0.006
            )
    line = next(x for x in text.splitlines() if x.startswith("| GAP9 over Cortex-M4"))
    columns = [[float(x.split("/")[1]) for x in cell.split(",")] for cell in line.split("|")[2:4]]
    for name, stated in zip(("ic", "kws", "vww", "ad"), zip(*columns, strict=True), strict=True):
        found = both("mlperf_tiny", f"mcu-m4 {name}", f"gap9 {name}", "energy")
        assert list(stated) == [pytest.approx(x, abs=0.51) for x in found]


def test_ranges_in_the_page_of_checks_are_those_of_the_rows():
    """Smallest and largest ratio of what does not agree, and of what does."""
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")

    def ends(table, quantity, rows):
        found = [ratio(table, row, quantity) for row in rows]
        return f"{min(found):.2f}", f"{max(found):.2f}"

    def of(table, *left_out):
        return [x.row for x in measured_table(table).rows if x.row not in left_out]

    low, high = ends("llama31_8b_decode", "energy", of("llama31_8b_decode"))
    assert f"| {high} to {low}; off from batch 64" in text
    v100 = [f"batch {n}" for n in (16, 32, 64, 128, 192)]
    low, high = ends("resnet50_training_v100", "energy", v100)
    assert f"from batch 16 to 192\n({low} to {high})" in text
    a40 = [f"batch {n}" for n in (32, 64, 128, 192, 256, 360, 512)]
    low, high = ends("resnet50_training_a40", "energy", a40)
    assert f"an A40's from 32 to 512 ({low} to {high})" in text
    tf32 = [row for row in of("resnet50_training_a40") if "TF32" in row]
    assert (
        "{} to {} | its arithmetic".format(*ends("resnet50_training_a40", "energy", tf32)) in text
    )
    low, high = ends(
        "bert_training", "energy", of("bert_training", "A40, batch 8", "A40, batch 56")
    )
    far = ratio("bert_training", "A40, batch 8", "energy")
    assert f"| {high} to {low} and {far:.2f}, " in text
    layers = [f"conv{n}" for n in range(1, 6)]
    low, high = ends("eyeriss_alexnet", "dram", layers)
    assert f"{low} to {high} a layer" in text
    low, high = ends("eyeriss_alexnet", "share", layers)
    assert f"gate by zeros ({low} to {high})" in text
    for chip in ("gap9", "mcu-m4"):
        names = ("kws", "vww", "ad")
        kws, vww, ad = (f"{ratio('mlperf_tiny', f'{chip} {x}', 'energy'):.2f}" for x in names)
        assert f"anomalies | {kws}, {vww}, {ad}" in text
