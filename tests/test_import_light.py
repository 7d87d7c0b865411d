"""The nine light models of the onnx package against their publications, layer by layer.

`data/light_models.csv` was written down from the papers' tables and adds up on its own; its head
says where a file departs from its paper. Where a total has been published, too, the table is held
to it first.
"""

import csv
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from hwmodel.model.evaluate import evaluate
from tests.rows import merged

onnx = pytest.importorskip("onnx")

from hwmodel.importers.onnx import from_onnx  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
TABLE = Path(__file__).parent / "data" / "light_models.csv"

# All parameters: of AlexNet in two groups as its implementations print them, else torchvision's.
# MACs of convolutions: the project's list, "stride in the 3 x 3"; the classifier of DenseNet-121,
# 1024 x 1000 on one pixel, is a convolution in the file.
PUBLISHED_PARAMETERS = {
    "bvlc_alexnet": 60_965_224, "densenet121": 7_978_856, "resnet50": 25_557_032,
    "squeezenet": 1_235_496, "vgg19": 143_667_240,
}  # fmt: skip
PUBLISHED_MACS = {"densenet121": 2_833_137_664 + 1024 * 1000, "resnet50": 4_087_136_256}


@cache
def table():
    """Rows by network, numbers as numbers."""
    rows = {}
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    for row in csv.DictReader(lines):
        numbers = {key: int(row[key]) for key in row if key not in ("network", "layer", "kind")}
        rows.setdefault(row["network"], []).append({**numbers, "kind": row["kind"]})
    return rows


def weights(row):
    """M C/g K^2."""
    return row["M"] * row["C"] // row["groups"] * row["kernel"] ** 2


def parameters(rows):
    """Weights, biases, and a factor and a shift for each channel that is normalised."""
    return sum(weights(row) + row["bias"] * row["M"] + 2 * row["norm"] for row in rows)


def macs(rows):
    """Of convolutions: every weight at every place of the ofmap."""
    return sum(weights(row) * row["out"] ** 2 for row in rows if row["kind"] == "conv")


def test_the_table_has_every_model_and_the_published_totals():
    assert sorted(table()) == sorted(path.stem[6:] for path in LIGHT.glob("light_*.onnx"))
    assert {
        name: parameters(table()[name]) for name in PUBLISHED_PARAMETERS
    } == PUBLISHED_PARAMETERS
    assert {name: macs(table()[name]) for name in PUBLISHED_MACS} == PUBLISHED_MACS


@pytest.mark.parametrize("name", table())
def test_light_models_are_those_of_their_publications(name):
    network, rows = from_onnx(LIGHT / f"light_{name}.onnx"), table()[name]
    nodes = network.nodes()
    products = Counter(
        (node.layer.kind, node.input_shapes[0][0], node.output_shape[0], node.layer.kernel[0],
         node.layer.groups, node.output_shape[1], node.layer.bias)
        for node in nodes if node.layer.kind == "conv"
    )  # fmt: skip
    assert products == Counter(
        (*(row[key] for key in ("kind", "C", "M", "kernel", "groups", "out")), bool(row["bias"]))
        for row in rows if row["kind"] == "conv"
    )  # fmt: skip
    assert sum(node.macs for node in nodes if node.layer.kind == "conv") == macs(rows)
    assert sum(node.weights for node in nodes) == sum(map(weights, rows))
    assert sum(node.weights + node.other_parameters for node in nodes) == parameters(rows)
    uncounted = {layer.operator for layer in network.layers if layer.kind == "uncounted"}
    assert uncounted <= {"LRN"}


def test_a_light_model_is_reported_without_more_ado():
    report = evaluate(
        LIGHT / "light_squeezenet.onnx", "ascend", "fp", mode="inference", accounting="paper"
    )
    assert report.energy > 0
    assert sum(row.operations for row in merged(report)) == macs(table()["squeezenet"])


def test_the_network_file_goes_to_standard_output(hwmodel, tmp_path):
    path = LIGHT / "light_bvlc_alexnet.onnx"
    assert hwmodel("network", "import", path, "-o", "net.yaml")[0] == 0
    assert hwmodel("network", "import", path, "-o", "-") == (
        0, (tmp_path / "net.yaml").read_text(encoding="utf-8"), "",
    )  # fmt: skip
    assert [made.name for made in tmp_path.iterdir()] == ["net.yaml"]


def test_a_name_that_no_command_takes_for_a_file_is_refused(hwmodel, tmp_path):
    path = LIGHT / "light_bvlc_alexnet.onnx"
    assert hwmodel("network", "import", path, "-o", "net.txt") == (
        2, "", "hwmodel: net.txt: would not be read as a network file; "
        "end its name in .yaml or .yml\n",
    )  # fmt: skip
    assert not [*tmp_path.iterdir()]
