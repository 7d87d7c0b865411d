"""Figures show what the table says, all of it, in type that lies inside the page."""

import csv
import os
import re
from itertools import combinations
from math import fsum

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from hwmodel.errors import DataError
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.views.colours import look
from hwmodel.views.figures.canvas import STYLES, broken, foot, settings, settle, width_of
from hwmodel.views.figures.pareto import front
from hwmodel.views.figures.points import Box, Point, _between
from hwmodel.views.figures.records import Page
from hwmodel.views.figures.roofline import _named, roof, roofline_figure, roofline_points
from hwmodel.views.plot import PLOTS, draw, fitting, read_records
from tests.specs import CHIP, NETWORK, STACKED, written
from tests.specs import chip as made_chip
from tests.test_architecture import PACKAGE

ROOT = PACKAGE.parent
EXAMPLE = (
    ROOT
    / "reports"
    / "example"
    / "compare_vgg-small_ascend+v100_fp+binaryconnect+xnor-net+binarynet+bold+bold-bn_paper+chip_training_batch1.csv"
)
COMPARED = (
    "network,method,hardware,accounting,mode,batch,energy,unit,percent_of_baseline,forward,"
    "backward_input,backward_weight,update,forward_product,forward_elementwise,"
    "backward_input_product,backward_input_elementwise,backward_weight_product,"
    "backward_weight_elementwise,compute,memory,source_percent,residual_percent"
)
OPERATIONS = "(operations)"  # in the place of a memory
UNITS = {
    "µJ": 1e6,
    "nJ": 1e3,
    "pJ": 1,
    "10⁶ MAC (fp32)": 1e6,
    "10³ MAC (fp32)": 1e3,
    "MAC (fp32)": 1,
}


def compared(*methods, chips=("ascend", "v100"), unit="pJ", network="vgg-small"):
    """Lines of a comparison, each 10 percent less than the one before."""
    return [
        dict(
            zip(
                COMPARED.split(","),
                f"{network},{method},{chip},paper,training,1,{1e9 - 1e8 * i},{unit},{100 - 10 * i},"
                f"{5e8 - 1e8 * i},3e8,1e8,1e8,{4e8 - 1e8 * i},1e8,2e8,1e8,1e8,0,"
                f"4e8,{6e8 - 1e8 * i},{95 - 10 * i},".split(","),
                strict=True,
            )
        )
        for chip in chips
        for i, method in enumerate(methods)
    ]


def reported(*layers, method="bold", chip="ascend", unit="pJ", network="vgg-small"):
    """Rows of a report whose energies are all different."""
    rows, cells = [], []
    for phase in ("forward", "backward_weight", "backward_input", "update"):
        cells += [
            (phase, tensor, memory, "", "write" if tensor == "O" else "read")
            for tensor in "IFO"
            for memory in ("DRAM", "L1")
        ]
        cells.append((phase, "O", "", "mac", "operate"))
    for i, layer in enumerate(layers):
        for j, (phase, tensor, memory, operation, direction) in enumerate(cells):
            energy = 1000 * (i + 1) + 7 * j
            rows.append(
                {
                    "network": network, "hardware": chip, "method": method, "accounting": "paper",
                    "batch": "1", "layer": layer, "pass": phase,
                    "component": "elementwise" if phase == "update" else "product",
                    "tensor": tensor, "role": "operand", "memory": memory, "operation": operation,
                    "direction": direction, "bits": "8", "elements": "1", "count": "8",
                    "price": str(energy / 8), "energy": str(energy), "unit": unit,
                }
            )  # fmt: skip
    return rows


def place(record):
    """Where the energy of a record goes."""
    return record["memory"] or OPERATIONS


def figure_of(records, kind, style="paper"):
    table = "compare" if "percent_of_baseline" in records[0] else "report"
    with settings(STYLES[style]):
        figure = PLOTS[kind][table](Page(records, STYLES[style]))
        settle(figure)
        return figure


