"""Results in a notebook show themselves, draw themselves, and the tutorial runs."""

import json

import pandas as pd
import pytest

import hwmodel
from hwmodel import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.model.notebook import Lines
from tests.page import parsed
from tests.test_architecture import PACKAGE

TUTORIAL = PACKAGE.parent / "docs" / "tutorial.ipynb"
NET = "mlp-784-512-512-10"


@pytest.fixture(scope="module")
def report():
    return hwmodel.evaluate(NET, "ascend", "bold", accounting="paper")


def compared():
    return hwmodel.compare(
        NET, "ascend", ["fp", "bold"], accounting="paper", optimal_tiles=False
    )  # fmt: skip


def test_the_tutorial_runs_cell_by_cell():
    cells = json.loads(TUTORIAL.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 8
    names = {}
    for number, text in enumerate(code):
        exec(compile(text, f"cell {number}", "exec"), names)
    assert set(names["cheapest"]["method"]) <= {"fp", "int8", "bold"}
    assert all(not cell.get("outputs") for cell in cells)  # no numbers that could grow old


def test_a_report_shows_its_layers_and_their_sum(report):
    tree = parsed(report._repr_html_())
    rows = [[cell.text for cell in row.children] for row in tree.all("tr")]
    assert rows[0][0] == "layer" and rows[0][-2:] == ["sum, pJ", "%"]
    assert [row[0] for row in rows[1:]] == list(report.by("layer").index)
    assert sum(float(row[-1]) for row in rows[1:]) == pytest.approx(100, abs=0.2)
    assert float(rows[1][-2].replace(",", "")) == pytest.approx(
        report.table.query("layer == 'fc1'")["energy"].sum(), rel=1e-3
    )


def test_names_of_anybody_are_text(report):
    net = load_network(NET).model_copy(update={"name": "<b>x</b>"})
    assert "<b>" not in hwmodel.evaluate(net, "ascend", "fp", accounting="paper")._repr_html_()


def test_a_comparison_is_an_iterator_a_frame_and_a_table():
    lines = compared()
    first = next(lines)
    assert first.method == "fp"
    frame = lines.table  # the line that was taken, too
    assert list(frame["method"]) == ["fp", "bold"]
    assert frame["energy"][0] == first.energy
    assert not {"report", "optimal"} & set(frame.columns)
    assert [line.method for line in lines] == ["fp", "bold"] == [line.method for line in lines]
    with pytest.raises(StopIteration):
        next(lines)
    rows = [[cell.text for cell in row.children] for row in parsed(lines._repr_html_()).all("tr")]
    assert [row[1] for row in rows] == ["method", "fp", "bold"]
    assert rows[1][-1] == "100.00"


def test_a_comparison_is_used_as_a_frame():
    """As a cell of a notebook would: what pandas says of the table is what it says of the lines."""
    lines, frame = compared(), compared().table
    assert isinstance(frame, pd.DataFrame)
    assert len(lines) == 2 and lines.shape == frame.shape and list(lines.columns) == list(frame)
    pd.testing.assert_series_equal(lines["energy"], frame["energy"])
    pd.testing.assert_frame_equal(
        lines[lines["method"] == "bold"], frame[frame["method"] == "bold"]
    )
    pd.testing.assert_frame_equal(lines.query("method == 'fp'"), frame.iloc[:1])
    named = lines.set_index("method")
    assert named.loc["bold", "percent_of_baseline"] < named.loc["fp", "percent_of_baseline"] == 100
    cheapest = lines.sort_values("energy").iloc[0]
    assert cheapest["method"] == "bold"
    assert lines.groupby("hardware")["energy"].sum()["ascend"] == frame["energy"].sum()
    assert lines.to_csv(index=False).splitlines()[0].startswith("network,method,hardware")
    assert {"groupby", "every", "table", "_repr_html_"} <= set(dir(lines))
    with pytest.raises(AttributeError, match="sort_valeus"):
        _ = lines.sort_valeus
    assert type(lines.plot()).__name__ == "Drawing"  # not that of pandas


def test_lines_come_as_they_are_computed():
    asked = []

    def computed():
        for line in compared():
            asked.append(line.method)
            yield line

    lines = Lines(computed())
    first, again = iter(lines), iter(lines)
    assert next(first).method == "fp" == next(again).method and asked == ["fp"]
    assert [line.method for line in first] == ["bold"] and asked == ["fp", "bold"]
    assert next(again).method == "bold" and len(list(lines)) == 2 and asked == ["fp", "bold"]


@pytest.mark.parametrize("kind", ["", "passes", "level-tensor"])
def test_a_report_is_drawn_as_the_command_line_draws_it(report, kind, tmp_path):
    svg = report.plot(kind, style="paper")._repr_svg_()
    assert svg.lstrip().startswith("<?xml") and "bold on ascend" in svg


def test_a_drawing_is_written_and_a_wrong_look_is_told_at_once(report, tmp_path):
    drawing = compared().plot("methods", style="icml", ours=["bold"], title=False)
    assert "analytical" in drawing.save(tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(HwmodelError, match="no style of plots is called 'papre'"):
        report.plot(style="papre")
    with pytest.raises(HwmodelError, match="a plot is of a Report"):
        hwmodel.plot("report")


# Networks as files


def test_a_network_of_any_origin_is_saved_and_read_back(tmp_path, hwmodel):
    net = load_network("vgg-small")
    net.save(tmp_path / "net.yaml")
    assert load_network(tmp_path / "net.yaml") == net
    labelled = Network(**{n: getattr(net, n) for n in Network.model_fields} | {"label": "A: b"})
    labelled.save(tmp_path / "label.yml")
    assert load_network(tmp_path / "label.yml") == labelled
    before = (tmp_path / "net.yaml").read_bytes()
    with pytest.raises(HwmodelError, match="is there already"):
        net.save(tmp_path / "net.yaml")
    with pytest.raises(HwmodelError, match="end its name in"):
        net.save(tmp_path / "net.txt")
    code, out, err = hwmodel(
        "network", "save", "resnet18@64", "-o", "r.yaml", "--freeze", "layer1.*"
    )
    assert (code, out) == (0, "") and err.startswith("wrote r.yaml: ")
    assert load_network(tmp_path / "r.yaml").input == (3, 64, 64)
    assert "learned: false" in (tmp_path / "r.yaml").read_text()
    assert hwmodel("network", "save", "vgg-small", "-o", "net.yaml")[0] == 2
    assert (tmp_path / "net.yaml").read_bytes() == before
    assert hwmodel("network", "save", "vgg-small", "-o", "-")[1].encode() == before
