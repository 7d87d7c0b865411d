"""What may be compared with what is said alike in every view; energies of all chips have one unit."""

import csv
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hwmodel import evaluate
from hwmodel.model.compare import Comparison, compare
from hwmodel.model.not_counted import of_accounting, on_chips
from hwmodel.model.optimal_tiles import OptimalTiles
from hwmodel.model.proof import Proof
from hwmodel.rerun.tables import greedy_notes
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.views.latex import _text
from hwmodel.views.remarks import _larger, _static, asides
from tests.page import parsed
from tests.specs import CHIP, GREEDY, METHOD, NETWORK, written

ALIKE = "Figures of one column may be compared; across chips only percentages may"
STEPS = "Not stepped alike under accounting greedy: fp by adam; lion by lion."


def _after_doctype(path):
    return path.read_text().partition(">")[2]


@pytest.fixture
def made(hwmodel, tmp_path):
    """Every output of one comparison; the second chip costs a fiftieth of the first."""
    prices = [(f" {n} pJ", f" {n / 50:g} pJ") for n in (50, 5, 0.5, 4.6)]
    small = (("name: chip", "name: small"), *prices)
    for name, text, changes in (
        ("chip", CHIP, ()), ("small", CHIP, small), ("net", NETWORK, ()), ("greedy", GREEDY, ()),
    ):  # fmt: skip
        written(tmp_path, text, *changes, name=f"{name}.yaml")
    words = ("--hardware", "chip.yaml,small.yaml", "--accounting", "greedy.yaml", "--batch", "2")
    files = [x for name in ("t.tex", "t.md", "t.json") for x in ("-o", name)]
    code, out, err = hwmodel(
        "compare", "net.yaml", "--methods", "fp,lion", *words, "--optimal-tiles", "no",
        "--csv", "c.csv", "--html", "c.html", *files,
    )  # fmt: skip
    assert code == 0, err
    assert hwmodel("appendix", "c.csv", "-o", "a.html")[0] == 0
    pages = (parsed(_after_doctype(tmp_path / name)).text for name in ("c.html", "a.html"))
    texts = [(tmp_path / name).read_text() for name in ("t.tex", "t.md")]
    return dict(zip(("tex", "md", "html", "appendix"), (*texts, *pages), strict=True), screen=out)


def test_every_view_says_what_may_be_compared_and_who_steps_otherwise(made, tmp_path):
    for view, text in made.items():
        told = _text if view == "tex" else str
        assert told(STEPS) in text, view
        assert ALIKE in text, view
    steps, *prices = json.loads((tmp_path / "t.json").read_text())["remarks"]
    assert steps == STEPS
    half = (
        f"lion: prices that the chip does not state, in 32-bit MACs: a 16-bit one {1.5 / 4.6:.4g}"
    )
    assert prices and all(one.endswith(half) for one in prices)  # Horowitz: 1.1 + 0.4, 3.7 + 0.9


