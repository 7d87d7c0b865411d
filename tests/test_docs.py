"""What the documents tell a reader to type, typed."""

import csv
import doctest
import importlib
import importlib.util
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from hwmodel.views import formats, plot
from tests.test_architecture import MODULES, PACKAGE

ROOT = PACKAGE.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "reports" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
# A field that only files of a kind have.
KINDS = {
    "levels": "hardware",
    "tensors": "method",
    "input": "network",
    "based_on": "accounting",
    "epochs": "training",
}


def blocks(text, language):
    return re.findall(
        rf"^```{language}(?: title=[^\n]*)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    )


def arguments(line):
    """Of a `hwmodel` command, or nothing; of the set-up lines the last part."""
    words = shlex.split(line.split(" && ")[-1], comments=True)
    return words[1:] if words and words[0].endswith("hwmodel") else []


def commands(text):
    """Arguments of every `hwmodel` command in the sh blocks."""
    return list(filter(None, map(arguments, "".join(blocks(text, "sh")).splitlines())))


def shown(text):
    """(arguments, lines that are shown below) of every command in the console blocks."""
    for block in blocks(text, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield arguments(command), significant(output)


def significant(output):
    """Lines without rules, empty lines and the width of columns."""
    lines = (" ".join(line.strip(" ─").split()) for line in output.splitlines())
    return [line for line in lines if line]


def agrees(wanted, printed):
    """Whether lines are those that were printed; `...` stands for any number of them."""
    if not wanted:
        return not printed
    if wanted[0] == "...":
        return any(agrees(wanted[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and wanted[0] == printed[0] and agrees(wanted[1:], printed[1:])


@pytest.fixture
def page(hwmodel, tmp_path):
    """A function that puts the files at hand that a page tells its reader to make."""

    def prepared(path):
        (tmp_path / "mychip.yaml").write_text(hwmodel("hardware", "show", "ascend")[1])
        (tmp_path / "docs").mkdir()
        shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
        text = path.read_text(encoding="utf-8")
        for name, body in re.findall(
            r'^```\w+ title="(\S+)"\n(.*?)^```', text, re.DOTALL | re.MULTILINE
        ):
            (tmp_path / name).write_text(body, encoding="utf-8")
        return text

    return prepared


def test_every_command_of_the_readme_is_run():
    assert len(commands(README)) >= 7


# Their one command takes over a minute; test_readings.py and test_measured_chips.py make some of
# their rows in every run.
LONG = {ROOT / "docs" / f"{name}.md" for name in ("readings", "measured", "validation")}
THOROUGH = os.environ.get("HWMODEL_TESTS") == "thorough"


PAGES = pytest.mark.parametrize(
    "path", [p for p in DOCUMENTS if THOROUGH or p not in LONG], ids=lambda path: path.name
)


def asked(words):
    """What is run in the place of a command that shows nothing: of a study a small one."""
    if words[0] != "sensitivity" or THOROUGH:
        return words
    return [*(word.replace("vgg-small", "conv-small") for word in words), "--samples", "2"]


@PAGES
def test_every_command_runs_in_its_order(path, page, hwmodel, drawn, tmp_path):
    for words in commands(page(path)):
        if tuple(words[-2:]) == ("--accounting", "paper,chip"):  # the main job: the test below
            shutil.copytree(ROOT / "reports" / "example", tmp_path / "reports")
            continue
        code, out, err = hwmodel(*asked(words))
        assert code == 0, (words, err)
        assert out or err
    if path == ROOT / "README.md":
        assert (tmp_path / "bars.pdf").read_bytes().startswith(b"%PDF")


@PAGES
def test_every_command_prints_what_is_shown(path, page, hwmodel):
    for words, wanted in shown(page(path)):
        assert words and wanted, "a command with nothing shown"
        code, out, err = hwmodel(*words)
        assert code == (2 if wanted[-1].startswith("hwmodel: ") else 0), (words, err)
        printed = significant(out) + significant(err)
        assert agrees(wanted, printed), "\n".join(("", *words, *printed))


def test_what_is_shown_must_be_what_is_printed():
    assert agrees(["a", "...", "c"], ["a", "b", "b", "c"])
    assert not agrees(["a", "..."], ["b"])
    assert not agrees(["a", "c"], ["a", "b", "c"])
    assert not agrees(["a"], ["a", "b"])


def test_the_commands_named_for_other_kinds_exist(hwmodel):
    for word in ("hardware", "network", "method", "accounting"):
        assert hwmodel(word, "list")[0] == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for module, name in ((formats, "WRITERS"), (formats, "ENDINGS"), (plot, "PLOTS")):
        monkeypatch.setattr(module, name, dict(getattr(module, name)))  # examples add to these
    for block in blocks(path.read_text(encoding="utf-8"), "python"):
        names: dict[str, object] = {}
        exec(compile(block, str(path), "exec"), names)
        if "report" in names:
            assert names["report"].energy > 0


def test_the_files_shown_as_examples_are_right_and_work_together(hwmodel, tmp_path):
    found = {}
    for path in DOCUMENTS:
        for block in blocks(path.read_text(encoding="utf-8"), "yaml"):
            if not block.startswith("version:"):
                continue
            if re.search("^axes:", block, re.M):
                (tmp_path / "sweep.yaml").write_text(block)
                code, _, err = hwmodel("sweep", "sweep.yaml", "--dry-run")
                assert code == 0, err
                continue
            (kind,) = [
                word for field, word in KINDS.items() if re.search(rf"^{field}:", block, re.M)
            ]
            (tmp_path / f"{kind}.yaml").write_text(block)
            found[kind] = f"{kind}.yaml"
            code, _, err = hwmodel(kind, "check", found[kind])
            assert code == 0, err
    assert len(found) == 5
    files = ("--hardware", found["hardware"], "--methods", f"fp,{found['method']}")
    choices = ("--accounting", found["accounting"])
    code, _, err = hwmodel("compare", found["network"], *files, *choices, "--csv", "-")
    assert code == 0, err


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_example_report_is_what_its_command_makes_today(hwmodel, tmp_path):
    """In every run two methods of the six, whose rows are the same but for what made them."""
    (command,) = re.findall(r"^ +hwmodel (.+)$", (ROOT / "reports/README.md").read_text(), re.M)
    arguments = shlex.split(command)
    assert arguments[-1] == "reports/example"
    (kept,) = (ROOT / "reports/example").glob("*.csv")
    if THOROUGH:
        assert hwmodel(*arguments)[0] == 0
        assert (tmp_path / "reports/example" / kept.name).read_text() == kept.read_text()
        return
    arguments[arguments.index("--methods") + 1] = "fp,bold"
    assert hwmodel(*arguments)[0] == 0
    (made,) = (tmp_path / "reports/example").glob("*.csv")
    ours, theirs = (list(csv.DictReader(x.read_text().splitlines())) for x in (made, kept))
    for row in (*ours, *theirs):
        del row["inputs_sha256"], row["command"]
    assert len(ours) == 8 and ours == [row for row in theirs if row["method"] in ("fp", "bold")]


@pytest.mark.parametrize(
    "path", [p for p in MODULES if ">>>" in p.read_text(encoding="utf-8")], ids=lambda p: p.stem
)
def test_doctests(path):
    dotted = ".".join(("hwmodel", *Path(path).relative_to(PACKAGE).with_suffix("").parts))
    failed, attempted = doctest.testmod(importlib.import_module(dotted))
    assert attempted > 0
    assert failed == 0


def test_the_page_of_commands_has_every_command_and_option():
    spec = importlib.util.spec_from_file_location("mkdocs_pages", ROOT / ".ci" / "mkdocs_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    page = pages.command_reference()
    for words in ("compare", "network import", "hardware show", "sweep", "doctor"):
        assert f"\n## hwmodel {words}\n" in page
    for option in ("--accounting", "--resume", "--input-shape"):
        assert option in page
