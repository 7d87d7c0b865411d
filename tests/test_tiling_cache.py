"""Tilings on disk: found once, never taken for others, and harmless where the file is broken."""

import sqlite3

import pytest

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling import cache
from hwmodel.tiling import tile as tiling
from hwmodel.tiling.options import SearchOptions, memories
from hwmodel.work.problem import Extents, Problem, Widths, Window
from hwmodel.work.tensor import Pass

NEST = Problem(Extents(1, 16, 8, 10, 10, 3, 3), Window(12), Window(12), Widths(8, 8, 8))
PLACES = memories(load(Hardware, "ascend"))
OPTIONS = SearchOptions.of(load(Accounting, "full"), Pass.FORWARD)


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A cache of its own, and a count of the searches."""
    monkeypatch.setenv("HWMODEL_CACHE", str(tmp_path))
    searches, search = [], tiling.optimal

    def counted(*arguments):
        searches.append(arguments)
        return search(*arguments)

    monkeypatch.setattr(tiling, "optimal", counted)
    yield tmp_path / "tilings.sqlite", searches
    cache._connected.cache_clear()
    tiling.tile.cache_clear()


def found(nest=NEST, places=PLACES, options=OPTIONS):
    """The tiling as a new process finds it."""
    tiling.tile.cache_clear()
    cache._connected.cache_clear()
    return tiling.tile(nest, places, options)


def test_a_tiling_is_searched_once_and_is_the_same(there):
    path, searches = there
    first, second = found(), found()
    assert first == second and len(searches) == 1 and path.is_file()
    assert type(second.certificate.energy) is float and second.certificate.proved


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
