"""Shares of a layer's rows, and one field moved for a method and its baseline alike."""

import re

import pytest

from hwmodel import evaluate
from hwmodel.rerun.moved import moved
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import leaves

NET = "mlp-784-512-512-10"
ON = ("--hardware", "ascend", "--accounting", "paper")


@pytest.fixture(scope="module")
def tables():
    """The rows of the report of the method and of the baseline, as their CSVs have them."""
    return [evaluate(NET, "ascend", name, accounting="paper").table for name in ("int8", "fp")]


def lines(text):
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return rows[0], {row[0]: row[1:] for row in rows[2:]}


def test_shares_are_those_of_the_rows_of_the_reports(hwmodel, tables):
    code, out, _ = hwmodel("explain", NET, "--layer", "fc2", "--method", "int8", *ON, "--share")
    assert code == 0
    head, rows = lines(out)
    assert head[4:] == ["fp: energy", "% of its layer", "% of its whole", "% of fp"]
    ours, theirs = tables
    written = ours.query("layer == 'fc2' and tensor == 'dF' and memory == 'L3'")["energy"].sum()
    base = theirs.query("layer == 'fc2' and tensor == 'dF' and memory == 'L3'")["energy"].sum()
    cells = rows["backward weight: write dF at L3"]
    layer, whole = ours.query("layer == 'fc2'")["energy"].sum(), ours["energy"].sum()
    wanted = [100 * written / layer, 100 * written / whole]
    assert [float(cells[1]), float(cells[2])] == pytest.approx(wanted, abs=0.006)
    its = [100 * base / theirs.query("layer == 'fc2'")["energy"].sum(), 100 * base / theirs["energy"].sum(), 100 * written / base]  # fmt: skip
    assert [float(cell) for cell in cells[4:]] == pytest.approx(its, abs=0.006)
    assert rows["forward: operate O int-mac"][3:] == ["-"] * 4  # the baseline has no such row
    assert rows["all of fc2"][1] == "100.00"
    single = {n: float(c[2]) for n, c in rows.items() if n[:4] != "all " and c[2] != "-"}
    places = {n: float(c[2]) for n, c in rows.items() if n[:4] == "all " and c[2] != "-"}
    whole = places.pop("all of fc2")
    for parts in (single, places):
        assert sum(parts.values()) == pytest.approx(whole, abs=0.006 * len(parts))
    at = [share for name, share in single.items() if " read " in name and name.endswith("at L3")]
    assert places["all reads at L3"] == pytest.approx(sum(at), abs=0.006 * (len(at) + 1))
    assert "Tiles under accounting paper are greedy" in out  # is it tiled optimally


def test_of_one_pass_there_are_its_rows_alone(hwmodel):
    words = ("--layer", "fc2", "--method", "int8", *ON, "--share", "--pass")
    rows = lines(hwmodel("explain", NET, *words, "forward")[1])[1]
    assert all(name.startswith(("forward: ", "all ")) for name in rows)
    assert "all of fc2, forward" in rows and "all operations" in rows
    head, rows = lines(hwmodel("explain", NET, *words, "backward-weight")[1])
    assert (
        head[2] == "% of the layer's backward weight"
        and head[5] == "% of its layer's backward weight"
    )
    code, _, err = hwmodel("explain", NET, *words, "update")
    assert code == 2 and "has no row of layer 'fc2': has no such pass" in err
    code, _, err = hwmodel("explain", NET, "--layer", "fc9", *words[2:-1])
    assert code == 2 and "'fc9'" in err


# A field moved


def test_a_price_is_moved_for_the_method_and_its_baseline_and_the_table_verified(hwmodel, tables):
    """By hand: half of all energy at L3 is taken from both. Tiles of `paper` follow no price."""
    half = (
        "--move",
        "hardware.levels.L3.access_energy=x0.5",
        "--optimal-tiles",
        "no",
        "--csv",
        "m.csv",
    )
    code, out, _ = hwmodel("compare", NET, "--methods", "fp,int8", *ON, *half)
    assert code == 0
    ours, theirs = (
        rows["energy"].sum() - rows.query("memory == 'L3'")["energy"].sum() / 2 for rows in tables
    )
    assert f"{100 * ours / theirs:.2f}" in out
    before = 100 * tables[0]["energy"].sum() / tables[1]["energy"].sum()
    told = rf"int8 on ascend [\d.,]+ \wJ, {re.escape(f'{before:.2f}')} %"
    assert re.search(told, re.sub(r"\s+", " ", out))
    assert hwmodel("verify", "m.csv")[0] == 0
    assert "2 rows equal" in hwmodel("verify", "m.csv")[1]


def test_a_table_whose_values_are_numbers_and_choices_is_verified(hwmodel):
    moves = ("accounting.extras.accumulate=2", "accounting.extras.stored_activations=false")
    words = [word for move in moves for word in ("--move", move)]
    where = ("--hardware", "ascend", "--accounting", "full", "--optimal-tiles", "no")
    asked = ("compare", NET, "--methods", "fp", *where, *words, "--csv", "v.csv")
    code, _, err = hwmodel(*asked)
    assert code == 0, err
    assert "1 row equal" in hwmodel("verify", "v.csv")[1]


@pytest.mark.parametrize(
    ("path", "text", "stated"),
    [
        ("accounting.extras.accumulate", "2", 2),
        ("accounting.widths.boolean_signal_bits", "8", 8),
        ("accounting.prices.logic_price_macs", "null", None),
        ("accounting.prices.logic_price_macs", "0.25", 0.25),
        ("accounting.extras.stored_activations", "false", False),
        ("accounting.counting.rows", "touched", "touched"),
        ("hardware.levels.L3.access_energy", "4", 4.0),
        ("hardware.levels.L3.access_energy", "4e-1", 0.4),
    ],
)
def test_numbers_and_choices_are_read_as_yaml_reads_them(path, text, stated):
    (chip,), (rules,) = moved(
        [f"{path}={text}"], [load(Hardware, "ascend")], [load(Accounting, "full")]
    )
    root, _, rest = path.partition(".")
    found = {leaf.path: leaf.value for leaf in leaves(chip if root == "hardware" else rules)}.get(
        rest
    )
    assert (found, type(found)) == (stated, type(stated))


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (
            "hardware.levels.L9.access_energy=x0.5",
            "'levels.L9.access_energy' is no path to a value",
        ),
        ("method.layers=1", "a field of a chip or an accounting and its value"),
        ("hardware.levels.L3.access_energy", "a field of a chip or an accounting and its value"),
        ("accounting.counting.rows=x2", "paper has no number there to multiply"),
        ("accounting.counting.rows=all", "rows"),
        ("accounting.extras.accumulate=2.5", "must be a whole number"),
        ("accounting.extras.accumulate='2'", "must be a whole number"),
        ("hardware.clock=5", "is no frequency; use one of Hz"),
        ("hardware.levels.L2.capacity=65536", "is no size; use one of bit, B, KiB"),
        ("hardware.levels.L3.access_energy=.inf", "access_energy"),
        ("hardware.levels.L3.access_energy=*a", "access_energy"),
    ],
)
def test_what_is_no_move_is_one_line(refused, move, said):
    assert said in refused("compare", NET, "--methods", "fp", *ON, "--move", move)