def test_energies_of_all_chips_have_one_unit_and_the_least_three_digits(made, tmp_path):
    """The numbers are those of the CSV."""
    with (tmp_path / "c.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    lines = made["tex"].splitlines()
    units = re.findall(r"\((.*?)\)", next(x for x in lines if re.match(r" +& \(", x)))
    divisor = {"nJ": 1e3, "pJ": 1.0}[units[0]]
    assert units == [units[0], units[0], r"\%"] * 2
    body = {line.split("&")[0].strip(): line.replace(r" \\", "").split("&")[1:] for line in lines}
    for row in rows:
        at = 0 if row["hardware"] == "chip" else 3
        texts = [x.strip().replace(r"\,", "") for x in body[row["method"]]]
        cells = [float(re.sub(r"\\textbf{(.*)}", r"\1", text)) for text in texts]
        energy = float(row["energy"]) / divisor
        assert cells[at] == pytest.approx(energy, abs=0.051)
        assert cells[at + 1] == pytest.approx(energy / 2, rel=0.005)
    energies = [float(row["energy"]) for row in rows]
    assert max(energies) > 30 * min(energies)  # of units of their own they would have two


def test_static_energy_that_some_chips_have_in_theirs_is_said():
    v100, other, plain = (load(Hardware, name) for name in ("v100-board", "h100-board", "ascend"))
    full, paper = load(Accounting, "full"), load(Accounting, "paper")
    assert _static([v100, other, plain], full) == (
        "Static energy is in the energies of v100-board (accounting full), of "
        "h100-board beside the time alone: their percentages hold different things."
    )
    assert _static([v100, plain], full).endswith(
        "(accounting full), of no other: their percentages hold different things."
    )
    for chips, accounting in (([v100], full), ([other, plain], full), ([v100, plain], paper)):
        assert _static(chips, accounting) == ""


def test_a_study_says_which_methods_an_optimizer_that_is_moved_does_not_step(hwmodel, tmp_path):
    written(tmp_path, NETWORK, name="net.yaml")
    written(tmp_path, METHOD + "optimizer: lion\n", name="own.yaml")
    words = ("net.yaml", "--hardware", "ascend", "--samples", "0")
    said = "Moves of extras.optimizer step the methods that state none of their own, and not mine"
    asked = ("sensitivity", *words, "--accounting", "paper", "--methods")
    code, out, err = hwmodel(*asked, "fp,own.yaml")
    assert code == 0, err
    assert said in " ".join(out.split()) and "Not stepped alike" not in out
    assert said not in " ".join(hwmodel(*asked, "fp,binarynet")[1].split())


def test_what_a_chip_states_is_not_among_what_is_not_counted(tmp_path):
    plain = load(Hardware, written(tmp_path, CHIP))
    timed = "array: {M: 2, holds: none, cycle_energy: 1 pJ}\nclock: 1 GHz\nstatic_power: 8 mW\n"
    paying = load(Hardware, written(tmp_path, CHIP, ("arithmetic:", timed + "arithmetic:"),
                                    ("name: chip", "name: array")))  # fmt: skip
    full, paper = load(Accounting, "full"), load(Accounting, "paper")
    items = ["registers of sums inside the compute unit, control, interconnect, static energy"]
    none = ["innermost reads: unlimited broadcast, for the chip states no array"]
    first = "registers of sums inside the compute unit, control"
    assert [*on_chips(items, [plain], full)] == items + none
    assert [*on_chips(items, [paying], full)] == [f"{first} beyond cycles of arrays, interconnect"]
    assert [*on_chips(items, [plain, paying], full)] == [
        f"{first} (of array beyond cycles of arrays), interconnect, static energy (but of array)",
        f"{none[0]} (chip)",
    ]
    assert [*on_chips(items, [plain, paying], paper)] == items


def test_an_update_that_an_accounting_counts_is_not_called_uncounted(tmp_path):
    head = "version: 1\nname: own\ntitle: t\nbased_on: paper\nextras: "
    stepped = written(tmp_path, head + "{optimizer: sgd}\n", name="stepped.yaml")
    voted = written(tmp_path, head + "{boolean_update: true, flip_rate: 0.01}\n", name="voted.yaml")
    wanted = {
        "paper": "the weight update, latent weights, optimizer state, the loss",
        stepped: "the update of Boolean weights, the loss",
        voted: "the update of weights by an optimizer, latent weights, optimizer state, the loss",
        "chip": "the loss",
    }
    for name, item in wanted.items():
        assert of_accounting(load(Accounting, name), "training")[-1] == item


def proof_of(tilings, gaps, widest="conv1, forward"):
    near = sum(gap <= 5e-4 for gap in gaps)
    return Proof(tilings, len(gaps), near, max(gaps, default=0.0), widest)


def line(method, batch, tilings=0, gaps=(), by_width=(), untimed="", reason=None, gap=None,
         widest="conv1, forward"):  # fmt: skip
    """One line of a comparison, with only what remarks read of it."""
    report = SimpleNamespace(
        proof=proof_of(tilings, gaps, widest),
        unproved="some" if gaps else "", by_width="some" if by_width else "",
        prices=SimpleNamespace(derived=lambda keys: ", ".join(sorted(keys)), dearer=lambda keys: "",
            relative=lambda keys: "", unsummed=lambda keys: ""),
        ledger=SimpleNamespace(keys=by_width), untimed=untimed, timeless=[],
        gap=gap, residency=None, energy=1.0, images=batch,
    )  # fmt: skip
    energy = None if reason else 1.0
    return Comparison(
        "net", method, "chip", "full", "training", batch, energy, "pJ", reason=reason,
        report=None if reason else report,
    )  # fmt: skip


def test_alike_remarks_of_rows_are_one_sentence_with_the_sum_of_their_tilings():
    lines = [
        line("fp", 1, 14, (0.0001, 0.03)),
        line("fp", 64, 14, (0.0002, 0.02, 0.071), widest="conv3, backward weight"),
        line("int8", 1, 14, by_width=("b", "a")), line("int8", 64, 14, (0.01,), ("c", "a")),
        line("bold", 1, untimed="no time: x"), line("bold", 64, untimed="no time: x"),
        line("big", 1, untimed="no time: x"), line("big", 64, reason="no tile fits"),
    ]  # fmt: skip
    assert list(asides(lines)) == [
        "big at batch 64: no tile fits",
        "fp; int8 at batch 64: 6 of 42 tilings are not proved optimal, 2 of them within 0.05 %: the "
        "largest gap to a lower bound is 7.1 % (conv3, backward weight, of fp at batch 64)",
        "int8: prices that the chip does not state, by width (docs/model.md section 5): a, b, c",
        "bold; big at batch 1: no time: x",
    ]
    assert list(asides([line("fp", 1, 3), line("bold", 1, 3)])) == []


def test_rows_of_several_networks_are_told_with_theirs():
    """The method fp of one network is proved, that of the other is not."""
    lines = [line("fp", 1, 14, (0.001,)), line("fp", 4, 14, (0.002,))]
    lines += [one._replace(network="b") for one in (line("fp", 1, 17), line("fp", 4, 17, (0.01,)))]
    assert list(asides(lines)) == [
        "fp on net; fp on b at batch 4: 3 of 45 tilings are not proved optimal: the largest gap to "
        "a lower bound is 1.0 % (conv1, forward, of fp on b at batch 4)"
    ]


def test_a_remark_on_one_run_names_no_run_and_of_equal_gaps_the_first_run_is_named():
    alone = [line("fp", 1, 3), line("fp", 64, 3, (0.1,)), line("bold", 1, 3)]
    assert list(asides(alone)) == [
        "fp at batch 64: 1 of 3 tilings are not proved optimal: the largest gap to a lower bound is "
        "10.0 % (conv1, forward)"
    ]
    equal = [
        line(method, 1, 3, (gap,), widest=widest)
        for method, gap, widest in (
            ("fp", 0.01, "fc1, forward"), ("bold", 0.1, "fc2, backward input"), ("int8", 0.1, "fc3, forward")
        )
    ]  # fmt: skip
    assert list(asides(equal)) == [
        "fp, bold, int8: 3 of 9 tilings are not proved optimal: the largest gap to a lower bound is "
        "10.0 % (fc2, backward input, of bold)"
    ]


def test_remarks_on_optimal_tiles_beside_greedy_ones_name_the_run_alike():
    greedy = load(Accounting, "paper")

    def both(method, batch, gaps, widest="conv1, forward"):
        made = line(method, batch)
        made.report.accounting = greedy
        return made._replace(optimal=OptimalTiles(1.0, proof_of(3, gaps, widest)))

    lines = [both("fp", 1, (0.01,)), both("fp", 64, (0.2,), "fc1, forward"), both("bold", 1, ())]
    said = (
        "tilings are not proved optimal: the largest gap to a lower bound is 20.0 % (fc1, forward"
    )
    assert greedy_notes(lines)[1:] == [f"fp, optimal tiles: 2 of 6 {said}, of fp at batch 64)"]
    assert greedy_notes(lines[1:])[1:] == [f"fp, optimal tiles: 1 of 3 {said})"]


def test_proofs_near_their_bounds_need_no_name():
    lines = [line("fp", 1, 3, (1e-4,)), line("bold", 1, 3, (2e-4, 3e-4))]
    assert list(asides(lines)) == [
        "fp, bold: 3 of 6 tilings are not proved optimal: the largest gap to a lower bound is not "
        "above 0.05 %"
    ]


def test_how_much_less_an_energy_could_be_is_said_of_each_that_is_not_proved():
    lines = [line("fp", 1, gap=0.0123), line("fp", 64, gap=0.0), line("bold", 1, gap=4e-4),
             line("bold", 64, gap=0.2)]  # fmt: skip
    assert list(asides(lines)) == [
        "No choice of tiles costs less than these parts of the energies: 98.77 % (fp at batch 1), "
        "80.00 % (bold at batch 64), 99.95 % or more (fp at batch 64; bold at batch 1)"
    ]


def test_an_image_that_costs_more_in_a_larger_batch_is_remarked_upon():
    def run(method, batch, energy, stays=True):
        report = SimpleNamespace(energy=energy, images=batch, residency=object() if stays else None)
        return line(method, batch), report

    fewer = [run("fp", 1, 10.0), run("fp", 64, 640.1), run("bold", 64, 600.0), run("bold", 1, 10.0)]
    assert _larger(fewer).startswith("fp: an image costs more in a larger batch, of which less")
    assert _larger(fewer[2:]) == "" == _larger([run("fp", 1, 10.0), run("fp", 64, 700.0, False)])


def test_the_gap_of_a_run_is_that_of_its_tilings_by_their_products_energies(tmp_path):
    """As if the search had left 10 % open of one layer's forward pass, and 20 % of another's."""
    net = written(tmp_path, NETWORK, name="net.yaml")
    report = evaluate(net, written(tmp_path, CHIP), "fp", accounting="full")
    assert report.gap == 0
    wanted, tilings = {("conv1", "forward"): 0.1, ("fc1", "backward_weight"): 0.2}, []
    for task, tiling in report.tilings:
        gap = wanted.get((task.layer, str(task.work.pass_)), 0.0)
        tilings.append((task, tiling._replace(certificate=SimpleNamespace(gap=gap))))
    own = sum(
        wanted.get((row.layer, row._3), 0.0) * row.energy
        for row in report.table[["layer", "energy", "pass", "component"]].itertuples()
        if row.component == "product"
    )
    assert own > 0
    found = replace(report, tilings=tuple(tilings))
    assert found.gap == pytest.approx(own / report.energy, rel=1e-12)


def with_gaps(report, gaps):
    """The report as if its search had left such parts open, by layer and pass."""
    tilings = [
        (task, tiling._replace(certificate=SimpleNamespace(gap=gaps.get((task.layer, str(task.work.pass_)), 0.0))))
        for task, tiling in report.tilings
    ]  # fmt: skip
    return replace(report, tilings=tuple(tilings))


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        ({("conv1", "forward"): 0.1, ("fc1", "backward_weight"): 0.2}, "2 of 8 {}: {} 20.0 % (fc1, backward weight)"),
        ({("fc1", "forward"): 0.032, ("conv2", "backward_input"): 1e-4}, "2 of 8 {}, 1 of them within 0.05 %: {} 3.2 % (fc1, forward)"),
        # Of equal ones the first, by layers and then by passes.
        ({("fc1", "forward"): 0.2, ("conv2", "backward_weight"): 0.2, ("conv2", "backward_input"): 0.2}, "3 of 8 {}: {} 20.0 % (conv2, backward input)"),
        ({("fc1", "forward"): 4e-4}, "1 of 8 {}: {} not above 0.05 %"),
    ],
)  # fmt: skip
def test_a_report_names_the_layer_and_the_pass_of_the_largest_gap(tmp_path, gaps, said):
    net = written(tmp_path, NETWORK, name="net.yaml")
    report = evaluate(net, written(tmp_path, CHIP), "fp", accounting="full")
    assert report.unproved == ""
    told = said.format("tilings are not proved optimal", "the largest gap to a lower bound is")
    assert with_gaps(report, gaps).unproved.split("; ")[0] == told


