"""C: access counts, tiles and energy."""

import json

import pytest

from hwmodel import evaluate
from tests.conftest import total
from tests.rows import merged
from tests.specs import CHIP, NETWORK, written

TWO_LEVELS = """\
version: 1
name: two
title: Two levels
energy_unit: pJ
sources: {me: "me, 2024"}
levels:
  - {level: 1, name: DRAM, capacity: unlimited, read_energy: 1.0, write_energy: 1.2, source: me}
  - {level: 0, name: RF, capacity: 1 KiB, read_energy: 0.5, write_energy: 0.25, source: me}
arithmetic:
  - {operation: mac, bits: 32, energy: 4.6 pJ, source: me}
"""


def tiled(hwmodel, conv, *options, hardware="ascend", bits="16,16,16"):
    code, out, err = hwmodel(
        "tile", "--hardware", hardware, "--conv", conv, "--bits", bits, "--json", *options
    )
    assert code == 0, err
    return json.loads(out)


def saved(tmp_path, *tiles):
    """A file of tiles, each (M, N, C, H, W, HF, WF)."""
    names = ("M", "N", "C", "H", "W", "HF", "WF")
    listed = [dict(zip(names, tile, strict=True)) | {"level": "x", "held": "F"} for tile in tiles]
    (tmp_path / "tiles.json").write_text(json.dumps({"tiles": listed}))
    return "tiles.json"


def test_C1_no_operand_goes_past_the_outermost_level_and_no_count_is_below_zero(
    refused, reported, tmp_path
):
    written(tmp_path, CHIP, ("[I, F, O]", "[I, F]"), name="chip.yaml")
    assert refused("hardware", "check", "chip.yaml") == (
        "chip.yaml:7: levels.DRAM: holds F, I; each of I, F, O exactly once"
    )
    for row in reported("vgg-small-1fc", "--accounting", "full"):
        numbers = (int(row[column]) for column in ("bits", "elements", "count"))
        assert min(*numbers, float(row["price"]), float(row["energy"])) >= 0


def test_C2_sums_that_leave_n_times_come_back_n_minus_1_times_at_both_levels(hwmodel, tmp_path):
    """C = 12 cut into 3 at the outer boundary and again into 2 at the inner one.

    Across the outer one each of the |O| sums goes up 3 times and comes down 2 times; across the inner one
    6 times up, and 3 times of these begin afresh. So updates less reads are |O| where they rest.
    """
    tiles = saved(tmp_path, (5, 1, 4, 7, 7, 1, 1), (5, 1, 2, 7, 7, 1, 1))
    written(tmp_path, CHIP, name="chip.yaml")
    found = tiled(hwmodel, "N=1,M=5,C=12,H=7,W=7,K=1", "--tiles", tiles, hardware="chip.yaml")
    dram, sram, _ = found["accesses"]
    outputs = 5 * 7 * 7
    assert (dram["O_partial_reads"], dram["O_partial_writes"], dram["O_writes"]) == (
        2 * outputs,
        2 * outputs,
        outputs,
    )
    assert (sram["O_partial_reads"], sram["O_partial_writes"] + sram["O_writes"]) == (
        3 * outputs,
        6 * outputs,
    )


def test_C4_reads_and_writes_have_their_own_price(reported, tmp_path):
    """A linear layer of 3 x 5 in one tile: DRAM gives 3 + 15 words at 1.0 and takes 5 at 1.2, of 32 bit."""
    written(tmp_path, TWO_LEVELS, name="two.yaml")
    layers = "[{name: fc, kind: linear, features: 5}]"
    (tmp_path / "net.yaml").write_text(
        f"version: 1\nname: n\ntitle: t\ninput: [3, 1, 1]\nlayers: {layers}\n"
    )
    rows = reported("net.yaml", "--mode", "inference", hardware="two.yaml")
    found = {(r["tensor"], r["memory"]): float(r["energy"]) for r in rows}
    assert found["I", "DRAM"] == 3 * 32 * 1.0
    assert found["F", "DRAM"] == 15 * 32 * 1.0
    assert found["O", "DRAM"] == pytest.approx(5 * 32 * 1.2)
    assert found["I", "RF"] == 3 * 32 * 0.5


