"""JSON Schemas, and networks as YAML and as tables."""

import csv
import io
import json
import os
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from hwmodel.errors import NameUnknown, ShapeError, SpecError
from hwmodel.graph.network import zoo
from hwmodel.graph.yaml import network_yaml
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load, read_yaml
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.quick_yaml import quickly_read
from hwmodel.specs.training import Training
from hwmodel.views.schema import KINDS, schema, schema_text
from hwmodel.views.summary import macs_by_width, summary, summary_csv

ROOT = Path(__file__).parent.parent
SPECS = [
    (kind.KIND, path)
    for kind in (Hardware, Method, Accounting, Training)
    for path in bundled(kind).values()
]

THOROUGH = os.environ.get("HWMODEL_TESTS") == "thorough"  # else every fourth network


def plain(value):
    """YAML as JSON has it."""
    return json.loads(json.dumps(value))


@cache
def rules(kind):
    """A schema that validates, made once."""
    return jsonschema.Draft202012Validator(schema(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_the_committed_schema_is_the_code_s(kind):
    """If it is not: hwmodel schema KIND > docs/schemas/KIND.json."""
    assert (ROOT / "docs" / "schemas" / f"{kind}.json").read_text(encoding="utf-8") == schema_text(
        kind
    )
    jsonschema.Draft202012Validator.check_schema(schema(kind))


@pytest.mark.parametrize(("kind", "path"), SPECS, ids=lambda value: getattr(value, "stem", value))
def test_bundled_files_are_right_under_the_schema_that_they_name(kind, path):
    text = path.read_text(encoding="utf-8")
    rules(kind).validate(plain(quickly_read(text)))  # as a user's file is read: test_files
    first = text.splitlines()[0]
    assert first == f"# yaml-language-server: $schema=../docs/schemas/{kind}.json"
    assert (path.parent / first.split("=")[1]).resolve().is_file()


def test_an_unknown_kind_of_file_is_named():
    with pytest.raises(NameUnknown, match="did you mean 'network'"):
        schema("netwrok")


NETWORK = """\
version: 1
name: little
title: Residual blocks
input: [3, 8, 8]
layers:
  - {name: stem, kind: conv, channels: 16, kernel: 3, padding: 1}
  - {name: act, kind: activation}
  - name: block
    repeat: 3
    first: 1
    layers:
      - {name: conv, kind: conv, channels: 16, kernel: [3, 1], padding: [1, 0]}
      - {name: sum, kind: add, inputs: [conv, before]}
      - {name: join, kind: multiply, inputs: [sum, stem]}
  - {name: fc, kind: linear, features: 10, inputs: [block.3.join]}
"""


def network(tmp_path, *changes):
    text = NETWORK
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "little.yaml"
    path.write_text(text)
    return load_network(path)


def test_a_repeated_list_is_its_layers_several_times(tmp_path):
    nodes = network(tmp_path).nodes()
    assert [n.layer.name for n in nodes] == [
        "stem", "act", "block.1.conv", "block.1.sum", "block.1.join", "block.2.conv", "block.2.sum",
        "block.2.join", "block.3.conv", "block.3.sum", "block.3.join", "fc",
    ]  # fmt: skip
    inputs = {n.layer.name: n.inputs for n in nodes}
    assert inputs["block.1.sum"] == ("block.1.conv", "act")
    assert inputs["block.2.sum"] == ("block.2.conv", "block.1.join")
    assert inputs["block.3.join"] == ("block.3.sum", "stem")
    assert sum(n.weights for n in nodes) == 16 * 27 + 3 * 16 * 16 * 3 + 10 * 16 * 64


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("repeat: 3", "repeat: 0"), SpecError, "yaml:9: layers.block.repeat 0: must be at least 1"),
        (("repeat: 3", "repeat: 9999"), SpecError, "30,000 layers; at most 10,000"),
        (("inputs: [sum,", "inputs: [smu,"), ShapeError, "takes 'smu', which is no layer before it"),
        (("kernel: [3, 1]", "kernle: 3"), SpecError,
         "yaml:12: layers.block.layers.conv.kernle is not a field; did you mean 'kernel'"),
    ],
)  # fmt: skip
def test_mistakes_in_repeated_lists_are_found_where_they_stand(tmp_path, change, error, message):
    with pytest.raises(error) as caught:
        network(tmp_path, change)
    assert message in str(caught.value)