def test_of_equal_gaps_a_second_forward_of_an_earlier_layer_comes_before_a_later_layer(tmp_path):
    """Its product stands behind all others in the run's work, for it is done on the way back."""
    changes = [("kind: max-pool, kernel: 2", "kind: max-pool, kernel: 2, checkpoint: true")]
    net = written(tmp_path, NETWORK, *changes, name="net.yaml")
    report = evaluate(net, written(tmp_path, CHIP), "fp", accounting="full")
    gaps = {("conv1", "recompute"): 0.2, ("conv2", "forward"): 0.2}
    assert with_gaps(report, gaps).unproved.split("; ")[0].endswith("20.0 % (conv1, recompute)")


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_the_largest_gap_of_a_comparison_is_found_by_looking_at_every_certificate(tmp_path):
    """On a chip with an array tilings of this network are searched, not proved."""
    net = written(tmp_path, NETWORK, name="net.yaml")
    lines = [*compare(net, "eyeriss", ["fp", "bold"], accounting="full", batch=[2, 16])]
    passes = ("forward", "backward_input", "backward_weight")
    ranked = []
    for run, one in enumerate(lines):
        gaps = {(t.layer, str(t.work.pass_)): x.certificate.gap for t, x in one.report.tilings}
        for at, layer in enumerate(node.layer.name for node in one.report.nodes):
            for number, pass_ in enumerate(passes):
                gap = gaps.get((layer, pass_), 0.0)
                ranked.append((-gap, run, at, number, f"{layer}, {pass_.replace('_', ' ')}"))
    gap, run, *_, name = min(ranked)
    assert -gap > 1e-3  # else nothing would be named
    of = f"{lines[run].method} at batch {lines[run].batch}"
    said = next(text for text in asides(lines) if "largest gap" in text)
    assert said.endswith(
        f"the largest gap to a lower bound is {-100 * gap:.1f} % ({name}, of {of})"
    )


