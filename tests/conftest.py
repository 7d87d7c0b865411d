"""The command line as a test calls it: in a folder of its own, in this process."""

import csv
import gc
import io
import json
import os
import shutil
import subprocess
from functools import partial
from importlib import import_module

import pytest
from hypothesis import settings

from hwmodel.cli import main, screen

# The tests' processes share the cores: threads of their own would wait for one another.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")  # before NumPy is imported
os.environ["HWMODEL_PROGRESS"] = "off"  # a busy machine is slow, and tests compare what is said
os.environ["HWMODEL_CACHE"] = "off"  # until there is a folder: see `_found_once`
THOROUGH = os.environ.get("HWMODEL_TESTS") == "thorough"


def pytest_collection_finish():
    """Look for garbage seldom, and never in what all tests hold: it took a tenth of their time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


@pytest.fixture
def hwmodel(request, tmp_path, monkeypatch, capsys):
    """A function that runs `hwmodel ARGUMENTS` and gives (exit code, stdout, stderr).

    Figures that come beside a table though nobody asked for them stay empty, unless the test asks
    for `drawn`: they took a second for each report.
    """
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(screen, "_to_folder", partial(_undrawn, screen._to_folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # As many processes as are asked for, and else one: others run tests beside this one.
    monkeypatch.setattr("hwmodel.cli.processes.cores", lambda: 1)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["hwmodel", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture(scope="session", autouse=True)
def _found_once(tmp_path_factory):
    """Keep tilings in a folder of this run, for all tests, workers and processes that they start.

    That a kept tiling is the one that would be found is a matter of test_tiling_cache; a test whose
    point is the search asks for `afresh`. HWMODEL_TESTS=thorough keeps none. HWMODEL_TESTS_CACHE
    names a folder of tilings that were found before, by the same code or not at all.
    """
    if THOROUGH:
        return
    base = tmp_path_factory.getbasetemp()
    run = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    os.environ["HWMODEL_CACHE"] = os.environ.get("HWMODEL_TESTS_CACHE") or str(run / "tilings")


@pytest.fixture
def afresh(monkeypatch):
    """Search every tiling anew, in this process and in those it starts."""
    from hwmodel.tiling.tile import tile

    monkeypatch.setenv("HWMODEL_CACHE", "off")
    tile.cache_clear()


@pytest.fixture
def drawn():
    """Figures beside tables are drawn by `hwmodel`, as they are for users."""


@pytest.fixture
def undrawn(monkeypatch):
    """Leave all figures empty, for tests that look at names and tables."""
    _draw_nothing(monkeypatch)


def _draw_nothing(monkeypatch):
    def write_figure(made, *paths, **options):
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return ""

    names = [f"hwmodel.views.{name}" for name in ("plot", "tornado", "study", "sweep_figures")]
    for module in [import_module(name) for name in names]:
        monkeypatch.setattr(module, "write_figure", write_figure)


def _undrawn(to_folder, result, to, *rest):
    """Write to a folder as the command line does, without figures if it is not named."""
    with pytest.MonkeyPatch.context() as patched:
        if not to.out:
            _draw_nothing(patched)
        to_folder(result, to, *rest)


@pytest.fixture(scope="session")
def locales(tmp_path_factory):
    """The environment with locales of decimal commas, made of the system's sources if it has any.

    Without the system's rights: in a folder of their own.
    """
    folder = tmp_path_factory.mktemp("locales")
    if shutil.which("localedef"):
        for name in ("de_DE.UTF-8", "tr_TR.UTF-8", "fr_FR.ISO-8859-1"):
            language, _, letters = name.partition(".")
            command = ["localedef", "-i", language, "-f", letters, str(folder / name)]
            subprocess.run(command, capture_output=True, timeout=60)
    return {"LOCPATH": str(folder)} if any(folder.iterdir()) else {}


@pytest.fixture
def shown(hwmodel, tmp_path):
    """A function that gives the rows of `network show` for layers, or a bundled name; by layer."""

    def rows(layers, given=(3, 224, 224), method=""):
        name = layers
        if not isinstance(layers, str):
            document = {
                "version": 1,
                "name": "net",
                "title": "t",
                "input": list(given),
                "layers": layers,
            }
            (tmp_path / "net.yaml").write_text(json.dumps(document))
            name = "net.yaml"
        options = ("--method", method) if method else ()
        code, out, err = hwmodel("network", "show", name, "--csv", "-", *options)
        assert code == 0, err
        return {row["layer"]: row for row in csv.DictReader(io.StringIO(out))}

    return rows


@pytest.fixture
def reported(hwmodel):
    """A function that gives the rows of a `report`."""

    def rows(network, *options, hardware="ascend", method="fp"):
        usual = () if "--accounting" in options else ("--accounting", "paper")
        files = ("report", network, "--hardware", hardware, "--method", method)
        code, out, err = hwmodel(*files, "--csv", "-", *usual, *options)
        assert code == 0, err
        return list(csv.DictReader(io.StringIO(out)))

    return rows


@pytest.fixture
def refused(hwmodel):
    """A function that gives the one line in which a command is refused."""

    def line(*arguments):
        code, out, err = hwmodel(*arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1 and err.startswith("hwmodel: ")
        return err.removeprefix("hwmodel: ").rstrip()

    return line


def total(rows, column, **where):
    """The sum of a column over the rows that match."""
    chosen = [r for r in rows if all(r[name.rstrip("_")] == value for name, value in where.items())]
    assert chosen, where
    return sum(float(row[column]) if column == "energy" else int(row[column]) for row in chosen)


# The same cases in every run: a failure is of the change at hand. HWMODEL_TESTS=thorough draws anew.
settings.register_profile("same", derandomize=True)
settings.register_profile("anew", derandomize=False)
settings.load_profile("anew" if THOROUGH else "same")
