"""Counts of memories side by side and of arrays of MACs: a simulator, other tools, hand counts."""

import csv
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from hwmodel.tiling.accesses import Mapping, Traffic, traffic
from hwmodel.tiling.options import Array, Memories, Memory, MemoryLevel
from hwmodel.tiling.rows import RowRule
from hwmodel.tiling.spatial.asked import asked, time
from hwmodel.tiling.spatial.links import Nest, links
from hwmodel.work.problem import Extents, Problem, Widths, Window
from hwmodel.work.tensor import Direction, product
from tests.spatial_simulator import Simulation
from tests.strategies import convolutions, examples, problem, problems, row_rules, tile_chains

DATA = Path(__file__).parent / "data"
PASSES = ["forward", "backward_input", "backward_weight"]


def yaml(path):
    return YAML(typ="safe").load(path.read_text())


def rows(name):
    with (DATA / name).open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def chip(holds, multicast=(), reduction=(), array=None):
    """Memories by what they hold, the outermost first; fan-outs and prices do not matter here."""
    levels = []
    for i, operands in enumerate(holds):
        memory = Memory(f"L{i}", tuple(operands), None, 1.0, 1.0)
        merges = {"multicast": multicast[i], "reduction": reduction[i]} if multicast else {}
        levels.append(MemoryLevel(f"L{i}", (memory,), 1, **merges))
    return Memories(tuple(levels), array)


def counted(nest):
    """What the product counts, under the simulator's names; nothing is left out."""
    found = {}
    for x in "IFO":
        for link in links(nest.chip, x):
            last = link.below == len(nest.chip.levels)
            asked = nest.crossing(link, link.above).elements
            if x == "O":
                found[link.above, x, "written"] = asked
                found[link.above, x, "fetched"] = asked - nest.begun(link).elements
                found[link.above, x, "finished"] = nest.finished(link).elements
                if not last:
                    found[link.below, x, "drained"] = nest.crossing(link, link.below).elements
            else:
                found[link.above, x, "read"] = asked
            for level in range(link.above + 1, link.below + (not last)):
                found[level, x, "hop"] = nest.crossing(link, level).elements
    return {key: number for key, number in found.items() if number}


@st.composite
def nests(draw):
    """A layer's pass, tiles that nest, and a chip on which operands often pass levels by."""
    layer, shape, batch = draw(convolutions(strides=(1, 2, 3), dilations=(1, 2)))
    assume(layer.macs([shape]) * batch <= draw(st.sampled_from((100, 400, 800))))
    one = problem(layer, shape, batch, draw(st.sampled_from(PASSES)))
    depth = draw(st.integers(0, 3))
    with_array = depth == 0 or draw(st.integers(0, 3)) > 0
    chain = draw(tile_chains(one.extent, 2 * depth + 1))
    unions, tiles = chain[: 2 * depth : 2], chain[1 : 2 * depth : 2]
    operands = st.sampled_from(("IFO", "IFO", "IF", "IO", "FO", "I", "F", "O"))
    holds = ("IFO", *(draw(operands) for _ in tiles))
    merges = st.sampled_from((True, True, False))
    multicast, reduction = ([draw(merges) for _ in holds] for _ in range(2))
    held = tuple(draw(st.sampled_from(("I", "F", "O", "none"))) for _ in tiles)
    array = (chain[-1], draw(st.sampled_from(("none", "I", "F", "O")))) if with_array else None
    rule = RowRule("touched", draw(st.sampled_from(("skipped", "counted"))))
    return one, unions, tiles, held, holds, multicast, reduction, array, rule


def product_of(case):
    one, unions, tiles, held, holds, multicast, reduction, array, rule = case
    rests = Array((), array[1]) if array else None
    mapping = Mapping(tiles, held, unions, array[0] if array else None)
    return Nest(one, mapping, chip(holds, multicast, reduction, rests), rule)


@settings(max_examples=examples(2500, part=20), deadline=None)
@given(nests())
def test_every_count_equals_the_simulator(case):
    nest, walked = product_of(case), Simulation(*case)
    assert counted(nest) == {key: number for key, number in walked.counts.items() if number}
    if nest.chip.array:
        assert product(nest.made(places=True)) == walked.cycles
        assert product(nest.made(places=False)) == walked.moments


