"""The ledger: entries with factors, counts times prices, and the tidy table made of them."""

import csv
import io
from math import fsum, prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwmodel import evaluate
from hwmodel.model.ledger import NAME
from hwmodel.model.report import COLUMNS
from hwmodel.rerun.tables import report_table
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling.accesses import Mapping, asked
from hwmodel.tiling.optimal import search as searching
from hwmodel.tiling.rows import RowRule
from hwmodel.vary.paths import replaced_all
from hwmodel.work.tensor import Direction, Factor, Role, product
from tests.simulator import simulate
from tests.specs import ALIKE
from tests.strategies import convolutions, problem

READ, WRITE, OPERATE = Direction.READ, Direction.WRITE, Direction.OPERATE
PASSES = ["forward", "backward_input", "backward_weight"]
RULES = [RowRule("touched", "skipped"), RowRule("bounding", "counted")]


def by_hand(walked):
    """What the simulator saw of a level, by operand, direction and whether the sum is finished."""
    found = {
        ("I", READ, Role.OPERAND): walked["I_reads"],
        ("F", READ, Role.OPERAND): walked["F_reads"],
        ("O", READ, Role.UNFINISHED): walked["O_partial_reads"],
        ("O", WRITE, Role.UNFINISHED): walked["O_partial_writes"],
        ("O", WRITE, Role.OPERAND): walked["O_writes"],
    }
    return {key: number for key, number in found.items() if number}


@settings(max_examples=80, deadline=None)
@given(
    st.data(), convolutions(), st.sampled_from(PASSES), st.integers(1, 3), st.sampled_from(RULES)
)
def test_the_product_of_an_entry_s_factors_is_what_the_simulator_counts(
    data, convolution, phase, levels, rule
):
    """Every level, held operand, ragged tile: the factors that explain a count make it."""
    layer, shape, batch = convolution
    nest = problem(layer, shape, batch, phase)
    assume(layer.macs([shape]) * batch <= 1200)
    tiles, above = [], nest.extent
    for _ in range(levels):
        above = type(above)(*(data.draw(st.integers(1, length)) for length in above))
        tiles.append(above)
    held = tuple(data.draw(st.sampled_from("FIO")) for _ in tiles)
    found = asked(nest, Mapping(tuple(tiles), held), "exact", rule)
    walked = simulate(nest, tuple(tiles), held, rule)
    for level, seen in zip(found, walked, strict=True):
        assert {one[:3]: product(one.factors) for one in level} == by_hand(seen)


def test_a_count_is_the_whole_number_nearest_to_the_product_of_its_factors():
    assert product((Factor("N", 3), Factor("share", 0.5), Factor("C", 3))) == 4  # 4.5, to even
    assert product((Factor("N", 2**62), Factor("M", 2**62))) == 2**124


NETWORKS = {"fp": "bert-base", "bold": "vgg-small", "bold-bert": "bert-base", "bnext": "bnext-18"}


@pytest.mark.parametrize("accounting", ["paper", "full"])
@pytest.mark.parametrize("method", sorted(bundled(Method).keys() - ALIKE))
def test_names_are_unique_counts_whole_and_rows_priced(method, accounting):
    network = NETWORKS.get(method, "conv-small")
    wider = replaced_all(load(Accounting, accounting), {"prices.narrow_floats": "expanded"})
    mode = "training" if load(Method, method).trains else "inference"
    report = evaluate(network, "ascend", method, accounting=wider, batch=3, mode=mode)
    names = [entry.name for entry in report.ledger.entries]
    assert len(set(names)) == len(names)
    for entry in report.ledger.entries:
        assert type(entry.count) is int and entry.count > 0
        assert entry.elements == round(prod(factor.value for factor in entry.factors))
        assert (entry.memory == "") == (entry.direction == OPERATE) == bool(entry.operation)
    cells = [dict(zip(COLUMNS, row, strict=True)) for row in report.records]
    for row in cells:
        assert row["energy"] == row["count"] * row["price"]
        each = 1 if row["operation"] else row["bits"]  # of formats with scales, rounded up once
        assert -1e-3 < row["count"] - row["elements"] * each < 1
        assert isinstance(each, float) or row["count"] == row["elements"] * each
    assert fsum(row["energy"] for row in cells) == pytest.approx(report.energy, rel=1e-12)


