"""The layering of the package and the limits of its files, checked."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from hwmodel.accounting import Accounting
from hwmodel.files import bundled, load
from hwmodel.hardware import Hardware
from hwmodel.method import Method
from hwmodel.network import zoo
from hwmodel.training import Training
from hwmodel.views.catalogue import checked

PACKAGE = Path(__file__).parent.parent / "hwmodel"
MODULES = sorted(PACKAGE.rglob("*.py"))
LADDER = [
    {"errors"},
    {"inputs"},
    {"arguments", "csv_files", "mistakes"},
    {"quantity", "files", "problem"},
    {"provenance", "zoo"},
    {"hardware", "accounting", "published", "training", "trace"},
    {"trainer"},
    {"layers", "prices"},
    {"node"},
    {"network", "networks", "measured"},
    {"method", "importers", "network_yaml"},
    {"paths"},
    {"tiling/rows"},
    {"tiling/accesses"},
    {"tiling/pricing", "tiling/level_by_level"},
    {"tiling/budget"},
    {"tiling/bounds"},
    {"tiling/classes", "tiling/nests", "tiling/chain_rows"},
    {"tiling/chains"},
    {"tiling/descent"},
    {"tiling/optimal"},
    {"tiling/tile"},
    {"energy"},
    {"workload"},
    {"evaluation"},
    {"comparison"},
    {"sensitivity"},
    {"question"},
    {"sweep"},
    {"views/tables", "views/colours"},
    {"views/loop_nest", "views/figures"},
    {"answers"},
    {"verification"},
    {"views/screen_tables", "views/paper"},
    {"views/latex"},
    {"views/formats"},
    {"views/plot", "views/catalogue", "views/summary", "views/schema", "views/tile_report"},
    {"views/doctor"},
    {"views/sensitivity_tables"},
    {"views/tornado"},
    {"views/sweep_tables", "views/sweep_figures"},
    {"views/explain"},
    {"views/html"},
    {"cli"},
    {"__main__"},
]
RUNG = {name: number for number, names in enumerate(LADDER) for name in names}
KINDS = (Hardware, Method, Accounting, Training)
NETWORK_SIDE = {"layers", "node", "network", "networks", "method"}


def ident(path):
    return path.relative_to(PACKAGE).as_posix()


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def rung_of(parts):
    """A module of the package, or its folder; of the folders with rungs of their own, both."""
    return "/".join(parts[:2]) if parts[0] in ("tiling", "views") else parts[0]


def module(path):
    """The name of a file's rung."""
    return rung_of(path.relative_to(PACKAGE).with_suffix("").parts)


def imports(path):
    """Modules of the package that are imported, those for the type checker among them."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "hwmodel":
            yield from (alias.name for alias in node.names if alias.name in RUNG)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hwmodel."):
            yield rung_of(node.module.split(".")[1:])
        elif isinstance(node, ast.Import):
            names = (a.name for a in node.names if a.name.startswith("hwmodel."))
            yield from (rung_of(name.split(".")[1:]) for name in names)


@pytest.mark.parametrize("path", [p for p in MODULES if p.name != "__init__.py"], ids=ident)
def test_modules_import_only_from_lower_rungs(path):
    of_others = {
        other for other in imports(path) if other != module(path) or path.parent == PACKAGE
    }
    above = [other for other in of_others if RUNG[other] >= RUNG[module(path)]]
    assert not above, f"{module(path)} must not import {', '.join(above)}"


@pytest.mark.parametrize("path", [p for p in MODULES if module(p).startswith("tiling/")], ids=ident)
def test_counting_and_searching_know_no_layer_and_no_method(path):
    assert not NETWORK_SIDE & set(imports(path))


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_no_file_outgrows_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 50, node.name
    assert path.stem not in ("utils", "util", "helpers", "common", "misc")


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
    names = {*bundled(Hardware), *bundled(Method), *zoo(), "resnet"} - {"bit"}  # a unit, too
    allowed = {
        "cli/compare.py": {"fp"},
        "trainer/cli.py": {"bold", "deep-mlp", "conv-small", "conv-mnist"},
    }
    for path in MODULES:
        if module(path) != "networks":
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
    known |= {PACKAGE / "networks" / "zoo.yaml", PACKAGE / "published.yaml"}
    known |= {*(PACKAGE / "trainer").rglob("*.yaml")}  # read and tested by the trainer
    every = {*PACKAGE.rglob("*.yaml"), *(PACKAGE.parent / "hardware_specs").glob("*")}
    assert every == known