def test_an_integer_product_that_costs_more_than_a_wider_mac_is_remarked_upon():
    """Of a board that states an instruction's fp32 MAC and a tensor core's fp16: 34.6 and 1.4 pJ.

    By hand: an 8-bit int-mac is 0.05 MACs, 1.73 pJ, and the 8-bit int-add in it 0.006522 of 34.6.
    """
    lines = compare(
        "mlp-784-512-512-10", ["a40-board", "ascend"], ["int8", "bf16"], accounting="full"
    )
    said = {x.hardware: [*asides([x])] for x in lines if x.method == "int8"}
    price = 0.05 * 34.6 - 0.006522 * 34.6
    assert any(
        f"int-mul costs {price:.3g} pJ, more than the 1.4 pJ" in x for x in said["a40-board"]
    )
    assert not any("more than the" in x for x in said["ascend"])


WIDE = (
    "compare",
    "net.yaml",
    "--hardware",
    "chip.yaml",
    "--accounting",
    "full",
    "--methods",
    "fp,bold",
)


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_every_view_of_energies_far_apart_has_one_unit(hwmodel, tmp_path):
    """From 1 image to 4,096: in the unit of the least the largest would have seven digits."""
    for name, text in (("chip", CHIP), ("net", NETWORK)):
        written(tmp_path, text, name=f"{name}.yaml")
    code, out, _ = hwmodel(
        *WIDE, "--batch", "1,4096", "-o", "c.csv", "-o", "c.tex", "--html", "c.html"
    )
    assert code == 0
    rows = [*csv.DictReader((tmp_path / "c.csv").read_text().splitlines())]
    energies = [float(row["energy"]) for row in rows]
    least, most = min(energies), max(energies)
    sizes = {"pJ": 1.0, "nJ": 1e3, "µJ": 1e6, "mJ": 1e9}
    own = max((size for size in sizes.values() if least >= 10 * size), default=1.0)
    size = 1e3 * own if most >= 1e6 * own else own
    assert most >= 1e6 * own  # else this is no test
    unit = next(unit for unit, its in sizes.items() if its == size)
    assert f"energy, {unit}" in out
    tex = (tmp_path / "c.tex").read_text()
    printed = {"µJ": r"($\mu$J)"}.get(unit, f"({unit})")
    assert printed in tex
    assert hwmodel("appendix", "c.csv", "-o", "a.html")[0] == 0
    assert f"energy, {unit}" in (tmp_path / "a.html").read_text()
    page = (tmp_path / "c.html").read_text()
    for row in rows:
        digits = f"{float(row['energy']) / size:,.4g}"[:3]
        assert digits in out and digits in tex.replace(r"\,", ",")
    assert re.search(rf"{digits}[0-9,.]* {unit}", page)


