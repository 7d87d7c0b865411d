"""What the documents tell a reader to type, typed."""

import doctest
import importlib
import re
import shlex
from pathlib import Path

import pytest

from tests.test_architecture import MODULES, PACKAGE

ROOT = PACKAGE.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "reports" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(text):
    """Arguments of every `hwmodel` command in the sh blocks; of the two set-up lines the last part."""
    for line in "".join(blocks(text, "sh")).splitlines():
        words = shlex.split(line.split(" && ")[-1], comments=True)
        if words and words[0].endswith("hwmodel"):
            yield words[1:]


def test_every_command_of_the_readme_runs_in_its_order(hwmodel, tmp_path):
    """With a chip's file of one's own at hand, as the documents say to begin one."""
    (tmp_path / "mychip.yaml").write_text(hwmodel("hardware", "show", "ascend")[1])
    example = Path("docs/examples/buffers.yaml")
    (tmp_path / example).parent.mkdir(parents=True)
    (tmp_path / example).write_text((ROOT / example).read_text())
    ran = list(commands(README))
    assert len(ran) >= 7
    for arguments in ran:
        code, out, err = hwmodel(*arguments)
        assert code == 0, (arguments, err)
        assert out or err
    assert (tmp_path / "bars.pdf").read_bytes().startswith(b"%PDF")


def test_the_commands_named_for_other_kinds_exist(hwmodel):
    for word in ("hardware", "network", "method", "accounting"):
        assert hwmodel(word, "list")[0] == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in blocks(path.read_text(encoding="utf-8"), "python"):
        names: dict[str, object] = {}
        exec(compile(block, str(path), "exec"), names)
        if "report" in names:
            assert names["report"].energy > 0


def test_the_files_shown_as_examples_are_right_and_work_together(hwmodel, tmp_path):
    found = {}
    for path in DOCUMENTS:
        for block in blocks(path.read_text(encoding="utf-8"), "yaml"):
            if not block.startswith("version:") or path.name == "trainer.md":
                continue  # the trainer's networks have a schema of their own
            if re.search("^axes:", block, re.M):
                (tmp_path / "sweep.yaml").write_text(block)
                code, _, err = hwmodel("sweep", "sweep.yaml", "--dry-run")
                assert code == 0, err
                continue
            kinds = {"levels": "hardware", "tensors": "method", "input": "network"}
            (kind,) = [
                word for field, word in kinds.items() if re.search(rf"^{field}:", block, re.M)
            ]
            (tmp_path / f"{kind}.yaml").write_text(block)
            found[kind] = f"{kind}.yaml"
            code, _, err = hwmodel(kind, "check", found[kind])
            assert code == 0, err
    if len(found) == 3:
        files = ("--hardware", found["hardware"], "--methods", f"fp,{found['method']}")
        code, _, err = hwmodel("compare", found["network"], *files, "--csv", "-")
        assert code == 0, err


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_example_report_is_what_its_command_makes_today(hwmodel, tmp_path):
    (command,) = re.findall(r"^ +hwmodel (.+)$", (ROOT / "reports/README.md").read_text(), re.M)
    arguments = shlex.split(command)
    assert arguments[-1] == "reports/example"
    assert hwmodel(*arguments)[0] == 0
    for made in (tmp_path / "reports/example").glob("*.csv"):
        assert made.read_text() == (ROOT / "reports/example" / made.name).read_text()


@pytest.mark.parametrize(
    "path", [p for p in MODULES if ">>>" in p.read_text(encoding="utf-8")], ids=lambda p: p.stem
)
def test_doctests(path):
    dotted = ".".join(("hwmodel", *Path(path).relative_to(PACKAGE).with_suffix("").parts))
    failed, attempted = doctest.testmod(importlib.import_module(dotted))
    assert attempted > 0
    assert failed == 0
