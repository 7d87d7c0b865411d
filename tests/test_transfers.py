"""Both sides of a transfer pay: judged by the simulator, which walks down to the MACs."""

import csv
import json
from math import fsum
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping, traffic
from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.options import memories
from hwmodel.tiling.pricing import memory_energy
from hwmodel.tiling.spatial.asked import asked
from hwmodel.views.posed import posed
from hwmodel.work.tensor import Direction, Role, product
from tests.simulator import walk
from tests.specs import CHIP, NETWORK, written
from tests.strategies import chips, examples, problems, row_rules, tile_chains

DATA = Path(__file__).parent / "data" / "turn2"
READ, WRITE = Direction.READ, Direction.WRITE


def walked_energy(problem, hardware, mapping, rule, sums=32):
    """What the walk of a mapping costs: reads and writes of all memories, word by word."""
    wide, energy = max(sums, problem.bits.O), 0.0
    for level, seen in enumerate(walk(problem, mapping.tiles, mapping.held, rule)):
        of_I, of_F, of_O = (hardware.holder(level, operand) for operand in "IFO")
        for operand, memory, bits in (("I", of_I, problem.bits.I), ("F", of_F, problem.bits.F)):
            energy += seen[f"{operand}_reads"] * bits * memory.read_energy_per_bit
            energy += seen[f"{operand}_brought"] * bits * memory.write_energy_per_bit
        read, write = of_O.read_energy_per_bit, of_O.write_energy_per_bit
        energy += (seen["O_partial_reads"] + seen["O_partial_sent"]) * wide * read
        energy += seen["O_partial_writes"] * wide * write
        energy += seen["O_returned"] * wide * (write + read)
        energy += problem.bits.O * (seen["O_sent"] * read + seen["O_writes"] * write)
    return energy


@settings(max_examples=examples(600), deadline=None)
@given(st.data(), problems, st.integers(1, 3), row_rules)
def test_prices_and_entries_are_those_of_the_walk(data, problem, levels, rule):
    """Any tiles, held operands, strides, dilations, paddings and groups."""
    hardware = memories(data.draw(chips(levels + 1)))
    tiles = data.draw(tile_chains(problem.extent, levels))
    mapping = Mapping(tiles, tuple(data.draw(st.sampled_from("FIO")) for _ in tiles))
    counted = traffic(problem, mapping, "exact", rule)
    walked = walked_energy(problem, hardware, mapping, rule)
    assert memory_energy(problem, counted, hardware, 32, "both") == pytest.approx(walked, rel=1e-9)
    entries = [*asked(problem, mapping, hardware, rule, "both")]
    for level, seen in enumerate(walk(problem, tiles, mapping.held, rule)):
        found = {(x, way, role): product(n) for x, way, role, n in entries[level]}
        below = {
            ("I", WRITE, Role.OPERAND): seen["I_brought"],
            ("F", WRITE, Role.OPERAND): seen["F_brought"],
            ("O", READ, Role.OPERAND): seen["O_sent"],
            ("O", READ, Role.DRAINED): seen["O_partial_sent"],
            ("O", WRITE, Role.RETURNED): seen["O_returned"],
            ("O", READ, Role.RETURNED): seen["O_returned"],
        }
        assert {key: found.get(key, 0) for key in below} == below


@pytest.mark.filterwarnings("ignore:.*is larger than L1")
def test_A8_what_it_costs_to_write_the_memories_of_I_and_F_counts():
    """The files differ only in that price, a thousandfold; under `upper` nobody asks for it."""
    problem = posed("N=1,M=16,C=8,H=12,W=12,K=3", "8,8,8", "forward").apart
    cheap, dear = (memories(load(Hardware, str(DATA / f"fill{n}.yaml"))) for n in (5, 5000))
    upper = [optimal(problem, chip, Options()) for chip in (cheap, dear)]
    assert upper[0].certificate.energy == upper[1].certificate.energy
    assert upper[0].certificate.energy == pytest.approx(249.8048e3, rel=1e-6)
    both = [optimal(problem, chip, Options(transfers="both")) for chip in (cheap, dear)]
    for chip, (mapping, certificate) in zip((cheap, dear), both, strict=True):
        walked = walked_energy(problem, chip, mapping, Options().rule)
        assert certificate.proved and certificate.energy == pytest.approx(walked, rel=1e-12)
    # Whatever the tiles, every word of I and of F is written once into its memory.
    words = problem.I_elements + problem.F_elements
    assert both[1].certificate.energy - both[0].certificate.energy >= 8 * words * (50 - 0.05)


