"""The layering of the package and the limits of its files, checked."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from hwmodel.graph.network import zoo
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.training import Training
from hwmodel.views.catalogue import checked
from hwmodel.work.optimizers import OPTIMIZERS

PACKAGE = Path(__file__).parent.parent / "hwmodel"
MODULES = sorted(PACKAGE.rglob("*.py"))
LINE = "errors < work < specs < graph | tiling < importers < model < trainer | vary < rerun < views < cli"
FLOOR = {wing.strip(): n for n, floor in enumerate(LINE.split("<")) for wing in floor.split("|")}
DATA = {"accountings", "methods", "trainings", "docs"}  # bundled files, and a link to the schemas
KINDS = (Hardware, Method, Accounting, Training)


def ident(path):
    return path.relative_to(PACKAGE).as_posix()


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def wing(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path):
    """Wings that are imported, at the top of a file, in a function or for the type checker."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "hwmodel":
            yield from (alias.name for alias in node.names if alias.name in FLOOR)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hwmodel."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("hwmodel."))


def test_rooms_at_the_top():
    rooms = {p.stem for p in PACKAGE.iterdir() if not p.name.startswith(("_", ".", "py.typed"))}
    assert rooms == {*FLOOR, *DATA}
    assert len(rooms - {"docs"}) <= 15 and max(FLOOR.values()) < 12


@pytest.mark.parametrize("path", [p for p in MODULES if not wing(p).startswith("_")], ids=ident)
def test_imports_run_one_way(path):
    others = {other for other in imports(path) if other != wing(path)}
    above = [other for other in others if FLOOR[other] >= FLOOR[wing(path)]]
    assert not above, f"{wing(path)} must not import {', '.join(above)}"
    assert "import_module" not in path.read_text(encoding="utf-8")


def modules_of(path):
    """Modules of the package that a file imports, by their dotted names."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hwmodel."):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_circle_of_modules():
    def name(path):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        return ".".join(("hwmodel", *parts)).removesuffix(".__init__")

    arrows = {
        name(p): {m for m in modules_of(p)} - {name(p)} for p in MODULES if p.parent != PACKAGE
    }
    left = {module: others & set(arrows) for module, others in arrows.items()}
    # A folder's own __init__ gathers what is in it, and its modules may name the folder.
    left = {m: {o for o in others if not m.startswith(f"{o}.")} for m, others in left.items()}
    while free := [module for module, others in left.items() if not others & set(left)]:
        for module in free:
            del left[module]
    assert not left, f"modules that import one another: {sorted(left)}"


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_all_is_sorted_and_true(path):
    names = [
        element.value
        for node in tree(path).body
        if isinstance(node, (ast.Assign, ast.AugAssign))
        and ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        == "__all__"
        for element in node.value.elts
    ]
    dotted = ".".join(("hwmodel", *path.relative_to(PACKAGE).with_suffix("").parts))
    if names and path.name != "__main__.py":
        found = importlib.import_module(dotted.removesuffix(".__init__"))
        assert all(hasattr(found, name) for name in names)

    def order(name):  # constants, classes, the rest; as the linter has it
        return (not name.isupper(), not name[0].isupper(), name)

    assert names == sorted(names, key=order)
    assert len(set(names)) == len(names)


def literals(path):
    """Strings of a module, in f-strings, too; neither docstrings nor styles on screen ("bold")."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = list(ast.walk(tree(path)))
    apart = {
        id(part)
        for node in nodes
        if isinstance(node, ast.keyword) and node.arg == "style"
        for part in ast.walk(node)
    }
    apart |= {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.value


def test_no_method_network_or_chip_has_its_name_in_code():
    """Families of networks may; so may the command line where it says what stands by default."""
    names = {*bundled(Hardware), *bundled(Method), *zoo(), "resnet"}
    names -= {"bit", *OPTIMIZERS}  # a unit, and what methods are named after
    allowed = {
        "specs/usual.py": {
            "ascend",
            "v100",
            "fp",
            "binaryconnect",
            "xnor-net",
            "binarynet",
            "bold",
            "bold-bn",
        },
        "cli/train.py": {"bold", "deep-mlp", "conv-small", "conv-mnist"},
    }
    for path in MODULES:
        if path.parent.name != "families":
            assert not names & set(literals(path)) - allowed.get(ident(path), set()), path.name


@pytest.mark.parametrize(
    ("word", "name"),
    [(kind.KIND, name) for kind in KINDS for name in bundled(kind)]
    + [("network", name) for name in zoo()],
)
def test_every_bundled_file_is_right_and_called_what_it_is(word, name):
    assert checked(word, name).name == name


def test_every_source_that_a_bundled_method_gives_is_listed_in_it():
    for name in bundled(Method):
        method = load(Method, name)
        for part in (*method.layers, *method.tensors, *method.extra_work):
            assert set(re.split("[;,] ", part.source)) <= set(method.sources), name


def test_every_bundled_yaml_is_found_by_a_kind():
    known = {path for kind in KINDS for path in bundled(kind).values()}
    known |= {PACKAGE / "graph/families/zoo.yaml", PACKAGE / "specs/published.yaml"}
    known |= {PACKAGE / "specs/formats.yaml"}
    known |= {PACKAGE / "specs/measured.yaml", PACKAGE / "specs/plausible.yaml"}
    every = {*PACKAGE.rglob("*.yaml"), *(PACKAGE.parent / "hardware_specs").glob("*")}
    assert every == known