@settings(max_examples=examples(600), deadline=None)
@given(st.data(), problems, st.integers(1, 3), row_rules)
def test_without_the_fields_counts_are_those_of_one_memory_a_level(data, one, depth, rule):
    tiles = data.draw(tile_chains(one.extent, depth))
    held = tuple(data.draw(st.sampled_from("FIO")) for _ in tiles)
    plain, found = traffic(one, Mapping(tiles, held), "exact", rule), []
    nest = Nest(one, Mapping(tiles, held), chip(["IFO"] * (depth + 1)), rule)
    for ways in zip(*(links(nest.chip, x) for x in "IFO"), strict=True):
        ifmaps, filters, written = (nest.crossing(x, x.above).elements for x in ways)
        begun, ends = nest.begun(ways[2]).elements, nest.finished(ways[2]).elements
        found.append(Traffic(ifmaps, filters, written - begun, written - ends, ends))
    assert found == plain


def by_hand(**changes):
    """Docs/chips.md, 'By hand': M = 4, C = 2, HO = 6, HF = 3 on four PEs under one buffer."""
    extent = Extents(1, 4, 2, 6, 1, 3, 1)
    one = Problem(extent, Window(8), Window(1), Widths(16, 16, 16))
    union, tile = Extents(1, 2, 2, 4, 1, 3, 1), Extents(1, 1, 2, 2, 1, 3, 1)
    union, tile = (
        union._replace(**changes.get("union", {})),
        tile._replace(**changes.get("tile", {})),
    )
    mapping = Mapping((tile,), ("F",), (union,), Extents(*[1] * 7))
    merges = {x: [True, changes.get(x, True)] for x in ("multicast", "reduction")}
    return Nest(one, mapping, chip(["IFO", "IFO"], array=Array(()), **merges))


def four(chip):
    """The levels, with four memories at the inner one: counts do not ask how many there are."""
    return (chip.levels[0], chip.levels[1]._replace(fanout=4))


def spent(nest, buffer, hop, rf):
    """What is asked for, at so much a word of the buffer, a hop and a word of a register file."""
    priced = nest.chip._replace(levels=four(nest.chip))
    total = 0
    for level, several in enumerate(asked(nest.problem, nest.mapping, priced, nest.rule, "upper")):
        for _, direction, _, factors in several:
            price = hop if direction == Direction.HOP else (buffer, rf)[level]
            total += price * product(factors)
    return total


def test_the_worked_example():
    assert counted(by_hand()) == {
        (0, "I", "read"): (6 + 4) * 2 * 2,  # union tiles of 4 and 2 outputs; C; two pieces of M
        (1, "I", "hop"): 3 * 4 * 2 * 4,  # three tiles of 2 outputs; C; four pieces of M
        (0, "F", "read"): 24,  # once
        (1, "F", "hop"): 24 * 2,  # a copy in each of two PEs
        (0, "O", "written"): 24,
        (0, "O", "finished"): 24,
        (1, "O", "hop"): 24,
        (1, "O", "drained"): 24,
        (1, "I", "read"): 144,
        (1, "F", "read"): 144,
        (1, "O", "written"): 144,
        (1, "O", "finished"): 24,
        (1, "O", "fetched"): 144 - 24,
    }
    buffer, hop, rf = 6, 2, 1
    assert buffer * (40 + 24 + 24) + hop * (96 + 48 + 24) + rf * (3 * 144 + 120) == 1416
    nest = by_hand()
    assert spent(nest, buffer, hop, rf) == 1416
    taken = time(nest.problem, nest.mapping, nest.chip._replace(levels=four(nest.chip)), nest.rule)
    assert taken.utilisation == 144 / (48 * 4) == 0.75
    assert product(nest.made(places=False)) == 2 * 2 * 3 * (2 + 2)  # M, C, HF, HO
    assert product(nest.made(places=True)) == 144


