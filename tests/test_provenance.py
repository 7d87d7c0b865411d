"""Where outputs come from: hashes of values, and commands as words."""

import csv
import hashlib
import io
import re
import shlex
from pathlib import Path
from typing import get_args, get_origin

import pytest

import hwmodel as package
from hwmodel.errors import DataError
from hwmodel.graph.zoo import zoo
from hwmodel.rerun.asked import (
    CompareAsked,
    ExplainAsked,
    ReportAsked,
    ReproduceAsked,
    SensitivityAsked,
    SweepAsked,
    checked,
    command_line,
    read_command,
)
from hwmodel.rerun.question import question, reproduction
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.provenance import COLUMNS, Provenance, digest
from hwmodel.specs.training import Training
from tests.specs import ACCOUNTING, CHIP, COMPARE, METHOD, NETWORK
from tests.specs import written as file_of

COMMAND = (
    "hwmodel compare vgg-small-1fc --hardware ascend,v100 --methods fp,bold --accounting paper "
    "--batch 1 --mode training"
)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_hash_is_that_of_the_values_as_json_with_sorted_keys():
    run = Training(version=1, name="run", title="Läufe", epochs=2, images=30, batch=4)
    text = '{"batch":4,"epochs":2,"images":30,"name":"run","title":"L\\u00e4ufe","version":1}'
    assert digest(run) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("kind", "text", "same", "other"),
    [
        (Hardware, CHIP, ("64 KiB", "65536 B"), ("64 KiB", "65 KiB")),
        (Hardware, CHIP, ("holds: [I, F, O], ", ""), ("0.5 pJ/B", "0.6 pJ/B")),
        (Hardware, CHIP, ("version: 1", "# why\nversion: 1"), ("4.6 pJ", "4.7 pJ")),
        (Method, METHOD, ("weights: 1\n", "weights: 1 # narrow\n"), ("weights: 1", "weights: 2")),
        (
            Method,
            METHOD,
            ("{where: {position: [first, last]}, precision: fp, source: me}",
             "{source: me, precision: fp, where: {position: [first, last]}}"),
            ("[first, last]", "[last]"),
        ),
        (Accounting, ACCOUNTING, ("version: 1", "version:   1"), ("first_layer_input_gradient: false", "first_layer_input_gradient: true")),
    ],
)  # fmt: skip
def test_a_hash_knows_values_and_nothing_else(tmp_path, kind, text, same, other):
    (tmp_path / "elsewhere").mkdir()
    first = digest(load(kind, file_of(tmp_path, text)))
    assert digest(load(kind, file_of(tmp_path / "elsewhere", text, same, name="b.yaml"))) == first
    assert digest(load(kind, file_of(tmp_path, text, other))) != first


def test_every_row_states_version_inputs_and_command_at_its_end(hwmodel):
    _, out, err = hwmodel(*COMPARE, "--csv", "-")
    assert tuple(out.splitlines()[0].split(",")[-3:]) == COLUMNS
    found = {tuple(row[column] for column in COLUMNS) for row in rows(out)}
    ((version, inputs, command),) = found
    assert (version, command) == (package.__version__, COMMAND)
    assert re.fullmatch(
        "[0-9a-f]{8}(-[0-9a-f]{8}){5}", inputs
    )  # network, 2 chips, 2 methods, paper
    assert inputs.split("-")[1] == digest(load(Hardware, "ascend"))[:8]
    assert err.splitlines()[-1] == f"hwmodel {version}, inputs {inputs}: {command}"


def test_the_command_gives_the_same_bytes_again_wherever_it_is_written(hwmodel):
    first = hwmodel(*COMPARE[:-1], "fp, bold", "--csv", "-")[1]
    command = rows(first)[0]["command"]
    again = hwmodel(*shlex.split(command)[1:], "--csv", "-")[1]
    assert again == first
    assert command == COMMAND


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        (
            {"hardware": "ascend", "method": "bold"},
            "report mlp-mnist --hardware ascend --method bold --accounting chip --batch 1 "
            "--mode training",
        ),
        (
            {"training": "cifar10-300", "method": "bold", "hardware": "v100",
             "accounting": "full", "mode": "inference"},
            "report mlp-mnist --hardware v100 --method bold --accounting full --batch 128 "
            "--mode inference --training cifar10-300",
        ),
    ],
)  # fmt: skip
def test_defaults_are_written_out_in_one_order(asked, stated):
    network = next(name for name in zoo() if name.startswith("mlp"))
    found = question(ReportAsked(network=network, **asked))
    words = stated.replace("mlp-mnist", network)
    if "training" in asked:
        words = words.replace("--batch 128", f"--batch {load(Training, 'cifar10-300').batch}")
    assert found.provenance().command == f"hwmodel {words}"


def test_the_inputs_are_everything_that_numbers_depend_on():
    one = {"network": "vgg-small", "hardware": "ascend", "accounting": "paper"}
    found = question(ReportAsked(**one, method="bold")).inputs()
    assert list(map(str, found)) == [
        "network vgg-small", "hardware ascend", "method bold", "method fp", "accounting paper"
    ]  # fmt: skip
    several = CompareAsked(
        network="vgg-small", hardware="ascend", methods="binarynet", baseline="int8",
        accounting="paper,full", training="cifar10-300",
    )  # fmt: skip
    names = list(map(str, question(several).inputs()))
    assert {"method int8", "accounting full", "training cifar10-300"} <= set(names)
    assert len(set(names)) == len(names)