def test_C6_a_price_that_changes_changes_the_result(hwmodel, reported, tmp_path):
    """All of the network fits the inner levels, so that tiles stay as they are; the file is echoed."""
    written(tmp_path, NETWORK, name="net.yaml")
    big = ("64 KiB", "64 MiB"), ("1 KiB", "16 MiB")
    written(tmp_path, CHIP, *big, name="one.yaml")
    written(tmp_path, CHIP, *big, ("50 pJ/B", "500 pJ/B"), name="ten.yaml")
    one, ten = (reported("net.yaml", hardware=name) for name in ("one.yaml", "ten.yaml"))
    assert total(ten, "energy", memory="DRAM") == pytest.approx(
        10 * total(one, "energy", memory="DRAM"), rel=1e-14
    )
    rest = [[r for r in rows if r["memory"] != "DRAM"] for rows in (one, ten)]
    assert [r["energy"] for r in rest[0]] == [r["energy"] for r in rest[1]]
    assert "500 pJ/B" in hwmodel("hardware", "show", "ten.yaml")[1]


def test_C7_what_has_no_price_is_an_error_and_not_zero(refused, tmp_path):
    written(tmp_path, CHIP, ("operation: mac", "operation: DDR9"), name="chip.yaml")
    assert refused("hardware", "check", "chip.yaml") == (
        "chip.yaml:11: arithmetic.1.operation 'DDR9': must be 'mac', 'int-mac', 'add', 'int-add' or 'logic'"
    )
    written(tmp_path, NETWORK, name="net.yaml")
    written(tmp_path, CHIP, ("bits: 32", "bits: 16"), name="chip.yaml")
    said = refused(
        "report", "net.yaml", "--hardware", "chip.yaml", "--method", "fp", "--accounting", "paper"
    )
    assert said.startswith(
        "hardware chip: states no price of a 32-bit mac, which accounting paper asks for; "
    )
    assert said.endswith("; conv1, forward, asks for it under method fp")


def test_C8_ten_pj_are_of_a_64_bit_access(reported, tmp_path):
    """8 KB at 10 pJ per 64 bit: 1.25 pJ/B, so that a MB costs 1.31 uJ; ours by 32-bit words of I at L1."""
    rows = reported("vgg-small-1fc", hardware="horowitz45")
    (row, *_) = [r for r in rows if r["memory"] == rows[2]["memory"]]
    inner = [
        r for r in rows if r["tensor"] == "I" and r["pass"] == "forward" and r["layer"] == "conv2"
    ]
    innermost = inner[-1]
    assert float(innermost["energy"]) == pytest.approx(int(innermost["count"]) / 8 * 1.25)
    assert row["unit"] == "pJ"


@pytest.mark.parametrize(
    ("stated", "per_bit"),
    [("10 pJ/64bit", 0.15625), ("10 pJ/32bit", 0.3125), ("26.56 pJ/64 bit", 0.415), ("8 pJ/B", 1)],
)
def test_C10_an_energy_carries_its_unit_and_width(reported, tmp_path, stated, per_bit):
    written(tmp_path, NETWORK, name="net.yaml")
    written(tmp_path, CHIP, ("50 pJ/B", stated), name="chip.yaml")
    rows = reported("net.yaml", hardware="chip.yaml")
    for row in rows:
        if row["memory"] == "DRAM":
            assert float(row["energy"]) == pytest.approx(int(row["count"]) * per_bit, rel=1e-12)


def test_C11_taps_that_are_cut_to_one_are_still_all_computed(hwmodel, tmp_path):
    tiles = saved(tmp_path, (4, 1, 3, 6, 6, 1, 1), (4, 1, 3, 6, 6, 1, 1))
    written(tmp_path, CHIP, ("1 KiB", "64 KiB"), name="chip.yaml")
    found = tiled(hwmodel, "N=1,M=4,C=3,H=8,W=8,K=3", "--tiles", tiles, hardware="chip.yaml")
    # Each of the 9 x 3 x 6 x 6 products is read by the MACs, four filters together.
    assert found["accesses"][-1]["I"] == 9 * 3 * 6 * 6
    assert found["accesses"][-1]["F"] == 9 * 3 * 4
    assert found["accesses"][0]["O_writes"] == 4 * 6 * 6