def test_labels_of_tables_name_all_that_is_in_them_or_what_is_asked(hwmodel, tmp_path):
    for name, text in (("chip", CHIP), ("net", NETWORK)):
        written(tmp_path, text, name=f"{name}.yaml")
    labels = []
    for methods, *more in (
        ["fp,bold"],
        ["fp,binarynet"],
        ["fp,bold", "--batch", "2"],
        ["fp,bold", "--mode", "inference"],
    ):
        tex = hwmodel(*WIDE[:-1], methods, *more, "--format", "latex")[1]
        labels += re.findall(r"\\label{(.*)}", tex)
    assert len(set(labels)) == len(labels) == 4 and all("full" in label for label in labels)
    words = ("--label", "tab:mine", "--caption", "50 % of it_all")
    tex = hwmodel(*WIDE, *words, "--format", "latex")[1]
    assert r"\label{tab:mine}" in tex and r"\caption{50 \% of it\_all}" in tex
    assert "Analytical, not measured (hwmodel " in tex
    assert hwmodel(*WIDE, *words[2:], "--format", "markdown")[1].startswith("50 % of it\\_all\n")
    for words, why in (
        (("--label", "tab:x", "--csv", "-"), "--label tab:x: no table for print here"),
        (("--label", "a b", "--format", "latex"), "--label 'a b': letters, digits"),
        (("--caption", "x"), "--caption x: no table for print here"),
    ):
        code, out, err = hwmodel(*WIDE, *words)
        assert code == 2 and out == "" and why in err


