"""What a shell offers at the Tab key, asked of a real bash; and what is said of a call that is no call."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from hwmodel.graph.zoo import zoo
from hwmodel.specs.files import bundled
from hwmodel.specs.hardware import Hardware
from tests.test_architecture import PACKAGE

# Stands for the installed command, which the completion calls by its name.
COMMAND = """#!{python}
import sys
from hwmodel.cli import main
main()
"""
# What readline does at Tab: the function that `complete` was given, with the words so far.
TAB = """
eval "$(hwmodel --show-completion)"
set -- $(complete -p hwmodel)
while [ "$1" != -F ]; do shift; done
offer=$2
tab() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "$offer" hwmodel "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[*]}"
}
"""


@pytest.fixture
def offered(tmp_path):
    """A function that gives what bash is offered for the last of each list of words."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    command = tmp_path / "bin" / "hwmodel"
    command.parent.mkdir()
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }

    def tab(*calls):
        asked = "\n".join(" ".join(["tab", *(f"'{word}'" for word in call)]) for call in calls)
        done = subprocess.run(
            [bash, "--norc", "-c", TAB + asked],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return [line.split() for line in done.stdout.splitlines()]

    return tab


def test_bash_completes_commands_options_and_bundled_names(offered):
    commands, subcommands, options, networks, lists, chips, none = offered(
        ("hwmodel", "re"),
        ("hwmodel", "hardware", ""),
        ("hwmodel", "compare", "vgg-small", "--ha"),
        ("hwmodel", "compare", "vgg-s"),
        ("hwmodel", "compare", "vgg-small", "--methods", "fp,binary"),
        ("hwmodel", "hardware", "show", "v"),
        ("hwmodel", "compare", "vgg-small", "--csv", "my"),
    )
    assert commands == ["report", "reproduce"]
    assert subcommands == ["list", "show", "check"]
    assert options == ["--hardware"]
    assert networks == [name for name in zoo() if name.startswith("vgg-s")] != []
    assert lists == [
        f"fp,{path.stem}" for path in sorted((PACKAGE / "methods").glob("binary*.yaml"))
    ]
    assert chips == [path.stem for path in bundled(Hardware).values() if path.stem[0] == "v"]
    assert none == []  # bash goes on to names of files


ASKED = ("--hardware", "ascend", "--method", "fp")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (("report", "vgg-small", *ASKED, "--batch", "y"), "--batch 'y': must be a whole number"),
        (("report", "vgg-small", *ASKED, "--batch=1.5"), "--batch '1.5': must be a whole number"),
        (("reproduce", "--accounting="), "--accounting '': is empty; leave the option out for its default"),
        (("reproduce", "--acounting", "full"), "--acounting is no option of hwmodel reproduce; did you mean '--accounting'?"),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_is_refused_with_its_value(hwmodel, call, sentence):
    assert hwmodel(*call) == (2, "", f"hwmodel: {sentence}\n")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("reproduce", "x", "--date", "2026-11-28"), ("reproduce: ", "(2026-11-28)", "hwmodel reproduce --help")),
        (("reproduce", "x", "--date=2026-11-28"), ("'--date'", "not take a value")),
        (("report", "vgg-small", "--batch"), ("'--batch'", "requires an argument")),
        (("train", "--epochs", "y"), ("'--epochs'", "valid", "hwmodel train --help")),
        (("train", "--epochs", "0"), ("'--epochs'", "1", "hwmodel train --help")),
        (("report", "vgg-small", "--hardware", "ascend"), ("report: ", "'--method'", "hwmodel report --help")),
        (("hardwar",), ("'hardwar'", "id you mean 'hardware'")),
        (("network", "show", "vgg-small", "vgg16"), ("network show: ", "vgg16", "hwmodel network show --help")),
    ],
)  # fmt: skip
def test_the_parser_complains_in_its_own_words_on_one_line(hwmodel, call, words):
    code, out, err = hwmodel(*call)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("hwmodel: hwmodel")
    assert all(word in err for word in words), err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("schema",), ("accounting", "hardware", "method", "network", "sweep", "training")),
        (("compare",), ("1; the training's; the traces'",)),
    ],
)
def test_help_names_every_choice(hwmodel, command, words):
    _, out, _ = hwmodel(*command, "--help")
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", out).split())
    assert all(word in text for word in words)