def test_C13_what_does_not_fit_is_named_with_level_operands_and_size(refused, hwmodel, tmp_path):
    written(tmp_path, CHIP, ("1 KiB", "3 B"), name="small.yaml")
    assert refused(
        "tile",
        "--hardware",
        "small.yaml",
        "--conv",
        "N=1,M=96,C=3,H=27,W=27,K=5",
        "--bits",
        "16,16,16",
    ) == ("no tile fits: one element of I and F needs 32 bit, RF holds 24 (1 B too few)")
    written(tmp_path, CHIP, ("1 KiB", "6 B"), name="three.yaml")  # of 16 bit: a tile of one element
    alexnet = (
        "C=3,H=227,W=227,M=96,K=11,stride=4",
        "C=48,H=27,W=27,M=256,K=5,pad=2",
        "C=256,H=13,W=13,M=384,K=3,pad=1",
    )
    for conv in alexnet:
        found = tiled(hwmodel, f"N=1,{conv}", "--search", "level-by-level", hardware="three.yaml")
        assert found["energy"] > 0


def test_C14_a_matrix_product_of_6144_is_bounded_in_memory_and_says_what_was_examined(
    hwmodel, tmp_path
):
    import tracemalloc

    tracemalloc.start()
    found = tiled(hwmodel, "N=6144,M=6144,C=6144,H=1,W=1,K=1")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**29
    assert found["space"] > 10**12 > 10**7 > found["examined"] > 0


def test_C15_without_constraints_counters_do_not_overflow(hwmodel):
    found = tiled(hwmodel, "N=256,M=256,C=48,H=27,W=27,K=5,pad=2", "--stationary", "best")
    assert found["space"] > 2**64  # an exact integer
    assert found["proved"] and 0 < found["lower_bound"] <= found["energy"] < 1e15


def test_C16_the_best_is_not_beaten_by_any_other_and_names_what_it_minimises(hwmodel, tmp_path):
    conv = "N=1,M=64,C=32,H=14,W=14,K=3,pad=1"
    best, filters = (tiled(hwmodel, conv, "--stationary", word) for word in ("best", "filter"))
    other = saved(
        tmp_path, (64, 1, 32, 14, 14, 3, 3), (32, 1, 32, 14, 14, 3, 3), (8, 1, 16, 7, 7, 3, 3)
    )
    given = tiled(hwmodel, conv, "--tiles", other)
    assert (
        best["energy"]
        <= filters["energy"]
        <= min(filters["level_by_level_energy"], given["energy"])
    )
    out = hwmodel("tile", "--hardware", "ascend", "--conv", conv, "--bits", "16,16,16")[1]
    assert "memory energy" in out


def test_C17_the_same_input_gives_the_same_tiling_and_it_can_be_read_back(hwmodel, tmp_path):
    conv = "N=2,M=30,C=20,H=14,W=14,K=3,pad=1"
    first, second = (tiled(hwmodel, conv, "--save", f"{name}.json") for name in "ab")
    assert first == second
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    again = tiled(hwmodel, conv, "--tiles", "a.json")
    assert (again["energy"], again["accesses"]) == (first["energy"], first["accesses"])


def test_C19_a_larger_buffer_never_costs_more_when_tiles_are_optimal(hwmodel, tmp_path):
    energies, dram = [], []
    for size in (16, 32, 64, 128, 256):
        written(tmp_path, CHIP, ("64 KiB", f"{size} KiB"), name="chip.yaml")
        found = tiled(hwmodel, "N=1,M=128,C=128,H=28,W=28,K=3,pad=1", hardware="chip.yaml")
        energies.append(found["energy"])
        dram.append(sum(found["accesses"][0][x] for x in "IFO"))
    assert energies == sorted(energies, reverse=True) and energies[0] > energies[-1]
    assert dram == sorted(dram, reverse=True) and dram[0] > dram[-1]


def test_C20_every_layer_starts_and_ends_in_the_outermost_memory(reported):
    """The assumption (docs/limits.md): what conv1 writes to DRAM, its norm reads from there."""
    rows = reported("resnet18", "--accounting", "full", "--mode", "inference")
    outputs = 64 * 112 * 112
    assert total(rows, "elements", layer="conv1", tensor="O", memory="L3") == outputs
    assert total(rows, "elements", layer="conv1.bn", tensor="I", memory="L3") == outputs


def test_C21_the_energy_of_computing_is_macs_times_price_whatever_the_memories(reported, tmp_path):
    written(tmp_path, NETWORK, name="net.yaml")
    written(tmp_path, CHIP, name="small.yaml")
    written(tmp_path, CHIP, ("64 KiB", "1 MiB"), ("1 KiB", "64 KiB"), name="large.yaml")
    for name in ("small.yaml", "large.yaml"):
        rows = reported("net.yaml", "--mode", "inference", hardware=name)
        assert total(rows, "energy", layer="conv1", direction="operate") == pytest.approx(
            4.6 * 8 * 8 * 8 * 27
        )


