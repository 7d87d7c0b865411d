"""The tile command: one convolution, and the certificate of its tiling."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hwmodel import evaluate
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.vary.paths import replaced_all

CONV = "N=2,M=24,C=16,H=14,W=10,K=3,stride=2,pad=1"
CHIP = ("tile", "--hardware", "ascend")
BASE = (*CHIP, "--bits", "16,16,16")


def solved(hwmodel, *options, conv=CONV):
    code, out, err = hwmodel(*BASE, "--conv", conv, "--json", *options)
    assert code == 0, err
    return json.loads(out)


def test_json_has_the_certificate_the_tiles_and_the_accesses(hwmodel):
    found = solved(hwmodel)
    assert found["proved"] is True and found["gap"] == 0
    assert found["unit"] == "pJ" and found["lower_bound"] == found["energy"]
    assert [tile["level"] for tile in found["tiles"]] == ["L2", "L1", "L0"]
    assert {"M", "N", "C", "H", "W"} <= set(found["tiles"][0])
    top = found["accesses"][0]  # everything fits on chip: each tensor moves once
    assert top["F"] == 24 * 16 * 9
    assert top["O"] == 2 * 24 * 7 * 5
    assert top["I"] == 2 * 16 * 14 * 10  # 15 x 11 windowed rows and columns less the padding


def test_the_optimum_is_never_above_the_greedy_tiling(hwmodel):
    greedy = solved(hwmodel, "--search", "level-by-level")
    best = solved(hwmodel)
    free = solved(hwmodel, "--stationary", "best")
    assert free["energy"] <= best["energy"] <= greedy["energy"]
    assert best["level_by_level_energy"] == greedy["energy"]
    assert greedy["lower_bound"] is None and not greedy["proved"]


@pytest.mark.parametrize("phase", ["forward", "backward-input", "backward-weight"])
def test_a_saved_tiling_evaluates_to_the_same_number(hwmodel, tmp_path, phase):
    path = str(tmp_path / "t.json")
    code, out, err = hwmodel(*BASE, "--conv", CONV, "--pass", phase, "--save", path)
    assert code == 0 and "proved optimal" in out, err
    found = json.loads((tmp_path / "t.json").read_text())
    again = solved(hwmodel, "--pass", phase, "--tiles", path)
    assert again["energy"] == found["energy"] and again["tiles"] == found["tiles"]
    other = solved(hwmodel, "--pass", phase, "--tiles", path, "--counting", "paper")
    assert other["tiles"] == found["tiles"]


POINTS = "N=2,M=40,C=24,H=14,W=10,K=1"
APART = """\
version: 1
name: seven
title: Loops as they stand
based_on: full
counting: {loops: apart}
"""


def test_loops_that_nothing_couples_are_one_here_too(hwmodel, tmp_path):
    """As in a report of the same layer; a saved tiling says which, and is evaluated so."""
    text = "version: 1\nname: one\ntitle: t\ninput: [24, 14, 10]\nlayers:\n"
    text += "  - {name: narrow, kind: conv, channels: 40, kernel: 1}\n"
    (tmp_path / "one.yaml").write_text(text)
    report = evaluate(str(tmp_path / "one.yaml"), "ascend", "fp16", accounting="full", batch=2)
    entries = [
        one for one in report.ledger.entries if (one.layer, one.pass_) == ("narrow", "forward")
    ]
    memories = {one.memory for one in entries if one.memory and one.component == "product"}
    energies = report.ledger.by("layer", "pass", "component", "place").energies(report.prices)
    paid = sum(
        energy for (layer, pass_, part, place), energy in energies.items()
        if (layer, pass_, part) == ("narrow", "forward", "product") and place in memories
    )  # fmt: skip
    code, out, _ = hwmodel(*BASE, "--conv", POINTS, "--save", str(tmp_path / "t.json"))
    assert code == 0 and "N stands for N, HO and WO (2 x 14 x 10), which nothing couples" in out
    found = json.loads((tmp_path / "t.json").read_text())
    assert found["loops"] == "flattened" and found["energy"] == pytest.approx(paid, rel=1e-12)
    assert (found["tiles"][0]["H"], found["tiles"][0]["W"]) == (1, 1)
    again = solved(hwmodel, "--tiles", str(tmp_path / "t.json"), conv=POINTS)
    assert again["energy"] == found["energy"]
    (tmp_path / "seven.yaml").write_text(APART)
    seven = str(tmp_path / "seven.yaml")
    own = solved(hwmodel, "--accounting", seven, "--save", str(tmp_path / "s.json"), conv=POINTS)
    assert own["loops"] == "apart" and own["energy"] >= found["energy"]
    old = {name: value for name, value in own.items() if name != "loops"}  # of before
    (tmp_path / "s.json").write_text(json.dumps(old))
    priced = solved(hwmodel, "--tiles", str(tmp_path / "s.json"), conv=POINTS)
    assert (priced["loops"], priced["energy"]) == ("apart", own["energy"])


def test_level_by_level_loops_are_apart(hwmodel, tmp_path):
    large = "N=16,M=1024,C=256,H=23,W=23,K=1"  # whose greedy tiles differ with loops as one
    greedy = solved(hwmodel, "--search", "level-by-level", conv=large)
    assert greedy["loops"] == "apart"
    assert solved(hwmodel, conv=large)["level_by_level_energy"] == greedy["energy"]
    rules = load(Accounting, "full")
    counting = rules.counting.model_copy(update={"rows": "bounding"})
    text = rules.model_copy(update={"counting": counting}).model_dump_json(exclude={"based_on"})
    (tmp_path / "b.yaml").write_text(text)
    conv = "N=2,M=4,C=3,H=7,W=7,K=1,stride=2"
    _, out, _ = hwmodel(*BASE, "--conv", conv, "--accounting", str(tmp_path / "b.yaml"))
    assert "all of N=2 M=4 C=3 HO=4 WO=4" in out  # rows between are fetched in tiles of several


def test_loops_are_one_on_chips_with_memories_side_by_side(hwmodel, tmp_path):
    asked = (
        "tile",
        "--hardware",
        "eyeriss",
        "--bits",
        "16,16,16",
        "--conv",
        "N=2,M=8,C=6,H=7,W=5,K=1",
    )
    code, out, err = hwmodel(*asked, "--save", str(tmp_path / "t.json"))
    assert code == 0 and "N stands for N, HO and WO (2 x 7 x 5), which nothing couples" in out, err
    saved = json.loads((tmp_path / "t.json").read_text())
    assert saved["loops"] == "flattened"
    code, out, _ = hwmodel(*asked, "--tiles", str(tmp_path / "t.json"), "--json")
    assert json.loads(out)["energy"] == saved["energy"]


@pytest.mark.parametrize("room", ["1KiB", "64KiB"])
@pytest.mark.parametrize("homes", [("O=L1",), ("O=L2",), ("I=L2", "O=L1"), ("O=L2", "F=L1")])
@pytest.mark.parametrize("transfers", ["upper", "both"])
def test_sums_that_come_back_to_a_home_are_read_there(hwmodel, tmp_path, homes, room, transfers):
    """The energy is that of the certificate, and the sum of its rows."""
    rules = load(Accounting, "full")
    counting = rules.counting.model_copy(update={"transfers": transfers})
    text = rules.model_copy(update={"counting": counting}).model_dump_json(exclude={"based_on"})
    (tmp_path / "t.yaml").write_text(text)
    options = [word for home in homes for word in ("--resident", home)]
    free = "L1" if "O=L2" in homes else "L2"
    found = solved(
        hwmodel, *options, "--free", f"{free}={room}", "--accounting", str(tmp_path / "t.yaml"),
        conv="N=2,M=40,C=240,H=14,W=10,K=1",
    )  # fmt: skip
    assert found["proved"] and found["energy"] == pytest.approx(found["lower_bound"], rel=1e-12)


def test_sums_that_come_back_to_a_home_by_hand(hwmodel):
    """224 nJ of reads: two more pieces of the reduction, 11,200 outputs of 32 bit, 0.3125 pJ."""
    options = ("--resident", "O=L1", "--free", "L2=1KiB")
    found = solved(hwmodel, *options, conv=POINTS)
    of_L1 = found["accesses"][2]
    assert found["accesses"][0]["O"] == found["accesses"][1]["O"] == 0
    assert of_L1["O_partial_reads"] == of_L1["O_partial_writes"] == 2 * 11200
    assert found["energy"] == pytest.approx(1_549_732.91 + 2 * 11200 * 32 * 0.3125, rel=1e-8)


def test_loops_of_a_saved_tiling_that_are_no_word_are_refused(hwmodel, tmp_path):
    tile = {"level": "L2", "N": 1, "M": 1, "C": 1, "H": 1, "W": 1, "HF": 1, "WF": 1, "held": "F"}
    (tmp_path / "t.json").write_text(json.dumps({"tiles": [tile] * 3, "loops": "flat"}))
    code, _, err = hwmodel(*BASE, "--conv", POINTS, "--tiles", str(tmp_path / "t.json"))
    assert code == 2 and "loops" in err and "flattened" in err


def test_a_tiling_that_does_not_fit_is_priced_and_ends_with_1(hwmodel, tmp_path):
    """Filters of a tile for 64 KiB, taken in four times as many bits."""
    conv, path = "N=16,M=256,C=256,H=28,W=28,K=3,pad=1", str(tmp_path / "t.json")
    saved = hwmodel(*CHIP, "--bits", "8,8,8", "--conv", conv, "--save", path, "--json")
    tile = json.loads(saved[1])["tiles"][-1]
    lacks = 4 * tile["M"] * tile["C"] * tile["HF"] * tile["WF"] - 64 * 1024
    assert saved[0] == 0 and lacks > 0
    stated = (*CHIP, "--bits", "32,32,32", "--conv", conv, "--tiles", path)
    code, out, _ = hwmodel(*stated)
    assert code == 1 and f"DOES NOT FIT: L0-B holds {lacks:,} B too few for this tiling" in out
    code, out, _ = hwmodel(*stated, "--json")
    assert code == 1 and json.loads(out)["fits"] is False


def test_what_cannot_fit_names_level_tensor_and_bytes(hwmodel, tmp_path):
    _, text, _ = hwmodel("hardware", "show", "ascend")
    chip = tmp_path / "chip.yaml"
    chip.write_text(text.replace("1024 KiB", "40 bit"))
    code, out, err = hwmodel("tile", "--hardware", str(chip), "--conv", CONV, "--bits", "32,32,32")
    assert (code, out) == (2, "")
    doubt, refusal = err.splitlines()
    assert doubt.endswith(
        "L0-A: is larger than L1, the memory above it; no tile in it can be (and 2 more: "
        "hwmodel hardware check)"
    )
    code, _, err = hwmodel("hardware", "check", str(chip))
    every = err.splitlines()
    assert code == 0 and len(every) == 3 and every[0] == doubt.partition(" (and")[0]
    assert refusal == (
        "hwmodel: no tile fits: one element of I and F needs 64 bit, L1 holds 40 (3 B too few)"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--conv", "N=1,M=2"], "--conv: missing C, H, W, K"),
        (["--conv", CONV + ",stride=1"], "--conv: stride stands there twice"),
        (["--conv", CONV.replace("K=3", "K=0")], "--conv K=0: must be a whole number from 1"),
        (["--conv", CONV + ",strid=1"], "did you mean 'stride'?"),
        (["--conv", CONV, "--bits", "16,16"], "--bits '16,16': give three widths"),
        (["--conv", CONV, "--pass", "back"], "--pass 'back': "),
        (["--conv", CONV, "--search", "optimum"], "search 'optimum': must be"),
        (["--conv", CONV, "--search", "optimal", "--counting", "paper"], "needs counting exact"),
        (["--conv", CONV, "--tiles", "none.json"], "none.json: cannot be read"),
        (["--conv", CONV.replace("K=3", "K=31")], "the effective kernel spans 31 rows"),
    ],
)
def test_a_wrong_line_is_refused_in_one_sentence(hwmodel, options, sentence):
    base = CHIP if "--bits" in options else BASE
    code, out, err = hwmodel(*base, *options)
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1


def test_a_stride_that_skips_rows_leaves_nothing_compulsory_in_them(hwmodel):
    """A 1 x 1 convolution of stride 2 touches a quarter of its ifmap, and moves that once."""
    conv = "N=1,M=8,C=8,H=8,W=8,K=1,stride=2"
    code, out, err = hwmodel(*BASE, "--conv", conv)
    assert code == 0 and "L3 moves 1.0000 times the compulsory traffic" in out, err
    assert solved(hwmodel, conv=conv)["accesses"][0]["I"] == 8 * 4 * 4


def test_operands_that_stay_cost_what_a_chip_does_that_ends_there(hwmodel, tmp_path):
    """All three in L1, which has no end on such a chip: the chip [L1 as outermost, L0].

    Under `upper`, where the asking memory pays; other tensors take all but 1 KiB of L2 then.
    """
    text = (Path(__file__).parents[1] / "hardware_specs" / "ascend.yaml").read_text()
    levels = YAML(typ="safe").load(text)
    inner = [dict(level) for level in levels["levels"] if level["level"] <= 1]
    inner[0]["capacity"] = "unlimited"
    ending = tmp_path / "l1.yaml"
    YAML().dump({**levels, "name": "l1", "levels": inner}, ending)
    rules = replaced_all(load(Accounting, "full"), {"counting.transfers": "upper"})
    upper = tmp_path / "upper.yaml"
    upper.write_text(json.dumps(rules.model_dump(mode="json", exclude={"based_on"})))
    homes = [word for operand in "IFO" for word in ("--resident", f"{operand}=L1")]
    mine = solved(hwmodel, *homes, "--free", "L2=1KiB", "--accounting", str(upper))
    asked = ("tile", "--hardware", str(ending), "--bits", "16,16,16", "--conv", CONV)
    _, out, _ = hwmodel(*asked, "--json", "--accounting", str(upper))
    assert mine["energy"] == pytest.approx(json.loads(out)["energy"], rel=1e-12)
    assert [sum(level[x] for x in "IFO") for level in mine["accesses"]][:2] == [0, 0]
    alone = solved(hwmodel, "--accounting", str(upper))
    assert mine["energy"] < alone["energy"]


def test_less_room_never_costs_less_and_a_tensor_that_stays_never_more(hwmodel):
    conv = "N=1,M=256,C=256,H=32,W=32,K=3,pad=1"
    whole = solved(hwmodel, conv=conv)["energy"]
    less = [solved(hwmodel, "--free", f"L1={room}", conv=conv)["energy"]
            for room in ("512KiB", "64KiB", "8KiB")]  # fmt: skip
    assert [whole, *less] == sorted([whole, *less]) and less[-1] > whole
    for operand in "IFO":
        assert solved(hwmodel, "--resident", f"{operand}=L2", conv=conv)["energy"] < whole


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--resident", "I=L7"), "--resident 'I=L7': 'L7' is no memory in which tensors stay; known: L1, L2"),
        (("--resident", "W=L1"), "--resident 'W=L1': write I, F or O, each once, as in I=L2"),
        (("--resident", "I=L1", "--resident", "I=L2"), "--resident 'I=L2': write I, F or O, each once"),
        (("--free", "L2=9GiB"), "--free 'L2=9GiB': L2 has 8,388,608 B in all"),
        (("--free", "L2=3"), "--free 'L2=3': '3'"),
        (("--free", "L3=3KiB"), "--free 'L3=3KiB': write a memory in which tensors stay, each once"),
        (("--free", "L1=1KiB", "--search", "level-by-level"), "--resident and --free are for --search optimal"),
    ],
)  # fmt: skip
def test_what_cannot_stay_is_refused(hwmodel, options, said):
    code, out, err = hwmodel(*BASE, "--conv", CONV, *options)
    assert (code, out) == (2, "") and err.startswith(f"hwmodel: {said}")


def test_what_stays_on_a_chip_with_an_array_pays_at_home_alone(hwmodel):
    """Reads of I and F there, writes of O; nothing outside, and a gap that is one of both numbers."""
    words = ("tile", "--hardware", "ascend-cube", "--conv", "N=1,M=32,C=32,H=16,W=16,K=3,pad=1")
    words += ("--bits", "8,8,32", "--json")
    stays = ("--resident", "I=L1", "--resident", "F=L1", "--resident", "O=L1")
    found = json.loads(hwmodel(*words, *stays)[1])
    there = {(row["level"], row["what"], row["tensor"]) for row in found["accesses"]}
    assert not {one for one in there if one[0] in ("L3", "L2")}
    assert {one[1:] for one in there if one[0] == "L1"} == {
        ("read", "I"), ("read", "F"), ("write", "O")
    }  # fmt: skip
    assert found["gap"] == pytest.approx(1 - found["lower_bound"] / found["energy"], abs=1e-12)
    away = json.loads(hwmodel(*words)[1])
    assert found["energy"] < away["energy"]


AXES = """\
version: 1
name: axes
title: PEs along axes
energy_unit: pJ
sources: {me: "made up"}
levels:
  - {level: 1, name: DRAM, capacity: unlimited, access_energy: 20 pJ/bit, source: me}
  - {level: 0, name: PE, capacity: 2 KiB, access_energy: 1 pJ/bit, fanout: FANOUT, source: me}