def test_yaml_keeps_the_repeated_list(tmp_path):
    written = network_yaml(network(tmp_path))
    assert "    repeat: 3\n    first: 1\n" in written
    assert "- {name: sum, kind: add, inputs: [conv, before]}" in written
    assert "channels" in written and "groups" not in written


@pytest.mark.parametrize("name", zoo() if THOROUGH else sorted(zoo())[::4])
def test_every_network_is_equal_after_writing_and_reading(tmp_path, name):
    path = tmp_path / "network.yaml"
    path.write_text(network_yaml(load_network(name)), encoding="utf-8")
    assert load_network(path) == load_network(name)
    rules("network").validate(plain(read_yaml(path)))


def test_shared_weights_need_a_layer_that_has_as_many(tmp_path):
    shared = (
        "- {name: fc,",
        "- {name: tied, kind: conv, channels: 16, kernel: 3, padding: 1, shares: stem}\n  - {name: fc,",
    )
    with pytest.raises(ShapeError, match="layer tied shares 2,304 weights of 'stem'"):
        network(tmp_path, shared, ("inputs: [block.3.join]", "inputs: [tied]"))


def test_the_summary_adds_up():
    fp = load(Method, "fp")
    lines = summary(load_network("vgg-small"), fp, load(Accounting, "paper"))
    assert sum(line.macs for line in lines) == 616_966_144
    assert sum(line.weights for line in lines) == 14_022_016
    assert macs_by_width(lines) == {(32, 32): 616_966_144}
    assert sum(line.parameter_bytes for line in lines) == 4 * (14_022_016 + 2 * 3_840)
    rows = list(csv.DictReader(io.StringIO(summary_csv(lines))))
    assert len(rows) == len(lines) and rows[0]["activation_bytes"] == str(4 * 128 * 32 * 32)


def test_the_summary_has_macs_for_each_pair_of_widths():
    """Of a Boolean network only the first layer multiplies full-precision words by such."""
    lines = summary(load_network("vgg-small"), load(Method, "bold"), load(Accounting, "paper"))
    by_width = macs_by_width(lines)
    assert by_width[32, 32] == 3_538_944
    assert by_width[1, 1] == 616_966_144 - 3_538_944 - 10_240


def test_the_summary_says_that_it_is_of_a_step(tmp_path):
    from typer.testing import CliRunner

    from hwmodel.cli import app

    (tmp_path / "s.yaml").write_text(
        "version: 1\nname: s\ntitle: t\ninput: [3, 4, 4]\nsteps: 4\nlayers:\n"
        "  - {name: c, kind: conv, channels: 2, kernel: 1}\n"
        "  - {name: f, kind: spiking, neuron: lif, reset: subtract, rate: 0.15, membrane_bits: 16}\n"
        "  - {name: d, kind: linear, features: 2}\n",
        encoding="utf-8",
    )
    shown = CliRunner().invoke(app, ["network", "show", str(tmp_path / "s.yaml")]).stdout
    assert "one of 4 steps of one image" in " ".join(shown.split())
    assert f"{2 * 3 * 16 + 2 * 32:,}" in shown  # MACs of one step


def test_the_command_line_shows_imports_and_writes(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from hwmodel.cli import app

    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    assert run(app, ["schema", "method"]).stdout == schema_text("method")
    shown = run(app, ["network", "show", "vgg-small", "--yaml"]).stdout
    assert shown == network_yaml(load_network("vgg-small"))
    assert run(app, ["network", "show", "vgg-small", "--csv", "-"]).stdout.startswith("layer,kind,")
    onnx = pytest.importorskip("onnx")
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    ran = run(app, ["network", "import", str(light / "light_vgg19.onnx"), "-o", "vgg19.yaml"])
    assert ran.exit_code == 0
    assert sum(n.macs for n in load_network("./vgg19.yaml").nodes()) == 19_632_062_464