def test_a_teacher_is_an_input():
    taught = next(
        name
        for name in ("binarybert", "bibert", "bit", "real2binary")
        if load(Method, name).teacher
    )
    asked = ReportAsked(network="vgg-small", hardware="ascend", method=taught)
    names = [str(given) for given in question(asked).inputs()]
    teacher = load(Method, taught).teacher
    assert f"network {teacher.network}" in names
    assert f"method {teacher.method}" in names


def test_a_reproduction_names_its_tables_as_inputs():
    found = reproduction(ReproduceAsked(table="cifar10_vgg_small", accounting="paper"))
    assert list(map(str, found.inputs())) == ["table cifar10_vgg_small", "accounting paper"]
    command = "hwmodel reproduce cifar10_vgg_small --accounting paper"
    assert found.provenance().command == command


def test_a_file_of_one_s_own_is_known_by_its_values_and_called_by_its_path(hwmodel, tmp_path):
    (tmp_path / "a folder").mkdir()
    file_of(tmp_path / "a folder", NETWORK, name="net.yaml")
    file_of(tmp_path, NETWORK, ("title: A network", "title: A network # mine"), name="net.yaml")
    options = ("--hardware", "ascend", "--method", "fp", "--csv", "-")
    one, other = (rows(hwmodel("report", path, *options, "--accounting", "paper")[1])[0] for path in ("net.yaml", "a folder/net.yaml"))  # fmt: skip
    assert one["inputs_sha256"] == other["inputs_sha256"]
    assert other["command"].startswith("hwmodel report 'a folder/net.yaml' --hardware ascend ")


def test_a_date_stands_where_it_is_asked_for_and_nowhere_else(hwmodel, tmp_path):
    _, out, err = hwmodel(*COMPARE, "--csv", "-", "--date")
    (date,) = {row["date"] for row in rows(out)}
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", date)
    assert date in err.splitlines()[-1]
    assert {row["command"] for row in rows(out)} == {COMMAND}
    hwmodel(*COMPARE, "--csv", "dated.csv", "--date")
    assert hwmodel("plot", "dated.csv", "-o", "dated.svg")[0] == 0


def chunks(png):
    """Text chunks of a PNG file."""
    found, at = {}, 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + size]
        if kind == b"tEXt":
            key, _, text = body.partition(b"\0")
            found[key.decode()] = text.decode("latin-1")
        at += 12 + size
    return found


def test_a_figure_says_what_made_it_in_its_metadata_and_at_its_foot(hwmodel, tmp_path):
    hwmodel(*COMPARE, "--csv", "c.csv")
    inputs = rows((tmp_path / "c.csv").read_text())[0]["inputs_sha256"]
    for ending in ("png", "svg", "pdf"):
        hwmodel("plot", "c.csv", "-o", f"c.{ending}")
    tool = f"hwmodel {package.__version__}"
    png = chunks((tmp_path / "c.png").read_bytes())
    assert png == {"Software": tool, "Description": COMMAND, "Inputs": inputs}
    svg = (tmp_path / "c.svg").read_text()
    assert svg.count(COMMAND) == 1  # metadata
    words = " ".join(re.findall(r"<text[^>]*>([^<]*)<", svg))
    assert f"{tool}: {COMMAND} inputs {inputs}" in words  # foot
    hwmodel("plot", "c.csv", "--style", "paper", "-o", "paper.svg")
    assert (tmp_path / "paper.svg").read_text().count(COMMAND) == 1  # nothing in small type
    assert f"<dc:identifier>{inputs}</dc:identifier>" in svg
    assert "<dc:date>" not in svg
    pdf = (tmp_path / "c.pdf").read_bytes()
    assert b"/Subject" in pdf and b"CreationDate" not in pdf