@pytest.mark.parametrize("columns", [("layer",), ("pass", "component"), ("memory", "direction")])
def test_every_group_by_is_the_sum_of_its_rows(columns):
    report = evaluate("conv-small", "ascend", "bold", accounting="full")
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in report.records]
    for label, energy in report.energies(*columns).items():
        mine = [r["energy"] for r in rows if tuple(r[c] for c in columns) == label]
        assert energy == pytest.approx(fsum(mine), rel=1e-12)
    assert report.by(*columns).sum() == pytest.approx(report.energy, rel=1e-12)


def test_a_spreadsheet_can_price_the_table_anew():
    """Of the CSV alone: DRAM at twice its price is what `evaluate` says of such a chip."""
    report = evaluate("conv-small", "ascend", "bold", accounting="paper")
    rows = list(csv.DictReader(io.StringIO(report_table(report).csv())))
    outer = report.hardware.levels[0].name
    anew = fsum(
        int(row["count"]) * float(row["price"]) * (2 if row["memory"] == outer else 1)
        for row in rows
    )
    prices = {f"levels.{outer}.efficiency": "0.01 GB/s/mW"}  # half of the 0.02 of the file
    dearer = replaced_all(load(Hardware, "ascend"), prices)
    priced = evaluate("conv-small", dearer, "bold", accounting="paper")
    assert [e.name for e in priced.ledger.entries] == [e.name for e in report.ledger.entries]
    assert anew == pytest.approx(priced.energy, rel=1e-12)


def test_reads_and_writes_of_one_memory_stand_in_rows_of_their_own(tmp_path):
    """Reading at 1 and writing at 10 pJ/bit: every row has one of the two prices (B11)."""
    text = (
        "version: 1\nname: nvm\ntitle: t\nenergy_unit: pJ\nlevels:\n"
        "  - {name: DRAM, level: 2, capacity: unlimited, access_energy: 20, source: s}\n"
        "  - {name: NVM, level: 1, capacity: 1 MiB, read_energy: 1, write_energy: 10, source: s}\n"
        "  - {name: compute, level: 0, capacity: 64 KiB, access_energy: 0.1, source: s}\n"
        "arithmetic:\n  - {operation: mac, bits: 32, energy: 4.6, source: s}\n"
        "  - {operation: int-add, bits: 32, energy: 0.1, source: s}\n"
    )
    path = tmp_path / "nvm.yaml"
    path.write_text(text)
    report = evaluate("conv-small", path, "fp", accounting="full")
    prices = {
        (row[COLUMNS.index("direction")], row[COLUMNS.index("price")])
        for row in report.records
        if row[COLUMNS.index("memory")] == "NVM"
    }
    assert prices == {("read", 1.0), ("write", 10.0)}
    # A memory may be called as the tool calls operations (B10): its name moves no number.
    path.write_text(text.replace("name: compute", "name: L0"))
    other = evaluate("conv-small", path, "fp", accounting="full")
    assert other.energy == report.energy
    ours, theirs = report.energies("direction"), other.energies("direction")
    assert ours == theirs


def test_the_name_of_a_row_is_the_table_s_first_eight_columns_behind_the_inputs():
    assert COLUMNS[5:13] == NAME


def test_the_second_of_two_equal_calls_does_not_search(monkeypatch):
    evaluate("conv-small", "ascend", "fp", accounting="full", batch=3)
    monkeypatch.setattr(searching, "optimal", None)  # a search would end in an error
    again = evaluate("conv-small", "ascend", "fp", accounting="full", batch=3)
    dearer = replaced_all(load(Hardware, "ascend"), {"arithmetic.mac.32.efficiency": "1 TOPS/W"})
    moved = evaluate("conv-small", dearer, "fp", accounting="full", batch=3)
    assert moved.energy > again.energy  # a price of arithmetic moves no tiling