def shown(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def bars(axes):
    """Widths of the bars, and of pieces of bars, by the place that they stand at.

    The pieces of a bar follow one another from zero, with no gap and none on another.
    """
    found = {}
    for patch in axes.patches:
        y = round(patch.get_y() + patch.get_height() / 2)
        assert patch.get_x() == pytest.approx(fsum(found.get(y, ())))
        found.setdefault(y, []).append(patch.get_width())
    return found


def free_names(figure, axes):
    """Names in a panel, as its texts; none of them on another, on a point or on a line."""
    matplotlib.backends.backend_agg.FigureCanvasAgg(figure).draw()
    inside = [text for text in axes.texts if text.get_text()]
    boxes = [matplotlib.text.Text.get_window_extent(text) for text in inside]  # without leaders
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    for line in axes.lines:
        path = line.get_transform().transform_path(line.get_path())
        for text, box in zip(inside, boxes, strict=True):
            if line.get_linestyle() == "None":
                assert not any(box.contains(x, y) for x, y in path.vertices), text
            else:
                assert not path.intersects_bbox(box, filled=False), text
    return [text.get_text() for text in inside]


# What is drawn


def test_bars_of_methods_are_as_long_as_their_percentages_and_marks_stand_at_the_published():
    records = compared("fp", "binarynet", "bold")
    figure = figure_of(records, "methods")
    assert [axes.get_title(loc="left") for axes in shown(figure)] == ["ascend", "v100"]
    for axes in shown(figure):
        assert bars(axes) == {0: [100], 1: [90], 2: [80]}
        assert [line.get_xdata()[0] for line in axes.lines] == [95, 85, 75]
        assert {text.get_text() for text in axes.texts} == {"100", "90.0", "80.0"}
    names = [text.get_text() for text in shown(figure)[0].get_yticklabels()]
    assert names == ["fp", "binarynet", "bold"]


def test_a_method_has_its_colour_and_hatch_in_any_company_and_order():
    for methods in (["fp", "bold", "binarynet"], ["binarynet", "fp"], ["mine", "binarynet"]):
        figure = figure_of(compared(*methods), "methods")
        for axes in shown(figure):
            for patch, method in zip(axes.patches, methods, strict=True):
                assert to_hex(patch.get_facecolor()) == look(method).colour
                assert set(patch.get_hatch() or "") == set(look(method).hatch)


def test_a_method_without_energy_has_a_word_and_no_bar():
    records = compared("fp", "bold", chips=("ascend",))
    columns = COMPARED.split(",")
    made = columns[columns.index("percent_of_baseline") : columns.index("source_percent")]
    records[1] |= dict.fromkeys(("energy", *made), "")
    (axes,) = shown(figure_of(records, "methods"))
    assert list(bars(axes)) == [0]
    assert " no energy" in [text.get_text() for text in axes.texts]
    (axes,) = shown(figure_of(records, "passes"))
    assert list(bars(axes)) == [0]


def test_passes_of_methods_add_up_to_their_percentages():
    figure = figure_of(compared("fp", "binarynet", "bold"), "passes")
    for axes in shown(figure):
        sums = {place: sum(widths) for place, widths in bars(axes).items()}
        assert sums == pytest.approx({0: 100, 1: 90, 2: 80})
        # of 1e9: products and elementwise work of each pass 4e8 + 1e8, 2e8 + 1e8, 1e8; the step 1e8
        assert bars(axes)[0] == pytest.approx([40, 10, 20, 10, 10, 10])
    assert [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()] == [
        "forward product", "forward elementwise", "backward input product",
        "backward input elementwise", "backward weight product", "update",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "along"), [("layers", "layer"), ("levels", "memory"), ("passes", "pass")]
)
@pytest.mark.parametrize("unit", ["pJ", "MAC (fp32)"])
def test_stacks_add_up_to_the_energy_of_the_table(kind, along, unit):
    records = reported("conv1", "conv2", "fc1", unit=unit)
    (axes,) = shown(figure_of(records, kind))
    divisor = UNITS[axes.get_xlabel().removeprefix("energy, ")]
    names = [text.get_text().replace(" ", "_") for text in axes.get_yticklabels()]
    for y, widths in bars(axes).items():
        energies = [float(r["energy"]) for r in records if (r[along] or OPERATIONS) == names[y]]
        assert divisor * fsum(widths) == pytest.approx(fsum(energies))
    assert sorted(names) == sorted({record[along] or OPERATIONS for record in records})
    percents = [float(text.get_text().removesuffix(" %")) for text in axes.texts]
    assert sum(percents) == pytest.approx(100, abs=0.5)
    whole = fsum(float(record["energy"]) for record in records)
    value, in_unit = re.fullmatch(
        r"bold on ascend: ([\d.,]+) (.+)", axes.get_title(loc="left")
    ).groups()
    rounded = float(value.replace(",", "")) * UNITS[in_unit]
    assert rounded == pytest.approx(whole, rel=5e-3)  # of three digits


