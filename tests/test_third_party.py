"""Other tools' numbers; where each comes from stands at the top of its file."""

import csv
from pathlib import Path

import pytest

from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping, traffic
from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.rows import RowRule
from hwmodel.work.problem import Extents, Problem, Widths, Window

DATA = Path(__file__).parent / "data"


def rows(name):
    with (DATA / name).open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


COUNTS = rows("accelforge_counts.csv")


def nest(row):
    n = {key: int(row[key]) for key in ("N", "M", "C", "P", "Q", "R", "S", "stride")}
    extent = Extents(n["N"], n["M"], n["C"], n["P"], n["Q"], n["R"], n["S"])
    height, width = (
        Window((outs - 1) * n["stride"] + taps, n["stride"])
        for outs, taps in ((n["P"], n["R"]), (n["Q"], n["S"]))
    )
    tiles = []
    for tile in row["tiles_m_n_p_q"].split("|"):
        M, N, P, Q = map(int, tile.split("-"))
        tiles.append(Extents(N, M, n["C"], P, Q, n["R"], n["S"]))
    problem = Problem(extent, height, width, Widths(32, 32, 32))
    return problem, Mapping(tuple(tiles), ("F",) * len(tiles))


@pytest.mark.parametrize(
    "row", COUNTS, ids=lambda r: "-".join((r["case"], r["level"], r["tensor"], r["action"]))
)
def test_counts_above_the_innermost_level_equal_accelforge(row):
    """That tool loads rows from the first to the last; its writes of I and F are our fills."""
    problem, mapping = nest(row)
    counts = traffic(problem, mapping, "exact", RowRule("bounding", "skipped"))
    level = row["levels"].split("/").index(row["level"])
    asked, tensor = counts[level], row["tensor"]
    if tensor == "O":
        ours = asked.O_partial_reads
        if row["action"] == "write":
            ours = asked.O_writes + asked.O_partial_writes
        elif level:  # what goes on to the level above is read here: that tool counts it
            ours += counts[level - 1].O_writes
    elif row["action"] == "read":
        ours = getattr(asked, tensor + "_reads")
    else:  # what a level is filled with is what the level above is asked for
        ours = getattr(counts[level - 1], tensor + "_reads") if level else 0
    assert ours == int(row["elements"])


@pytest.mark.parametrize("row", rows("mapper_energies.csv"), ids=lambda r: r["layer"])
def test_the_best_tiling_costs_no_more_than_a_general_mapper_found(row):
    n = {key: int(row[key]) for key in ("N", "C", "M", "P", "K", "stride")}
    pad = n["K"] // 2
    size = n["P"] * n["stride"]
    window = Window(size, n["stride"], 1, pad, pad)
    extent = Extents(n["N"], n["M"], n["C"], n["P"], n["P"], n["K"], n["K"])
    problem = Problem(extent, window, window, Widths(16, 16, 16))
    for ofmap_space in ("held", "counted"):
        for padding in ("skipped", "counted"):
            options = Options(
                stationary="best", ofmap_space=ofmap_space, rule=RowRule("touched", padding)
            )
            certificate = optimal(problem, load(Hardware, "ascend"), options).certificate
            assert certificate.proved
            assert certificate.energy <= 1e6 * float(row["energy_uj"])
