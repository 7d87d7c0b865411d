"""Tilings on disk: found once, never taken for others, and harmless where the file is broken."""

import sqlite3
import time

import pytest

from hwmodel import compare, evaluate
from hwmodel.graph.network import Network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling import cache
from hwmodel.tiling import tile as tiling
from hwmodel.tiling.optimal import search as searching
from hwmodel.tiling.options import SearchOptions, memories
from hwmodel.vary.paths import Inputs, replaced_all
from hwmodel.vary.sensitivity.costs import Costs, Study
from hwmodel.work.problem import Extents, Problem, Widths, Window
from hwmodel.work.tensor import Pass

NEST = Problem(Extents(1, 16, 8, 10, 10, 3, 3), Window(12), Window(12), Widths(8, 8, 8))
PLACES = memories(load(Hardware, "ascend"))
OPTIONS = SearchOptions.of(load(Accounting, "full"), Pass.FORWARD)


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A cache of its own, and a count of the searches."""
    monkeypatch.setenv("HWMODEL_CACHE", str(tmp_path))
    searches, search = [], searching.optimal

    def counted(*arguments):
        searches.append(arguments)
        return search(*arguments)

    monkeypatch.setattr(searching, "optimal", counted)
    yield tmp_path / "tilings.sqlite", searches
    cache._files.clear()
    tiling.tile.cache_clear()


def found(nest=NEST, places=PLACES, options=OPTIONS):
    """The tiling as a new process finds it."""
    tiling.tile.cache_clear()
    cache._files.clear()
    return tiling.tile(nest, places, options)


def test_a_tiling_is_searched_once_and_is_the_same(there):
    path, searches = there
    first, second = found(), found()
    assert first == second and len(searches) == 1 and path.is_file()
    assert repr(first) == repr(second) and second.certificate.proved


@pytest.mark.parametrize("moved", ["problem", "memory", "options", "code"])
def test_whatever_moves_is_searched_anew(there, monkeypatch, moved):
    _, searches = there
    found()
    if moved == "problem":
        found(nest=Problem(NEST.extent, NEST.height, NEST.width, Widths(8, 8, 16)))
    elif moved == "memory":
        level, *rest = PLACES.levels
        dearer = level.buffers[0]._replace(write_energy_per_bit=99.0)
        found(places=PLACES._replace(levels=(level._replace(buffers=(dearer,)), *rest)))
    elif moved == "options":
        found(options=SearchOptions(**{**OPTIONS.__dict__, "partial_sum_bits": 48}))
    else:
        monkeypatch.setattr(cache, "_code", lambda: "other code")
        found()
    assert len(searches) == 2


def test_one_character_that_is_not_as_it_was_is_searched_anew(there):
    path, searches = there
    first = found()
    with sqlite3.connect(path) as file:
        ((text,),) = file.execute("SELECT found FROM tilings").fetchall()
        other = text.replace("16", "15", 1) if "16" in text[16:] else text[:-1]
        file.execute("UPDATE tilings SET found = ?", (other,))
    assert found() == first and len(searches) == 2


@pytest.mark.parametrize("damage", [b"", b"not a database at all, but long enough" * 100])
def test_a_damaged_file_is_made_anew(there, damage):
    path, searches = there
    first = found()
    path.write_bytes(damage)
    assert found() == first == found()
    assert len(searches) == 2


def test_a_file_that_is_damaged_while_it_is_open_is_made_anew(there):
    path, searches = there
    other = Problem(NEST.extent, NEST.height, NEST.width, Widths(4, 8, 8))
    first = found()
    path.write_bytes(b"not a database at all, but long enough" * 100)
    tiling.tile.cache_clear()
    assert tiling.tile(other, PLACES, OPTIONS) == found(other)
    assert found() == first
    assert len(searches) == 3


def test_a_file_that_another_process_holds_is_not_waited_for_twice(there, monkeypatch):
    path, searches = there
    monkeypatch.setattr(cache, "WAIT", 0.2)
    first = found()
    with sqlite3.connect(path) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        assert found() == first
        for bits in range(1, 8):
            nest = Problem(NEST.extent, NEST.height, NEST.width, Widths(bits, 8, 8))
            tiling.tile(nest, PLACES, OPTIONS)
        assert len(searches) == 9
        assert time.monotonic() - began < 2
    assert found() == first and len(searches) == 9


def test_it_can_be_switched_off_and_a_folder_that_cannot_be_made_is_none(there, monkeypatch):
    path, searches = there
    monkeypatch.setenv("HWMODEL_CACHE", "off")
    found(), found()
    monkeypatch.setenv("HWMODEL_CACHE", "/dev/null/nowhere")
    found(), found()
    assert len(searches) == 4 and not path.exists()


def test_it_is_bounded(there, monkeypatch):
    path, _ = there
    monkeypatch.setattr(cache, "MOST", 3)
    for bits in range(1, 8):
        found(nest=Problem(NEST.extent, NEST.height, NEST.width, Widths(bits, 8, 8)))
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*) FROM tilings").fetchone() == (3,)


# Within a process


LAYERS = {
    "version": 1, "name": "two", "title": "Two layers", "input": (4, 6, 6),
    "layers": [{"name": "conv", "kind": "conv", "channels": 6, "kernel": 3},
               {"name": "fc", "kind": "linear", "features": 5}],
}  # fmt: skip


def test_what_has_been_asked_for_is_not_searched_again_by_anybody(there, monkeypatch):
    """Reports, comparisons, sweeps and studies share what a process has found."""
    _, searches = there
    monkeypatch.setenv("HWMODEL_CACHE", "off")
    network = Network.model_validate(LAYERS)
    tiling.tile.cache_clear()
    first = evaluate(network, "ascend", "fp", accounting="full")
    several = len(searches)
    assert several == 5  # no gradient of the image
    assert evaluate(network, "ascend", "fp", accounting="full") == first
    chip, accounting, fp = load(Hardware, "ascend"), load(Accounting, "full"), load(Method, "fp")
    dearer = replaced_all(chip, {"arithmetic.mac.32": 3.0}).model_copy(update={"name": "dearer"})
    list(compare(network, [chip, dearer], ["fp"], accounting="full"))
    costs = Costs(Study(network, (fp,), fp, (Inputs(network, chip, fp, accounting),), "training"))
    costs.at(0, {"accounting.extras.flip_rate": 0.5})
    costs.at(0, {"hardware.arithmetic.mac.32": 0.5})
    assert len(searches) == several
    costs.at(0, {"hardware.levels.L2.write_energy": 0.5})
    assert len(searches) == 2 * several


def test_what_a_process_remembers_is_bounded():
    assert tiling.tile.cache_info().maxsize == 2**16


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache.Path, "home", homeless)
    monkeypatch.delenv("HWMODEL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.folder() is None


def test_a_tilde_is_the_user_s_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HWMODEL_CACHE", "~/kept")
    assert cache.folder() == tmp_path / "kept"
    monkeypatch.setenv("HWMODEL_CACHE", "~nobody-is-called-so/kept")
    assert cache.folder() is None