def test_many_layers_stand_as_a_profile_of_the_same_energy():
    layers = [f"stage{i // 10}-conv{i}" for i in range(130)]  # no dots, no blocks
    records = reported(*layers)
    (axes,) = shown(figure_of(records, "layers"))
    divisor = UNITS[axes.get_ylabel().removeprefix("energy, ")]
    heights = axes.patches[-1].get_data().values  # the uppermost part ends where the bars do
    for layer, height in zip(layers, heights, strict=True):
        energies = [float(record["energy"]) for record in records if record["layer"] == layer]
        assert divisor * height == pytest.approx(fsum(energies))
    names = " ".join(text.get_text().replace("\n", "") for text in axes.texts)
    assert "130 stage12-conv129" in names  # the largest


def test_tensors_beyond_the_eighth_are_one_part_and_nothing_is_lost():
    records = reported("conv1")
    for i, record in enumerate(records):
        record["tensor"] = f"tensor {i % 12}"
    figure = figure_of(records, "levels")
    (axes,) = shown(figure)
    divisor = UNITS[axes.get_xlabel().removeprefix("energy, ")]
    everything = fsum(float(record["energy"]) for record in records)
    assert divisor * fsum(fsum(w) for w in bars(axes).values()) == pytest.approx(everything)
    assert "4 other" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_panels_with_many_tensors_share_one_legend_and_a_single_tensor_is_named():
    names = {"fp": 9, "bold": 10, "xnor-net": 12}
    records = []
    for method, many in names.items():
        rows = reported("conv1", method=method)
        records += [row | {"tensor": f"tensor {i % many}"} for i, row in enumerate(rows)]
    figure = figure_of(records, "levels")
    shown_names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(set(shown_names)) == sorted(shown_names)
    assert [name for name in shown_names if "other" in name] == ["other"]
    alone = figure_of(records[: len(records) // 3], "levels").legends[0].get_texts()
    assert {text.get_text() for text in alone} == {f"tensor {i}" for i in range(9)}


def test_cells_are_the_shares_of_tensors_at_levels_and_a_pair_without_rows_is_blank():
    records = [r | {"energy": "1"} for r in reported("conv1") if r["pass"] == "forward"]
    records[0]["energy"] = "3"  # of I at DRAM; 3 + 6 x 1 = 9 in all
    (axes,) = shown(figure_of(records, "level-tensor"))
    tensors = [text.get_text().partition(":")[0] for text in axes.get_yticklabels()]
    levels = [text.get_text() for text in axes.get_xticklabels()]
    cells = {
        (tensors[int(text.get_position()[1])], levels[int(text.get_position()[0])]): text.get_text()
        for text in axes.texts
    }
    wanted = {(t, level): "11.1" for t in "IFO" for level in ("DRAM", "L1")}
    assert cells == wanted | {("I", "DRAM"): "33.3", ("O", OPERATIONS): "11.1"}


def test_operations_stand_behind_all_memories():
    records = reported("conv1")
    records += [r | {"memory": "L0"} for r in records if r["memory"] == "L1"]  # after a mac
    (axes,) = shown(figure_of(records, "level-tensor"))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["DRAM", "L1", "L0", OPERATIONS]
    rows = [text.get_text() for text in axes.get_yticklabels()]
    assert rows == ["I: ifmap", "F: filter", "O: ofmap"]
    (axes,) = shown(figure_of(records, "levels"))
    assert [text.get_text() for text in axes.get_yticklabels()] == ["DRAM", "L1", "L0", OPERATIONS]


def test_a_memory_called_as_the_operations_are_in_a_report_is_no_operation():
    """Words of the tool and names of users stand in columns of their own (case B10)."""
    records = [r | {"memory": r["memory"] and f"mac {r['memory']}"} for r in reported("conv1")]
    for record in records:
        record["memory"] = record["memory"].replace("mac DRAM", "mac").replace("mac L1", "compute")
    (axes,) = shown(figure_of(records, "levels"))
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["mac", "compute", OPERATIONS]


def test_several_reports_stand_side_by_side():
    records = reported("conv1") + reported("conv1", method="fp")
    for kind in ("layers", "levels", "passes", "level-tensor"):
        titles = [axes.get_title(loc="left") for axes in shown(figure_of(records, kind))]
        assert [title.split(":")[0] for title in titles] == ["bold on ascend", "fp on ascend"]


@pytest.mark.parametrize("kind", ["layers", "levels", "passes", "level-tensor"])
def test_panels_have_one_unit_and_one_order(kind):
    """6.4 times as much beside 2.4 of the unit, and another order of rows in the table."""
    small, large = reported("conv1"), reported("conv1", method="fp")
    for record in large:
        record["energy"] = str(6.4 * float(record["energy"]))
    large.sort(key=lambda record: record["tensor"] != "O")
    both = shown(figure_of(small + large, kind))
    titles = [axes.get_title(loc="left").split(": ")[1].split() for axes in both]
    wholes = [fsum(float(record["energy"]) for record in of) for of in (small, large)]
    assert titles[0][1] == titles[1][1]
    divisor = {"pJ": 1, "nJ": 1e3, "µJ": 1e6}[titles[0][1]]
    shown_as = [float(number.replace(",", "")) for number, _ in titles]
    assert shown_as == pytest.approx([whole / divisor for whole in wholes], rel=5e-3)
    names = [[text.get_text() for text in axes.get_yticklabels()] for axes in both]
    assert names[0] == (names[1] or names[0])
    looks = [[patch.get_facecolor() for patch in axes.patches] for axes in both]
    assert kind == "level-tensor" or looks[0] == looks[1]  # of parts, from the left


# Accuracy against energy


def test_methods_that_a_figure_of_accuracies_leaves_out_are_named():
    figure = figure_of(compared("fp", "bold", "mine", chips=("ascend",)), "pareto")
    told = " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))
    assert "without mine, of which there is no energy or no accuracy" in " ".join(told.split())
    every = figure_of(compared("fp", "bold", chips=("ascend",)), "pareto")
    assert "without" not in " ".join(t.get_text() for t in every.findobj(matplotlib.text.Text))


def test_points_stand_at_their_energy_and_published_accuracy():
    """Accuracies of the table 'Results with VGG-SMALL on CIFAR10' of the source."""
    (axes,) = shown(figure_of(compared("fp", "bold", "mine", chips=("ascend",)), "pareto"))
    points = {tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() != "None"}
    assert points == {(100, 93.8), (90, 90.29)}
    assert [text.get_text() for text in axes.texts] == ["fp", "bold"]


@pytest.mark.parametrize("style", ["paper", "slides"])
def test_names_of_points_cover_neither_points_nor_names_nor_lines(style):
    figure = figure_of(read_records(EXAMPLE), "pareto", style)
    for axes in shown(figure):
        assert len(free_names(figure, axes)) == 6


def test_traced_accuracy_and_energy_go_before_published_ones():
    records = compared("fp", "bold", chips=("ascend",))
    for record, accuracy, energy in zip(records, ("97.5", "96"), ("4e12", "2e10"), strict=True):
        record |= {"trace_accuracy_percent": accuracy, "energy_middle": energy}
    (axes,) = shown(figure_of(records, "pareto"))
    points = {tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() != "None"}
    assert axes.get_xlabel().replace("\n", " ").endswith("mJ")
    assert points == {(4000, 97.5), (20, 96)}  # 1 mJ is 1e9 pJ


def test_the_front_is_what_nothing_beats():
    points = [Point(*at, "", "") for at in ((3, 5), (1, 1), (2, 4), (2, 3), (4, 5), (5, 6))]
    assert [(p.x, p.y) for p in front(points)] == [(1, 1), (2, 4), (3, 5), (5, 6)]


# The roofline


def test_a_roof_is_made_of_the_chip_s_prices(tmp_path):
    top = roof(load(Hardware, written(tmp_path, CHIP)))
    assert (top.mac, top.bits, top.byte, top.level, top.unit) == (4.6, 32, 50, "DRAM", "pJ")
    assert top.energy(10) == pytest.approx(4.6 + 5)
    dearer_to_write = made_chip((None, 3.0, 5.0), (800, 1.0, 1.0))  # energies per bit
    assert roof(dearer_to_write).byte == 8 * 3.0
    assert roof(load(Hardware, "v100")).byte == pytest.approx(50)  # 200 MAC a word of 4 bytes


def test_a_layer_s_point_is_its_energy_per_mac_over_its_macs_per_byte(tmp_path):
    top = roof(load(Hardware, written(tmp_path, CHIP)))
    records = [
        record | {"count": "800", "energy": "50"}
        for record in reported("conv1", method="mine")
        if record["pass"] in ("forward", "backward_input")
    ]
    records += [r | {"component": "elementwise", "energy": "1e9"} for r in records[:1]]
    (point,) = roofline_points(records, top, {"conv1": 1000})
    # each pass: 1000 MACs; I, F and O cross DRAM with 100 bytes each; 7 rows of 50 pJ
    assert point == Point(1000 / 300, 7 * 50 / 1000, "conv1", "mine", 2 * 7 * 50)


def test_layers_without_traffic_are_left_out_and_counted(hwmodel, tmp_path):
    asked = "mlp-784-512-512-10 --hardware ascend --method bold --mode inference --csv r.csv"
    assert hwmodel("report", *asked.split(), "--accounting", "chip")[0] == 0
    page = Page(read_records(tmp_path / "r.csv"), STYLES["paper"])
    with settings(page.style):
        figure = roofline_figure(page)
    points = [
        xy
        for line in shown(figure)[0].lines
        if line.get_marker() != "None"
        for xy in line.get_xydata()
    ]
    assert len(points) == 2  # the first reads the input, the last writes what it gives
    words = " ".join(text.get_text() for text in figure.texts)
    assert "; left out, without traffic there: " in " ".join(words.split())
    assert hwmodel("plot", "r.csv", "--kind", "roofline", "-o", "r.svg")[0] == 0


@pytest.mark.parametrize(("chip", "method"), [("ascend", "fp"), (STACKED, "fp"), ("v100", "bold")])
def test_no_layer_lies_below_the_roof_that_its_arithmetic_has(hwmodel, tmp_path, chip, method):
    words = f"vgg-small --method {method} --csv r.csv --accounting paper".split()
    hwmodel("report", *words, "--hardware", chip)
    files = (chip,) if chip == STACKED else ()
    page = Page(read_records(tmp_path / "r.csv"), STYLES["paper"], hardware=files)
    with settings(page.style):
        (axes,) = shown(roofline_figure(page))
    top = roof(load(Hardware, chip))
    points = [xy for line in axes.lines if line.get_marker() != "None" for xy in line.get_xydata()]
    assert len(points) == 9
    for x, y in points:
        assert y >= (top.energy(x) if method == "fp" else top.byte / x) * (1 - 1e-9)


@pytest.mark.parametrize("style", ["paper", "slides"])
@pytest.mark.parametrize("chip", ["ascend", STACKED, "v100"])
def test_what_the_lines_of_a_roofline_are_stands_on_no_line(hwmodel, tmp_path, chip, style):
    words = ["vgg-small", "--method", "bold", "--csv", "r.csv", "--accounting", "paper"]
    hwmodel("report", *words, "--hardware", chip)
    files = (chip,) if chip == STACKED else ()
    page = Page(read_records(tmp_path / "r.csv"), STYLES[style], hardware=files)
    with settings(STYLES[style]):
        figure = roofline_figure(page)
        (axes,) = shown(figure)
        names = free_names(figure, axes)
    assert sum("MAC" in name or "/byte" in name for name in names) == 2
    assert {to_hex(t.get_color()) for t in axes.texts if "byte" in t.get_text()} == {"#595959"}


def test_points_at_one_place_share_a_name_and_the_costliest_have_one():
    """Of twelve layers of a method six have names: the three that cost most, three dear a MAC."""
    points = [Point(10.0 + n, 20.0 - n, f"a{n}", "m", float(n)) for n in range(12)]
    points += [Point(21.001, 9.0, "b", "m", 1.0)]  # where a11 is
    named = [point.text for point in _named(points)]
    assert [text for text in named if text] == ["a0", "a1", "a2", "a9", "a10", "a11, b"]
    assert [(p.x, p.y) for p in _named(points)] == [(p.x, p.y) for p in points]


def test_macs_are_those_of_the_whole_batch(hwmodel, tmp_path):
    """In full precision every MAC is an operation of the table."""
    hwmodel(
        "report",
        "vgg-small",
        "--hardware",
        "v100",
        "--method",
        "fp",
        "--batch",
        "3",
        "--csv",
        "r.csv",
        "--accounting",
        "paper",
    )
    records = read_records(tmp_path / "r.csv")
    with settings(STYLES["paper"]):
        (axes,) = shown(roofline_figure(Page(records, STYLES["paper"])))
    points = [xy for line in axes.lines if line.get_marker() != "None" for xy in line.get_xydata()]
    layers = dict.fromkeys(record["layer"] for record in records)
    for layer, (_, y) in zip(layers, points, strict=True):
        mine = [record for record in records if record["layer"] == layer]
        macs = sum(int(record["count"]) for record in mine if record["operation"] == "mac")
        assert y == pytest.approx(fsum(float(record["energy"]) for record in mine) / macs)


def test_a_roofline_of_things_of_one_s_own_takes_their_files(hwmodel, tmp_path):
    net, chip = (
        written(tmp_path, text, name=name)
        for text, name in ((NETWORK, "net.yaml"), (CHIP, "chip.yaml"))
    )
    hwmodel(
        "report",
        net,
        "--hardware",
        chip,
        "--method",
        "fp",
        "--csv",
        "r.csv",
        "--accounting",
        "paper",
    )
    roofline = ("plot", "r.csv", "--kind", "roofline", "-o", "r.svg")
    assert hwmodel(*roofline)[0] == 0  # where the command of the table names them
    for name in ("net.yaml", "chip.yaml"):
        (tmp_path / "moved").mkdir(exist_ok=True)
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert hwmodel(*roofline) == (
        2, "", "hwmodel: no network is bundled as 'net': give its file, --network FILE; "
        "no hardware is bundled as 'chip': give its file, --hardware FILE.yaml\n"
    )  # fmt: skip
    assert hwmodel(*roofline, "--network", "moved/net.yaml") == (
        2, "", "hwmodel: no hardware is bundled as 'chip': give its file, --hardware FILE.yaml\n"
    )  # fmt: skip
    files = ("--network", "moved/net.yaml", "--hardware", "moved/chip.yaml")
    code, _, err = hwmodel(*roofline, *files)
    assert (code, err) == (0, "wrote r.svg\n")
    assert ">32-bit MAC 4.6 pJ<" in (tmp_path / "r.svg").read_text()
    code, _, err = hwmodel(*roofline, "--network", "vgg-small", "--hardware", "moved/chip.yaml")
    assert code == 0 or "is none of the network's" in err
    assert fitting(read_records(tmp_path / "r.csv")) == [
        "layers",
        "levels",
        "passes",
        "level-tensor",
    ]


# The page


LONG = "an-unusually-long-name-of-a-thing-that-somebody-has-tried-WWWWWWWWWWWWWWWWWWWWWWWW"
EVERY = tuple(bundled(Method))
PAGES = {
    "one": (compared("fp", chips=("ascend",)), reported("conv1")),
    "long": (
        compared(LONG, "fp", LONG + "2", chips=(LONG, "ascend"), network=LONG),
        reported(LONG, "conv1", f"{LONG}.conv2", method=LONG, chip=LONG, network=LONG),
    ),
    "many": (
        compared(*EVERY[:9], chips=("ascend", "v100", "eyeriss"), unit="MAC (fp32)")
        + [r | {"percent_of_baseline": "0.0123"} for r in compared(*EVERY[9:], chips=("ascend",), unit="MAC (fp32)")],
        [row for name in "abc" for row in reported(*(f"layer{i}" for i in range(120)), method=name, unit="MAC (fp32)")],
    ),
}  # fmt: skip
BOTH = ("paper", "slides")
THOROUGH = os.environ.get("HWMODEL_TESTS") == "thorough"
STYLES_OF = {
    "one": BOTH if THOROUGH else BOTH[:1],
    "long": BOTH,
    "many": BOTH if THOROUGH else BOTH[1:],
}
DRAWN = [
    (company, table, kind, style)
    for company, kinds in ((c, [(t, k) for k, ts in PLOTS.items() for t in ts]) for c in PAGES)
    for table, kind in kinds
    for style in STYLES_OF[company]
    if kind != "roofline" and not (kind == "pareto" and company == "long")
]


def drawn_texts(figure):
    """Boxes of all texts that are seen, in inches; a tick beyond its axis is not."""
    beyond = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        for label in (tick.label1, tick.label2)
    }
    for text in set(figure.findobj(matplotlib.text.Text)) - beyond:
        seen = text.axes is None or text.axes.get_visible()
        if seen and text.get_visible() and text.get_text().strip():
            yield text, [edge / figure.dpi for edge in text.get_window_extent().extents]


@pytest.mark.parametrize(("company", "table", "kind", "style"), DRAWN)
def test_every_text_lies_inside_the_page_in_type_of_its_style(company, table, kind, style):
    records = PAGES[company][table == "report"]
    sizes = STYLES[style]
    with settings(sizes):
        figure = PLOTS[kind][table](Page(records, sizes))
        settle(figure)
        matplotlib.backends.backend_agg.FigureCanvasAgg(figure).draw()
        width, height = figure.get_size_inches()
        assert width == sizes.width
        count = 0
        for text, (left, bottom, right, top) in drawn_texts(figure):
            count += 1
            inside = (
                left >= -0.01 and right <= width + 0.01 and bottom >= -0.01 and top <= height + 0.01
            )
            assert inside, (text.get_text(), left, right, width, bottom, top, height)
            assert text.get_size() in (sizes.size, sizes.small)
        assert count > 4
        for axes in shown(figure):
            labels = [
                t
                for t in axes.get_yticklabels()
                if t.get_text() and axes.yaxis.get_tick_params()["labelleft"]
            ]
            boxes = [label.get_window_extent() for label in labels]
            for one, other in combinations(boxes, 2):
                shared = min(one.y1, other.y1) - max(one.y0, other.y0)
                assert shared < 0.25 * min(one.height, other.height)


def test_type_of_a_paper_is_of_seven_to_eight_points_in_a_column_of_three_and_a_half_inches():
    paper, slides = STYLES["paper"], STYLES["slides"]
    assert paper.width == 3.5
    assert 7 <= paper.small <= paper.size <= 8
    assert slides.small / slides.width > 0.6 * paper.small / paper.width
    assert slides.small >= 12


def test_a_draft_says_at_its_foot_what_made_it_and_a_paper_does_not(tmp_path):
    records = read_records(EXAMPLE)
    made = (records[0]["command"], records[0]["inputs_sha256"])
    for style, there in (("draft", True), ("paper", False), ("slides", False)):
        draw(records, tmp_path / "f.svg", style=STYLES[style])
        texts = re.findall(r"<text[^>]*>([^<]*)<", (tmp_path / "f.svg").read_text())
        whole = "".join("".join(texts).split())  # of lines that a long command takes
        assert all(("".join(word.split()) in whole) == there for word in made)


@pytest.mark.parametrize("kind", ["methods", "passes", "pareto"])
def test_a_foot_covers_nothing_and_moves_nothing(kind):
    figure = figure_of(read_records(EXAMPLE), kind, "draft")
    sizes = [axes.get_window_extent().size for axes in shown(figure)]
    foot(figure, "1.0", "a" * 60, "hwmodel " + "compare " * 20)
    figure.draw_without_rendering()
    assert np.allclose(sizes, [axes.get_window_extent().size for axes in shown(figure)])
    words = figure.texts[-1].get_window_extent()
    assert figure.bbox.y0 <= words.y0
    assert words.y1 <= min(part.get_tightbbox().y0 for part in [*shown(figure), *figure.legends])
    assert figure.texts[0].get_window_extent().y1 <= figure.bbox.y1  # the caption


def test_lines_are_as_short_as_asked_for_and_lose_nothing():
    for text in (LONG, "one two three four five six seven", "W" * 50):
        lines = broken(text, 1.0, 7.0)
        assert width_of(lines, 7.0) <= 1.0
        assert re.sub(r"\s", "", lines) == re.sub(r"\s", "", text)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_a_figure_is_the_same_to_the_byte_and_undated(tmp_path, ending):
    records = read_records(EXAMPLE)
    draw(records, tmp_path / f"one.{ending}", kind="passes")
    draw(records, tmp_path / "other.png", tmp_path / f"two.{ending}", kind="passes")
    one = (tmp_path / f"one.{ending}").read_bytes()
    assert one == (tmp_path / f"two.{ending}").read_bytes()
    assert not re.search(rb"CreationDate|<dc:date>", one)


def test_text_is_text_and_its_fonts_are_in_the_file(tmp_path):
    records = read_records(EXAMPLE)
    draw(records, tmp_path / "f.svg", tmp_path / "f.pdf")
    svg, pdf = (tmp_path / "f.svg").read_text(), (tmp_path / "f.pdf").read_bytes()
    assert ">binaryconnect</text>" in svg
    assert b"/FontFile2" in pdf  # a TrueType font, embedded
    assert b"/Type3" not in pdf


# What is refused


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("c.csv", "--style", "papers"), "no style of plots is called 'papers': did you mean 'paper'?"),
        (("c.csv", "c.csv"), "c.csv: of `compare` one table is drawn at a time"),
        (("r.csv", "c.csv"), "c.csv: of `compare` one table is drawn at a time"),
        (("r.csv", "r.csv"), "r.csv: is of bold on ascend, paper, as is r.csv"),
        (("r.csv", "n.csv"),
         "n.csv: is of network alexnet, and r.csv of vgg-small: not to be set side by side"),
        (("m.csv",), "m.csv: has rows of more than one hardware: ascend, v100"),
        (("o.csv",), "o.csv: has rows of more than one network: vgg-small, alexnet"),
        (("u.csv", "--kind", "pareto"), "no row has both an energy and an accuracy, traced or published; state those you know, --accuracy mine=91.2"),
        (("b.csv", "--kind", "roofline"), "b.csv:3: bits '-8' is no number of bits"),
        (("t.csv", "--kind", "roofline"), "t.csv:3: count 'many' is no count"),
        (("old.csv",), "old.csv: is a table of format 1, and format 2 is read: make it anew"),
        (("older.csv",), "older.csv: is a table of format 1, and format 2 is read: make it anew, hwmodel compare x"),
        (("l.csv",), "l.csv:2: energy 1.7e+308 is above 1e+100, the most that is drawn"),
        (("w.csv",), "w.csv:2: method has 501 characters; 500 are drawn"),
        (("r.csv", "--kind", "roofline"), "layer conv0 of the table is none of the network's: it was made of other files"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_are_one_message(hwmodel, tmp_path, arguments, sentence):
    tables = {
        "c": compared("fp"), "r": reported("conv0"), "n": reported("conv0", network="alexnet"),
        "m": reported("a") + reported("b", chip="v100"), "u": compared("mine"),
        "o": compared("fp") + compared("fp", network="alexnet"), "b": reported("conv1"),
    }  # fmt: skip
    tables["b"][1]["bits"] = "-8"
    tables |= {"l": compared("fp"), "w": compared("w" * 501), "t": reported("conv1")}
    tables["t"][1]["count"] = "many"
    tables["old"] = [{"layer": "conv1", "level": "DRAM", "energy": "1", "unit": "pJ"}]
    tables["older"] = [{"forward": "1", "elementwise": "1", "command": "hwmodel compare x"}]
    tables["l"][0]["energy"] = "1.7e+308"
    for name, records in tables.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, records[0])
            writer.writeheader()
            writer.writerows(records)
    before = sorted(tmp_path.iterdir())
    assert hwmodel("plot", *arguments, "-o", "x.svg") == (2, "", f"hwmodel: {sentence}\n")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(not THOROUGH, reason="10 s")