def test_a_figure_of_an_older_table_has_nothing_to_say(hwmodel, tmp_path):
    text = hwmodel(*COMPARE, "--csv", "-")[1]
    kept = [row[:-3] for row in csv.reader(io.StringIO(text))]
    with (tmp_path / "old.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(kept)
    assert hwmodel("plot", "old.csv", "-o", "old.svg")[0] == 0
    svg = (tmp_path / "old.svg").read_text()
    assert "inputs" not in svg
    assert "dc:identifier" not in svg


# Commands read back


KINDS = (ReportAsked, CompareAsked, ReproduceAsked, SensitivityAsked, SweepAsked, ExplainAsked)
# Of the type of each option, two texts for a command line, and a value that no default is.
TEXTS = {
    str: ("it's a file.yaml", "it's a file.yaml"),
    int: ("7", 7),
    float: ("0.125", 0.125),
    Path: ("ranges of mine.yaml", Path("ranges of mine.yaml")),
    tuple: ("a, b.yaml", ("a", "b.yaml")),
}


def told(kind):
    """Every option of a command, each given: as texts, and as the values that they stand for."""
    texts, values = {}, {}
    for name, field in kind.model_fields.items():
        of = field.annotation
        plain = of if isinstance(of, type) else get_args(of)[0]
        texts[name], values[name] = TEXTS[tuple if get_origin(of) is tuple else plain]
    if "pass_" in texts:
        texts["pass_"] = values["pass_"] = "update"
    if "optimal_tiles" in texts:
        texts["optimal_tiles"] = values["optimal_tiles"] = "no"
    if kind is CompareAsked:
        texts["batch"], values["batch"] = "1, 64", (1, 64)
    for name in {"input_shape", "freeze", "train_only", "move"} & texts.keys():  # given one by one
        texts[name] = values[name] = ("x=1,3,8,8", "y=1,2")
    return texts, values


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_a_command_is_read_as_it_is_written(kind):
    texts, values = told(kind)
    asked = checked(kind, texts)
    assert dict(asked) == values
    assert read_command(command_line(asked), KINDS) == asked
    for name in kind.model_fields:  # nothing is lost by the way, and nothing else changes
        if not kind.model_fields[name].is_required():
            without = checked(
                kind,
                {n: text for n, text in texts.items() if n not in (name, "accuracy", "sustain")},
            )
            assert read_command(command_line(without), KINDS) == without != asked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("report net --hardware a --method b --accounting full --batch 3 --mode inference",
         ReportAsked(network="net", hardware="a", method="b", accounting="full", batch=3, mode="inference")),
        ("compare net --hardware a,b --methods fp,bold --accounting paper --batch 1 --mode training",
         CompareAsked(network="net", hardware=("a", "b"), methods=("fp", "bold"), accounting="paper",
                      batch=1)),
        ("reproduce --accounting paper,full --batch 1", ReproduceAsked(batch=1)),
        ("sensitivity net --hardware a --methods fp,bold --accounting paper --batch 1 --mode training "
         "--input-shape x=1,2 --samples 100 --seed 0 --ranges r.yaml",
         SensitivityAsked(network="net", hardware=("a",), methods=("fp", "bold"), batch=1,
                          accounting="paper",
                          input_shape=("x=1,2",), ranges=Path("r.yaml"))),
        ("sweep sizes.yaml", SweepAsked(file=Path("sizes.yaml"))),
    ],
)  # fmt: skip
def test_commands_of_tables_that_stand_somewhere_are_read(text, said):
    """As version 0.1 wrote them: what one of them states must be what is read of it."""
    assert read_command(f"hwmodel {text}", KINDS) == said
    assert command_line(said) == f"hwmodel {text}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rm -rf .", "command 'rm -rf .': is none of hwmodel report, hwmodel compare, hwmodel reproduce"),
        ("hwmodel", "command 'hwmodel': is none of hwmodel report, hwmodel compare, hwmodel reproduce"),
        ("hwmodel train x", "command 'hwmodel train x': is none of hwmodel report, hwmodel compare, hwmodel reproduce"),
        ("hwmodel report x --csv /etc/y",
         "command 'hwmodel report x --csv /etc/y': hwmodel report has no option --csv here; "
         "known: --accounting, --accumulate, --batch, --checkpoint, --freeze, --hardware, --input-shape, --method, --mode, --move, --trace, --train-only, --training"),
        ("hwmodel report x --hardwar y",
         "command 'hwmodel report x --hardwar y': hwmodel report has no option --hardwar here; "
         "did you mean '--hardware'?"),
        ("hwmodel report x --method y", "command 'hwmodel report x --method y': lacks --hardware"),
        ("hwmodel report --method y", "command 'hwmodel report --method y': lacks network"),
        ("hwmodel report x --hardware", "command 'hwmodel report x --hardware': --hardware has no value"),
        ("hwmodel report x; rm y", "command 'hwmodel report x; rm y': hwmodel report has no option rm here; "),
        ("hwmodel report 'x", "command \"hwmodel report 'x\": cannot be read: No closing quotation"),
    ],
)  # fmt: skip
def test_what_is_no_command_of_ours_is_refused(text, problem):
    with pytest.raises(DataError) as refused:
        read_command(text, KINDS)
    assert str(refused.value).startswith(problem)


def test_the_line_at_the_end_of_what_is_on_screen():
    made = Provenance("hwmodel report net", (), version="9.9")
    assert str(made) == "hwmodel 9.9, inputs : hwmodel report net"


def test_an_explanation_ends_with_the_command_that_makes_it_again(hwmodel):
    options = ("--hardware", "ascend", "--method", "bold", "--pass", "forward")
    out = hwmodel(
        "explain", "vgg-small-1fc", "--layer", "conv2", *options, "--accounting", "paper"
    )[1]
    made = out.splitlines()[-1]
    assert made.startswith(f"Made by hwmodel {package.__version__}, inputs ")
    command = shlex.split(made.partition(": ")[2])
    assert command[:5] == ["hwmodel", "explain", "vgg-small-1fc", "--layer", "conv2"]
    assert hwmodel(*command[1:])[1] == out