def test_the_worked_example_without_multicast():
    found = counted(by_hand(multicast=False))
    assert found[0, "I", "read"] + found[0, "F", "read"] == 96 + 48


def test_the_worked_example_with_the_reduction_spread():
    spread = {"union": {"HO": 6}, "tile": {"C": 1, "HO": 6}}
    found = counted(by_hand(**spread))
    assert (found[1, "O", "drained"], found[0, "O", "written"]) == (48, 24)
    assert (0, "O", "fetched") not in found
    found = counted(by_hand(**spread, reduction=False))
    assert (found[0, "O", "written"], found[0, "O", "fetched"]) == (48, 24)


# Published counts of other tools; where each comes from stands at the top of the file of mappings.
CASES = {case["case"]: case for case in yaml(DATA / "third_party_spatial.yaml")["cases"]}
LEVELS = {  # of each tool's names, from the outermost
    "tl04_cp": ("MainMemory", "GlobalBuffer", "", "RegisterFile"),
    "tl06_eyeriss_conv": ("DRAM", "shared_glb", "ifmap_spad weights_spad psum_spad"),
    "tl_simple_os": (
        "DRAM", "shared_glb", "pe_spad", "weight_reg",
        "input_activation_reg output_activation_reg",
    ),
    "tl_simba_like": (
        "DRAM", "GlobalBuffer", "PEInputBuffer", "PEWeightBuffer", "", "PEAccuBuffer",
    ),
    "zz_gemm_l1": ("l1", "reg_O"),
    "systolic_1x1": ("L1", "array L0"),
    "ss_gemm": ("SRAM",),
    "nnd": ("dram", "gbuf", "itcn regf"),
    "mae": ("L2", "L1"),
}  # fmt: skip


def third_party(case):
    lengths = dict.fromkeys(Extents._fields, 1)
    axes = (
        Window(case["problem"][x]["size"], case["problem"][x]["step"]) for x in ("height", "width")
    )
    one = Problem(Extents(**lengths | case["problem"]["extent"]), *axes, Widths(8, 8, 8))

    def tiles(name):
        return tuple(Extents(**lengths | level[name]) for level in case["levels"] or ())

    holds = ["IFO", *(level["holds"] for level in case["levels"] or ())]
    held = tuple(level["held"] for level in case["levels"] or ())
    cycle = Extents(**lengths | case["array"]["union"])
    array = Array((), case["array"]["held"])
    return Nest(one, Mapping(tiles("tile"), held, tiles("union"), cycle), chip(holds, array=array))


@cache
def third_party_counts(name):
    nest = third_party(CASES[name])
    return nest, counted(nest)


@pytest.mark.parametrize(
    "row", rows("third_party_spatial.csv"), ids=lambda row: "-".join(row.values())
)
def test_counts_equal_those_of_other_tools(row):
    nest, found = third_party_counts(row["case"])
    names = next(LEVELS[key] for key in LEVELS if row["case"].startswith(key))
    level = next(i for i, some in enumerate(names) if row["level"] in some.split())
    x, quantity = row["tensor"], row["quantity"].removesuffix(" (all instances)")
    above = max((link.above for link in links(nest.chip, x) if link.below == level), default=None)
    back = found.get((above, x, "fetched"), 0)  # sums that come back, to one instance

    def of(*what):
        return sum(found.get((level, x, one), 0) for one in what)

    on_the_way = row["level"] in ("array", "itcn")
    ours = {
        "reads": of("read", "fetched") + back,
        "fills": back if x == "O" else of("hop"),
        "L1 fills": of("hop"),
        "L2 reads": of("read"),
        "updates": of("written"),
        "writes": of("written"),
        "L1 writes": of("written"),
        "wr_up": of("written"),
        "rd_up": of("drained"),
        "reads + writes": of("written", "fetched"),
        "accesses": of("hop") if on_the_way else of("read", "written", "fetched"),
        "deliveries": of("hop"),
        "sums through the array": of("drained"),
    }[quantity]
    assert ours == int(row["published"])


def test_every_published_count_is_tested():
    assert len(rows("third_party_spatial.csv")) == 167