arithmetic:
  - {operation: mac, bits: 32, energy: 1 pJ, source: me}
"""


def test_a_tiling_that_spreads_a_loop_on_no_axis_does_not_fit(hwmodel, tmp_path):
    """By hand, and one of loops as one that another chip has apart."""
    for name, fanout in (("one", "{HO: 14, M: 12}"), ("two", "{positions: 14, M: 12}")):
        text = AXES.replace("name: axes", f"name: {name}").replace("FANOUT", fanout)
        (tmp_path / f"{name}.yaml").write_text(text)
    conv = ("--conv", "N=4,M=32,C=8,H=28,W=28,K=1", "--bits", "16,16,16")
    one, two = (("tile", "--hardware", str(tmp_path / f"{n}.yaml"), *conv) for n in ("one", "two"))
    tile = {"N": 1, "M": 1, "C": 8, "H": 1, "W": 1, "HF": 1, "WF": 1}
    saved = {"level": "PE", "held": "F", **tile, "union": tile | {"N": 2, "M": 4}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"tiles": [saved]}))
    code, out, _ = hwmodel(*one, "--tiles", str(path))
    assert code == 1
    assert "DOES NOT FIT: N is spread over the memories of PE, on none of whose axes it lies" in out
    saved["union"] = tile | {"H": 2, "M": 4}
    path.write_text(json.dumps({"tiles": [saved]}))
    code, out, _ = hwmodel(*one, "--tiles", str(path))
    assert code == 0 and "DOES NOT FIT" not in out
    saved["union"] = tile | {"N": 14, "M": 4}
    path.write_text(json.dumps({"tiles": [saved], "loops": "flattened"}))
    assert hwmodel(*two, "--tiles", str(path))[0] == 0
    code, out, _ = hwmodel(*one, "--tiles", str(path))
    assert code == 1 and "N is spread" in out
    padded = ["N=4,M=32,C=8,H=28,W=28,K=3,pad=1" if x == conv[1] else x for x in two]
    code, _, err = hwmodel(*padded, "--tiles", str(path))
    assert code == 2 and "loops are flattened in the file" in err


DEEP = "N=1,M=256,C=256,H=28,W=28,K=3,pad=1"  # I and O: 200,704 elements, F 589,824


def test_what_stays_takes_its_room_from_tiles(hwmodel):
    """L1 has 1,048,576 B; I takes 2 x 200,704 of them, and F has no room beside it."""
    own = solved(hwmodel, "--resident", "I=L1", conv=DEEP)
    told = solved(hwmodel, "--resident", "I=L1", "--free", f"L1={2**20 - 401408} B", conv=DEEP)
    assert own["energy"] == told["energy"]
    assert own["resident"] == told["resident"] == {"I": "L1"}
    assert (own["free_bits"], told["free_bits"]) == ({}, {"L1": 8 * (2**20 - 401408)})
    _, out, _ = hwmodel(*BASE, "--conv", DEEP, "--resident", "I=L1")
    assert "tiles find 647,168 B of L1, and how full a level is" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--resident", "F=L1"),
            "--resident F=L1: F 1,179,648 B do not fit L1, which has 1,048,576 B: 131,072 B too few",
        ),
        (
            ("--resident", "I=L1", "--resident", "O=L1", "--free", "L1=256KiB"),
            "--resident I=L1 --resident O=L1: I 401,408 B, O 401,408 B do not fit L1, which has "
            "1,048,576 B beside 262,144 B that are free: 16,384 B too few",
        ),
    ],
)
def test_what_has_no_room_cannot_stay(hwmodel, tmp_path, options, said):
    path = tmp_path / "t.json"
    code, out, err = hwmodel(*BASE, "--conv", DEEP, *options, "--save", str(path))
    assert (code, out, err) == (2, "", f"hwmodel: {said}\n") and not path.exists()


def test_sums_that_stay_unfinished_need_room_for_their_width(hwmodel):
    """401,408 sums, 24 bit wider than finished ones, beside the tiles of I and F in L1."""
    conv = "N=16,M=128,C=240,H=14,W=14,K=1"
    words = (*CHIP, "--bits", "8,8,8", "--conv", conv, "--resident", "O=L1", "--free", "L2=1KiB")
    code, out, _ = hwmodel(*words, "--json")
    found = json.loads(out)
    tile = found["tiles"][1]
    used = 8 * tile["C"] * (tile["N"] * tile["H"] * tile["W"] + tile["M"])
    lacks = used + 24 * 401_408 - 8 * (2**20 - 401_408)
    assert found["accesses"][2]["O_partial_writes"] > 0 and tile["level"] == "L1"
    assert code == 1 and found["fits"] is False
    code, out, _ = hwmodel(*words)
    said = f"DOES NOT FIT: L1 holds {-(-lacks // 8):,} B too few for the sums of O that stay there"
    assert code == 1 and said in out
    wide = (*CHIP, "--bits", "8,8,32", *words[5:], "--json")
    assert hwmodel(*wide)[0] == 2  # 32 bit wide as a whole they do not fit at all
    finished = (*words[:-2], "--json")
    assert hwmodel(*finished)[0] == 0  # with all of L2 they come finished


def test_a_saved_tiling_knows_what_stayed_beside_it(hwmodel, tmp_path):
    path = str(tmp_path / "t.json")
    beside = ("--resident", "O=L1", "--resident", "I=L2", "--free", "L2=3MiB")
    own = solved(hwmodel, *beside, "--save", path, conv=DEEP)
    assert (own["resident"], own["free_bits"]) == ({"I": "L2", "O": "L1"}, {"L2": 3 * 2**23})
    for options in ((), beside):
        again = solved(hwmodel, "--tiles", path, *options, conv=DEEP)
        assert again["energy"] == own["energy"] and again["resident"] == own["resident"]
    code, out, err = hwmodel(*BASE, "--conv", DEEP, "--tiles", path, "--resident", "I=L2")
    assert (code, out) == (2, "") and "was saved with other --resident and --free" in err
    alone = str(tmp_path / "alone.json")
    least = solved(hwmodel, "--save", alone, conv=DEEP)
    stays = solved(hwmodel, "--tiles", alone, "--resident", "I=L2", conv=DEEP)
    assert stays["energy"] < least["energy"] and stays["resident"] == {"I": "L2"}
    (tmp_path / "t.json").write_text(json.dumps(own | {"resident": {"I": "L7"}}))
    code, _, err = hwmodel(*BASE, "--conv", DEEP, "--tiles", path)
    assert code == 2 and "t.json: saved with --resident 'I=L7': 'L7' is no memory" in err


def test_loops_of_a_file_that_are_not_those_of_the_accounting_are_told(hwmodel, tmp_path):
    (tmp_path / "seven.yaml").write_text(APART)
    seven = ("--accounting", str(tmp_path / "seven.yaml"))
    path = str(tmp_path / "t.json")
    solved(hwmodel, "--save", path, conv=POINTS)
    told = "loops are flattened as the file of tiles has them, not apart as the accounting has them"
    assert told in hwmodel(*BASE, "--conv", POINTS, "--tiles", path, *seven)[1]
    assert "loops are" not in hwmodel(*BASE, "--conv", POINTS, "--tiles", path)[1]
    solved(hwmodel, "--save", path, conv=CONV)  # nothing to put together
    assert "loops are" not in hwmodel(*BASE, "--conv", CONV, "--tiles", path, *seven)[1]


def test_loops_that_a_chip_tells_apart_are_named(hwmodel):
    """The cube of ascend-cube has an axis of C alone; a 7x7 map under a 7x7 kernel is one loop."""
    asked = ("tile", "--hardware", "ascend-cube", "--bits", "8,8,32", "--conv")
    told = "C, HF and WF could be one loop here and are not: an axis of ascend-cube takes one"
    assert told in hwmodel(*asked, "N=2,M=16,C=16,H=7,W=7,K=7")[1]
    assert "could be one" not in hwmodel(*asked, "N=2,M=16,C=16,H=7,W=7,K=3")[1]
    drawn = hwmodel("hardware", "show", "ascend-cube")[1]
    assert "# C, HF and WF are never one loop: an axis takes one of them alone" in drawn
    assert "never one loop" not in hwmodel("hardware", "show", "eyeriss")[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"residnet": {"I": "L2"}}, "'residnet' is no field of a tiling; did you mean 'resident'?"),
        ({"M": "3"}, "'3'"),
        ({"M": True}, "M"),
        ({"M": 500}, "tiles 1: M 500 is more than the 256 above it\n"),
        ({"free_bits": {"L1": True}}, "free_bits"),
    ],
)
def test_a_saved_tiling_that_is_misspelt_is_refused(hwmodel, tmp_path, change, said):
    path = tmp_path / "t.json"
    found = solved(hwmodel, "--save", str(path), conv=DEEP)
    tile, *others = found["tiles"]
    inside = {name: value for name, value in change.items() if name in tile}
    whole = {name: value for name, value in change.items() if name not in tile}
    path.write_text(json.dumps(found | whole | {"tiles": [tile | inside, *others]}))
    code, out, err = hwmodel(*BASE, "--conv", DEEP, "--tiles", str(path))
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1, err


def test_what_fills_a_level_leaves_nothing_to_tiles(hwmodel):
    """I takes all 8 MiB of L2, in which F has to lie, too."""
    conv = "N=1,M=1,C=64,H=256,W=256,K=1"
    code, out, err = hwmodel(*BASE, "--conv", conv, "--resident", "I=L2")
    assert (code, out) == (2, "") and "beside what stays tiles find 0 B of L2" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--resident", "I"), "--resident 'I': write I, F or O, each once, as in I=L2"),
        (("--free", "L2=0MiB"), "--free 'L2=0MiB': must be above 0"),
        (("--free", "L2=3MiB", "--free", "L2=4MiB"), "L2 stands there twice"),
    ],
)
def test_residents_that_are_miswritten_are_refused(hwmodel, options, said):
    code, out, err = hwmodel(*BASE, "--conv", CONV, *options)
    assert (code, out) == (2, "") and said in err


def test_residents_of_a_file_are_for_the_optimal_search(hwmodel, tmp_path):
    path = str(tmp_path / "t.json")
    solved(hwmodel, "--resident", "I=L2", "--save", path, conv=DEEP)
    code, _, err = hwmodel(*BASE, "--conv", DEEP, "--tiles", path, "--search", "level-by-level")
    assert code == 2 and "t.json: its resident and free_bits are for --search optimal" in err


def test_tiles_of_other_levels_are_told_to_be_taken_for_those_of_the_chip(hwmodel, tmp_path):
    path = tmp_path / "t.json"
    found = solved(hwmodel, "--save", str(path), conv=DEEP)
    tile, *others = found["tiles"]
    path.write_text(json.dumps(found | {"tiles": [tile | {"level": "L9"}, *others]}))
    code, _, err = hwmodel(*BASE, "--conv", DEEP, "--tiles", str(path))
    assert (
        code == 0 and "t.json: tiles of levels L9, L1, L0 are taken for those of L2, L1, L0" in err
    )
