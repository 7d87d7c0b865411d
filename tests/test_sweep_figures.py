"""Figures of sweeps: what they show is what the table has."""

import pytest
from matplotlib.colors import to_hex, to_rgb

from hwmodel.errors import HwmodelError
from hwmodel.vary.sweep.results import Results
from hwmodel.views.colours import lightness
from hwmodel.views.sweep_figures import (
    SWEEP_PLOTS,
    View,
    draw_sweep,
    heatmap_figure,
    lines_figure,
    pareto_figure,
)

L1 = "hardware.levels.L1.capacity"
POINTS = [  # batch, L1 in KiB, method, energy in uJ
    (1, 64, "fp", 9), (1, 64, "bold", 3), (1, 256, "fp", 7), (1, 256, "bold", 4),
    (8, 64, "fp", 40), (8, 64, "bold", 11), (8, 256, "fp", 30), (8, 256, "bold", 2),
]  # fmt: skip


def table(**more):
    rows = [
        {
            "point": i, "network": "net", "accounting": "paper", "method": method,
            "mode": "training", "batch": batch, "hardware": "chip", L1: kib * 8192,
            "energy": energy * 1e6, "unit": "pJ", "capacity_bits": kib * 8192 + 8192 * batch,
            "reason": None, "published_accuracy_percent": 90.0 - energy,
        } | more
        for i, (batch, kib, method, energy) in enumerate(POINTS)
    ]  # fmt: skip
    return Results(tuple(rows[0]), rows)


def drawn(figure, kind, **view):
    usual, _ = SWEEP_PLOTS[kind]
    results = table()
    (axes, *_) = figure(results.rows, results.columns, View(**{**usual, **view})).axes
    return axes


def test_lines_are_the_lowest_over_what_is_not_shown():
    axes = drawn(lines_figure, "lines", x=L1)
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines == {"fp": [[64, 9], [256, 7]], "bold": [[64, 3], [256, 2]]}
    assert axes.get_xlabel() == "L1.capacity, KiB"
    assert axes.get_ylabel() == "energy, µJ"
    assert axes.figure.get_suptitle().splitlines() == [
        "net, chip, accounting paper, training (analytical, not measured)",
        "lines: the lowest energy over batch",
    ]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["64", "256"]  # as swept
    by_batch = drawn(lines_figure, "lines", x=L1, by="batch")
    lines = {line.get_label(): line.get_xydata().tolist() for line in by_batch.lines}
    assert lines == {"batch 1": [[64, 3], [256, 4]], "batch 8": [[64, 11], [256, 2]]}


def test_the_front_has_what_no_other_point_beats():
    axes = drawn(pareto_figure, "pareto")
    said = axes.figure.get_suptitle().splitlines()[-1]
    assert said == "points differ in batch, L1.capacity"
    fronts = {
        line.get_label(): line.get_xydata().tolist()
        for line in axes.lines
        if line.get_linestyle() == "-"
    }
    assert fronts == {"fp": [[65, 9], [257, 7]], "bold": [[65, 3], [264, 2]]}
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in points) == 8
    for line in points:  # seen at a glance, too: contrast with white of 2 to 1 at least, 1 mm
        red, green, blue = (1 - line.get_alpha() * (1 - c) for c in to_rgb(line.get_color()))
        light = lightness(to_hex((red, green, blue)))
        assert light < 75 and line.get_markersize() / 2 > 2  # "." is half as wide


def test_of_accuracy_more_is_better():
    axes = drawn(pareto_figure, "pareto", x="energy", y="published_accuracy_percent")
    fronts = [line.get_xydata().tolist() for line in axes.lines if line.get_linestyle() == "-"]
    assert fronts == [[[7, 83]], [[2, 88]]]