def test_C22_every_number_has_a_source_and_capacities_bind(refused, reported, tmp_path):
    written(tmp_path, CHIP, ("energy: 5 pJ/B, source: me", "energy: 5 pJ/B"), name="chip.yaml")
    assert refused("hardware", "check", "chip.yaml") == "chip.yaml:8: levels.SRAM.source is missing"
    written(tmp_path, CHIP, ("1 KiB", "16 B"), name="small.yaml")
    written(tmp_path, CHIP, ("1 KiB", "32 KiB"), name="large.yaml")
    small, large = (
        total(reported("vgg-small-1fc", hardware=name), "elements", memory="SRAM")
        for name in ("small.yaml", "large.yaml")
    )
    assert small > 5 * large


def test_C23_the_first_layer_alone_costs_more_than_was_claimed(reported, tmp_path):
    """4 x 64 x 7 x 7 x 120 x 152 MACs of 4.6 pJ in each of 5 steps: 5.262 mJ."""
    layers = "[{name: conv1, kind: conv, channels: 64, kernel: 7, stride: 2, padding: 3}]"
    (tmp_path / "net.yaml").write_text(
        f"version: 1\nname: n\ntitle: t\ninput: [4, 240, 304]\nlayers: {layers}\n"
    )
    rows = reported("net.yaml", "--batch", "5", "--mode", "inference", hardware="horowitz45")
    assert total(rows, "count", direction="operate") == 5 * 228_802_560
    assert total(rows, "energy", direction="operate") == pytest.approx(5.262e9, rel=1e-4)


def test_C24_the_macs_of_resnet_18_cost_8_millijoule(reported):
    rows = reported("resnet18", "--mode", "inference", hardware="horowitz45")
    assert total(rows, "count", direction="operate") == 1_814_073_344
    assert total(rows, "energy", direction="operate") == pytest.approx(8.345e9, rel=1e-4)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("1", ""), ("0.005", ""), ("70 pJ/bit", ""), ("0", ""),
        ("1e-27", "1e-27 pJ per bit"), ("9e-5", "9e-05 pJ per bit"), ("1.1e5", "110000 pJ per bit"),
    ],
)  # fmt: skip
def test_C25_an_energy_that_is_hardly_possible_is_told_once_and_counted(
    hwmodel, tmp_path, stated, said
):
    written(tmp_path, NETWORK, name="net.yaml")
    written(tmp_path, CHIP, ("5 pJ/B", stated), name="chip.yaml")
    code, out, err = hwmodel(
        "compare",
        "net.yaml",
        "--hardware",
        "chip.yaml",
        "--methods",
        "fp,bold",
        "--csv",
        "-",
        "--accounting",
        "paper",
    )
    assert code == 0 and out.startswith("network,")
    warnings = [line for line in err.splitlines() if "warning" in line]
    hint = "is outside 0.0001 to 100000; is the unit right? A bare number is in pJ per bit"
    assert warnings == ([f"hwmodel: warning: chip.yaml: SRAM: {said} {hint}"] if said else [])


def test_C25_operations_too(hwmodel, tmp_path):
    written(tmp_path, CHIP, ("4.6 pJ", "1000 uJ"), name="chip.yaml")
    assert hwmodel("hardware", "check", "chip.yaml") == (
        0, "chip.yaml: hardware chip is right\n",
        "hwmodel: warning: chip.yaml: 32-bit mac: 1e+09 pJ per operation is outside 0.0001 to 100000; is the unit right?\n",
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
@pytest.mark.parametrize("energy", ["1e-12", "1e12"])
def test_C25_extreme_energies_behave(tmp_path, energy):
    written(tmp_path, NETWORK, name="net.yaml")
    written(
        tmp_path,
        CHIP,
        ("50 pJ/B", energy),
        ("5 pJ/B", energy),
        ("0.5 pJ/B", energy),
        name="chip.yaml",
    )
    for accounting in ("paper", "full"):
        report = evaluate(
            tmp_path / "net.yaml", tmp_path / "chip.yaml", "bold", accounting=accounting
        )
        memory = [r for r in merged(report) if r.level != "compute"]
        assert sum(r.energy for r in memory) == pytest.approx(
            float(energy) * sum(r.bits for r in memory)
        )