def test_a_published_table_of_many_networks_is_one_figure(hwmodel, tmp_path):
    words = ("--accounting", "paper", "--optimal-tiles", "no", "--csv", "p.csv")
    hwmodel("reproduce", "imagenet_resnet18", *words)
    records = read_records(tmp_path / "p.csv")
    assert len({record["network"] for record in records}) > 10
    (axes, _) = shown(figure_of(records, "pareto"))
    points = [xy for line in axes.lines if line.get_marker() != "None" for xy in line.get_xydata()]
    assert len(points) == 15  # rows of the source's table, all of which have an accuracy
    names = [text.get_text().replace("\n", "") for text in axes.texts]
    assert len(set(names)) >= 14 and "bnext" in names


# The picture of the README


def test_the_picture_of_the_readme_is_what_the_tool_draws(tmp_path):
    committed = (ROOT / "docs" / "comparison.svg").read_text(encoding="utf-8")
    draw(read_records(EXAMPLE), tmp_path / "comparison.svg", style=STYLES["paper"])
    drawn = (tmp_path / "comparison.svg").read_text(encoding="utf-8")
    assert len(committed.encode()) < 150_000
    assert "docs/comparison.svg" in (ROOT / "README.md").read_text(encoding="utf-8")
    words = re.compile(r"<text[^>]*>([^<]*)</text>")
    assert words.findall(committed) == words.findall(drawn)
    if f"Matplotlib v{matplotlib.__version__}," in committed:
        assert committed == drawn