def test_a_report_is_moved_as_its_line_of_a_comparison_is(hwmodel, tmp_path):
    for name, text in (("chip", CHIP), ("net", NETWORK)):
        written(tmp_path, text, name=f"{name}.yaml")
    move = ("--move", "hardware.levels.DRAM.access_energy=x0.5", "--csv", "-")
    _, out, _ = hwmodel(*WIDE, *move)
    line = [row for row in csv.DictReader(out.splitlines()) if row["method"] == "bold"]
    report = ("report", *WIDE[1:-2], "--method", "bold")
    _, out, err = hwmodel(*report, *move)
    rows = [*csv.DictReader(out.splitlines())]
    assert sum(float(row["energy"]) for row in rows) == pytest.approx(float(line[0]["energy"]))
    assert "Moved: hardware.levels.DRAM.access_energy=x0.5." in err
    plain = [*csv.DictReader(hwmodel(*report, "--csv", "-")[1].splitlines())]
    for row, before in zip(rows, plain, strict=True):  # where tiles are alike, so are counts
        if (row["memory"], row["count"]) == ("DRAM", before["count"]):
            assert float(row["energy"]) == pytest.approx(float(before["energy"]) / 2)
    (tmp_path / "r.csv").write_text(out)
    assert hwmodel("verify", "r.csv")[0] == 0
    assert "Moved: " in hwmodel(*report, *move[:2], "--format", "latex")[1].split("caption")[1]
