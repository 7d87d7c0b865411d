"""Options declared once: a field of a model is all that a new one takes."""

from typing import Annotated, ClassVar

import pytest
import typer
from pydantic import field_validator
from typer.testing import CliRunner

from hwmodel.cli.options import command
from hwmodel.errors import DataError, HwmodelError
from hwmodel.rerun.asked import (
    Asked,
    Batch,
    Chips,
    InputShape,
    Network,
    Says,
    checked,
    command_line,
    read_command,
)


class MineAsked(Asked):
    """With an option of every sort."""

    NAME: ClassVar[str] = "mine"
    network: Network
    hardware: Chips
    share: Annotated[float, Says("A share.", short="-s")] = 0.5
    batch: Batch = None
    input_shape: InputShape = ()

    @field_validator("share")
    @classmethod
    def _below(cls, value):
        if not 0 <= value < 1:
            raise ValueError("must be from 0 to below 1")
        return value


@pytest.fixture
def called():
    """A function that calls a command that takes the model; what it was asked, or how it ended."""
    app, asked = typer.Typer(rich_markup_mode=None), []

    @app.command()
    @command
    def mine(options: MineAsked, loud: bool = False) -> None:
        """What is done."""
        asked.append((options, loud))

    def call(*words):
        result = CliRunner().invoke(app, words)
        return asked.pop() if asked else result

    return call


def test_a_field_is_an_option_with_its_help_type_and_default(called):
    text = " ".join(called("--help").output.split())
    for words in (
        "What is done.",
        "A bundled network, or a YAML or ONNX file. [required]",
        "--hardware <str> Chips, by name or file, separated by commas. [required]",
        "-s, --share <float> A share. [default: 0.5]",
        "--batch <int> Images in the iteration. [default: (1; the training's;",
        "--input-shape <str> Of an ONNX",
        "--loud",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "--share 0.5"),
        (("-s", "0.25", "--loud"), "--share 0.25"),
        (("--batch", "2", "--share=.125"), "--share 0.125 --batch 2"),
        (("--input-shape", "x=1,2", "--input-shape", "y z=3"),
         "--share 0.5 --input-shape x=1,2 --input-shape 'y z=3'"),
    ],
)  # fmt: skip
def test_what_is_typed_is_what_is_stated_and_read_back(called, words, line):
    options, loud = called("net", "--hardware", "a , b", *words)
    assert loud == ("--loud" in words)
    assert command_line(options) == f"hwmodel mine net --hardware a,b {line}"
    assert read_command(command_line(options), [MineAsked]) == options


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--share", "1"), "--share '1': must be from 0 to below 1"),
        (("--share", "x"), "--share 'x': must be a number"),
        (("--batch", "2.5"), "--batch '2.5': must be a whole number"),
        (("--hardware", "a,,b"), "--hardware 'a,,b': names separated by commas, none of them empty"),
        (("--hardware", "a,b,a"), "--hardware 'a,b,a': a stands there twice"),
    ],
)  # fmt: skip
def test_the_same_rule_holds_for_what_is_typed_and_for_what_a_table_states(called, words, sentence):
    hardware = () if "--hardware" in words else ("--hardware", "a")
    assert str(called("net", *hardware, *words).exception) == sentence
    with pytest.raises(HwmodelError) as refused:
        read_command(" ".join(("hwmodel mine net", *hardware, *words)), [MineAsked])
    assert str(refused.value) == sentence


def test_nothing_that_is_unknown_gets_in():
    with pytest.raises(DataError, match="has no option --shar here; did you mean '--share'"):
        read_command("hwmodel mine net --hardware a --shar 0.1", [MineAsked])
    with pytest.raises(HwmodelError):
        checked(MineAsked, {"network": "net", "hardware": "a", "shar": 0.1})


def test_an_option_that_is_asked_cannot_change(called):
    options, _ = called("net", "--hardware", "a")
    with pytest.raises(ValueError, match="frozen"):
        options.share = 0.1


COMPARE = ("compare", "vgg-small", "--hardware", "ascend", "--methods", "fp")
REPORT = ("report", "mlp-784-512-512-10", "--hardware", "ascend", "--method", "fp")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*COMPARE, "--hardware", "v100"), "--hardware is given 2 times; it has one value"),
        ((*COMPARE, "--methods=bold", "--methods", "bold"), "--methods is given 3 times; it has one value"),
        ((*REPORT, "--batch", "2", "--batch", "2"), "--batch is given 2 times; it has one value"),
        ((*REPORT, "--csv", "a.csv", "--csv", "b.csv"), "--csv is given 2 times; it has one value"),
        (("sweep", "s.yaml", "--jobs", "1", "--jobs", "2"), "--jobs is given 2 times; it has one value"),
        (("network", "show", "vgg-small", "--csv", "-", "--csv", "-"), "--csv is given 2 times; it has one value"),
        (("train", "--seed", "1", "--seed", "2"), "--seed is given 2 times; it has one value"),
        (("verify", "t.csv", "--tolerance", "0", "--tolerance", "0.1"), "--tolerance is given 2 times; it has one value"),
    ],
)  # fmt: skip
def test_an_option_of_one_value_is_given_once(refused, words, sentence):
    assert refused(*words) == sentence


@pytest.mark.parametrize("option", ["--trace", "--training", "-o", "--csv", "--html", "--format",
                                    "--out", "--batch", "--accounting", "--mode"])  # fmt: skip
@pytest.mark.parametrize("written", [lambda flag: (flag, ""), lambda flag: (f"{flag}=",)])
def test_a_value_that_is_empty_is_none(refused, option, written, tmp_path):
    words = written(option) if option.startswith("--") else (option, "")
    name = {"-o": "--output"}.get(option, option)
    assert refused(*REPORT, *words) == f"{name} '': is empty; leave the option out for its default"
    assert [*tmp_path.iterdir()] == []


def test_options_of_several_values_and_flags_may_stand_there_again(hwmodel, tmp_path):
    assert hwmodel(*REPORT, "--date", "--date", "-o", "t.csv")[0] == 0
    refusal = "mlp-784-512-512-10: input shapes are given for ONNX files only"
    shapes = ("--input-shape", "x=1,3,8,8", "--input-shape", "y=1,3")
    assert hwmodel(*REPORT, *shapes)[2] == f"hwmodel: {refusal}\n"


def test_compare_takes_the_source_s_chips_and_methods_unless_told(hwmodel):
    code, out, _ = hwmodel("compare", "mlp-784-512-512-10", "--accounting", "paper", "--csv", "-")
    assert code == 0
    rows = [row.split(",")[1:3] for row in out.splitlines()[1:]]
    methods = ["fp", "binaryconnect", "xnor-net", "binarynet", "bold", "bold-bn"]
    assert rows == [[method, chip] for chip in ("ascend", "v100") for method in methods]