def test_how_far_a_mark_is_from_a_leader():
    """By hand: the line goes from (2, 1), the end of the name's box, to (10, 1)."""
    box, end = Box(0, 0, 2, 1), (10.0, 1.0)
    marks = {(6, 4): 3.0, (12, 1): 2.0, (2, 0): 1.0, (5, 1): 0.0}
    assert {mark: _between(box, end, mark) for mark in marks} == pytest.approx(marks)


def test_nothing_to_draw_is_said():
    records = [record | {"energy": "0"} for record in reported("conv1")]
    with pytest.raises(DataError, match="the table has no energy"):
        figure_of(records, "level-tensor")


def test_a_roofline_of_an_edited_chip_is_not_drawn_with_the_bundled_one_of_its_name(
    hwmodel, tmp_path
):
    text = hwmodel("hardware", "show", "ascend")[1].replace("0.02 GB/s/mW", "0.2 GB/s/mW")
    (tmp_path / "mine.yaml").write_text(text)
    made = hwmodel(
        "report",
        "conv-small",
        "--hardware",
        "mine.yaml",
        "--method",
        "fp",
        "--csv",
        "r.csv",
        "--accounting",
        "paper",
    )
    assert made[0] == 0, made[2]
    roofline = ("plot", "r.csv", "--kind", "roofline", "-o", "r.svg")
    assert hwmodel(*roofline)[0] == 0  # of the file that the command names
    for change, which in (
        (None, "the bundled one"),
        (("0.2 GB", "0.3 GB"), "the file that there is"),
    ):
        if change is None:
            (tmp_path / "mine.yaml").rename(tmp_path / "moved.yaml")
        else:
            (tmp_path / "mine.yaml").write_text(text.replace(*change))
        code, _, err = hwmodel(*roofline)
        assert code == 2 and err.endswith(": give its file, --hardware FILE.yaml\n")
        assert f"made of another ascend than {which}" in err
    assert hwmodel(*roofline, "--hardware", "moved.yaml")[0] == 0