def test_shades_are_the_lowest_of_each_place():
    axes = drawn(heatmap_figure, "heatmap", x=L1, y="batch")
    assert axes.images[0].get_array().tolist() == [[3, 4], [11, 2]]
    assert [text.get_text() for text in axes.texts] == ["3", "4", "11", "2"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["64", "256"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "8"]


@pytest.mark.parametrize(
    ("energies", "texts"),
    [
        ([1, 1000], ["1", "1000"]),  # no power of ten
        ([0.1841701, 0.1840301], ["0.18417", "0.18403"]),  # so many tell how far they are apart
        ([1949.7, 1959.8, 1974.1], ["1,950", "1,960", "1,974"]),
        ([0.18417, 0.18403, 0.18402], ["0.18417", "0.18403", "0.18402"]),
        ([5, 5], ["5", "5"]),
        ([1 + 1e-13, 1], ["1", "1"]),  # what rounding leaves is no difference
    ],
)
def test_cells_of_unequal_energies_have_unequal_numbers(energies, texts):
    rows = [table().rows[0] | {"batch": n, "percent": of} for n, of in enumerate(energies)]
    view = View(x=L1, y="batch", z="percent")
    (axes, *_) = heatmap_figure(rows, tuple(rows[0]), view).axes
    assert [text.get_text() for text in axes.texts] == texts


def test_a_wide_range_of_shades_has_plain_numbers_beside_it_and_blanks_are_explained(tmp_path):
    rows = [r | {"energy": r["energy"] ** 2} for r in table().rows if r["batch"] * r[L1] < 1e7]
    draw_sweep(Results(table().columns, rows), tmp_path / "a.svg", "heatmap",
               View(x=L1, y="batch", where="batch < 9"))  # fmt: skip
    text = (tmp_path / "a.svg").read_text()
    assert "mathdefault" not in text
    assert ">only points with batch &lt; 9<" in text
    assert "over method; blank: no such point<" in text


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.parametrize("kind", SWEEP_PLOTS)
def test_every_kind_is_written_and_the_same_again(tmp_path, kind, ending):
    for name in ("a", "b"):
        view = View(x=L1, y="energy" if kind != "heatmap" else "batch")
        draw_sweep(table(), tmp_path / f"{name}.{ending}", kind, view)
    first = (tmp_path / f"a.{ending}").read_bytes()
    assert len(first) > 2000 and first == (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.parametrize(
    ("kind", "view", "message"),
    [
        ("parato", View(), "no plot of a sweep is called 'parato': did you mean 'pareto'?"),
        ("lines", View(), "a plot of lines needs --x"),
        ("heatmap", View(x=L1), "a plot of heatmap needs --y"),
        ("lines", View(x="batc"), "the table has no column 'batc': did you mean 'batch'?"),
        ("lines", View(x=L1, by="metod"), "did you mean 'method'?"),
        ("lines", View(x="method"), "column method holds 'fp'; numbers are needed"),
        ("pareto", View(where="batch > 99"), "no row has an energy and keeps 'batch > 99'"),
    ],
)
def test_what_cannot_be_drawn_is_said(tmp_path, kind, view, message):
    with pytest.raises(HwmodelError) as caught:
        draw_sweep(table(), tmp_path / "a.svg", kind, view)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_more_lines_than_can_be_told_apart_are_refused(tmp_path):
    rows = [table().rows[0] | {"batch": n, "point": n} for n in range(1, 15)]
    with pytest.raises(HwmodelError, match="column batch has 14 values; at most 12 lines"):
        draw_sweep(
            Results(table().columns, rows), tmp_path / "a.svg", "lines", View(x=L1, by="batch")
        )


def test_options_of_sweeps_are_for_their_tables_alone(hwmodel, tmp_path):
    hwmodel(
        "compare",
        "mlp-784-512-512-10",
        "--hardware",
        "ascend",
        "--methods",
        "fp",
        "--csv",
        "c.csv",
        "--accounting",
        "paper",
    )
    code, _, err = hwmodel("plot", "c.csv", "-o", "a.svg", "--x", "batch")
    assert (code, err) == (2, "hwmodel: --x batch: is for tables of a sweep, which c.csv is not\n")