@pytest.mark.filterwarnings("ignore:.*is larger than L1")
def test_A8_full_charges_both_sides_and_holds_anything(hwmodel):
    """What `tile` prints of the two files under the usual accounting, and under `paper`'s side."""
    full = load(Accounting, "full").counting
    assert (full.stationary, full.transfers) == ("best", "both")
    for name in ("paper", "paper-stated"):
        theirs = load(Accounting, name).counting
        assert (theirs.stationary, theirs.transfers) == ("filter", "upper")
    conv = ("--conv", "N=1,M=16,C=8,H=12,W=12,K=3", "--bits", "8,8,8", "--json")
    found = []
    for n in (5, 5000):
        code, out, err = hwmodel("tile", "--hardware", DATA / f"fill{n}.yaml", *conv)
        assert code == 0, err
        found.append(json.loads(out)["energy"])
    words = 8 * 12 * 12 + 16 * 8 * 3 * 3  # of I and of F, each brought to its memory once or more
    assert found[1] - found[0] >= 8 * words * (50 - 0.05) * (1 - 1e-12)


PATHS = ("energy_unit: pJ", "energy_unit: pJ\npath_prices: true")
UPPER = "version: 1\nname: mine\ntitle: Upper\nbased_on: full\ncounting: {transfers: upper}\n"


def test_where_prices_are_of_whole_paths_the_memory_asked_pays_alone(hwmodel, tmp_path):
    """In one table with another chip, each is as under an accounting of its own."""
    written(tmp_path, NETWORK, name="net.yaml")
    written(tmp_path, CHIP, name="plain.yaml")
    written(tmp_path, CHIP, PATHS, ("name: chip", "name: board"), name="board.yaml")
    (tmp_path / "upper.yaml").write_text(UPPER)

    def energies(command, *words):
        code, out, err = hwmodel(command, "net.yaml", *words, "--csv", "-")
        assert code == 0, err
        return [float(row["energy"]) for row in csv.DictReader(out.splitlines())], err

    two = ("--hardware", "plain.yaml,board.yaml", "--methods", "fp,bold")
    (*plain, fp, bold), told = energies("compare", *two, "--accounting", "full")
    assert "board: prices are of whole paths, both sides of a transfer" in told
    one = ("--hardware", "plain.yaml", "--methods", "fp,bold", "--accounting")
    both, upper = (energies("compare", *one, name)[0] for name in ("full", "upper.yaml"))
    assert plain == both and [fp, bold] == upper and fp < both[0] and bold < both[1]
    rows, told = energies("report", "--hardware", "board.yaml", "--method", "bold", "--accounting",
                          "full")  # fmt: skip
    assert fsum(rows) == pytest.approx(bold, rel=1e-12) and "prices are of whole paths" in told
    assert "whole paths" not in energies("compare", *two, "--accounting", "upper.yaml")[1]
    for chip, once in (("board.yaml", 1), ("plain.yaml", 0)):
        which = ("--layer", "conv1", "--method", "fp", "--hardware", chip, "--accounting", "full")
        assert hwmodel("explain", "net.yaml", *which)[1].count("Prices are of whole paths") == once
    (tmp_path / "s.yaml").write_text(
        "version: 1\nname: s\nnetwork: net.yaml\nhardware: [plain.yaml, board.yaml]\n"
        "title: s\nmethod: [fp, bold]\naccounting: full\nbatch: [1]\n"
    )
    code, _, err = hwmodel("sweep", "s.yaml", "-o", "s.csv")
    assert code == 0, err
    with (tmp_path / "s.csv").open() as stream:
        swept = sorted(float(row["energy"]) for row in csv.DictReader(stream))
    assert swept == pytest.approx(sorted([*both, *upper]), rel=1e-12)
    conv = "--conv", "N=1,M=16,C=8,H=12,W=12,K=3", "--bits", "8,8,8", "--json"
    tiled = [
        json.loads(hwmodel("tile", "--hardware", chip, *conv, "--accounting", name)[1])["energy"]
        for chip, name in (("board.yaml", "full"), ("plain.yaml", "upper.yaml"))
    ]
    assert tiled[0] == tiled[1]
