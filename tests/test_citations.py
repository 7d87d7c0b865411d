"""What the documents and the docstrings name is there: files, sections, wings."""

import ast
import re
import tokenize

import pytest

from tests.test_architecture import LINE, MODULES, PACKAGE, ident
from tests.test_docs import DOCUMENTS, README, ROOT

# Files that a reader is told to make or is shown the name of, and a folder that is a sweep's own.
OTHERS = {"TABLE.parts/"}
PATH = re.compile(r"\w[\w.-]*(?:/[\w.-]+)*/?")
ELSEWHERE = re.compile(r"\bspec(?:'s)? sections?\b|\bcounting cases\b")  # never were in here
CITED = re.compile(r"docs/(\w+\.md)((?:,? sections? \d+(?:(?:, \d+)*,? and \d+)?)?)")


def paths(text):
    """Words between backticks that are, or mean to be, paths of this repository."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    folders = {path.name for path in (*ROOT.iterdir(), *PACKAGE.iterdir()) if path.is_dir()}
    for word in " ".join(re.findall(r"`([^`]+)`", prose)).split():
        word = word.strip(",;:()")
        inside = "/" in word and word.partition("/")[0] in folders
        if PATH.fullmatch(word) and (inside or word.endswith((".py", "/"))):
            yield word


def exists(path):
    return (ROOT / path).exists() or (PACKAGE / path).exists()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_that_a_document_names_exists(path):
    named = set(paths(path.read_text(encoding="utf-8"))) - OTHERS
    assert not [word for word in sorted(named) if not exists(word)]


def test_paths_are_found_among_words():
    text = (
        "`tiling/tile.py` `gone.py`, `gone/`; `pJ/B` `plot reports/a.csv -o b.svg` `x.yaml` `docs/`"
    )
    assert list(paths(text)) == ["tiling/tile.py", "gone.py", "gone/", "reports/a.csv", "docs/"]
    assert not exists("gone.py") and exists("tiling/tile.py") and exists("hwmodel/tiling/tile.py")


def test_the_map_of_the_readme_follows_the_wings():
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", README, re.MULTILINE)
    assert listed == [wing.strip() for floor in LINE.split("<") for wing in floor.split("|")]


def texts(path):
    """Strings of a module, docstrings among them, each on one line; and its comments on one."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split())
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    yield " ".join(token.string.strip("# ") for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_nothing_is_cited_that_is_not_in_the_repository(path):
    for text in texts(path):
        assert not ELSEWHERE.search(text), text
        for document, sections in CITED.findall(text):
            page = ROOT / "docs" / document
            assert page.exists(), text
            headings = re.findall(r"^#+ (\d+) ", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert set(re.findall(r"\d+", sections)) <= set(headings), text


def test_citations_are_found_with_their_sections():
    text = "see docs/model.md sections 5 and 6, docs/tiling.md; docs/model.md, section 9"
    assert [(page, re.findall(r"\d+", rest)) for page, rest in CITED.findall(text)] == [
        ("model.md", ["5", "6"]),
        ("tiling.md", []),
        ("model.md", ["9"]),
    ]
