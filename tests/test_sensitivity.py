"""Moves, flips and samples, against what a pencil says of a layer and against plain `evaluate`."""

import csv
import io
import os
import re
import signal
from itertools import combinations, product
from math import log

import pytest

from hwmodel import HwmodelError, SpecError, evaluate
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.vary.paths import Inputs, changed, leaves, replaced_all
from hwmodel.vary.sensitivity import Effect, sensitivity
from hwmodel.vary.sensitivity.costs import Costs, Study, overtaken, ranks
from hwmodel.vary.sensitivity.moves import moves
from hwmodel.vary.sensitivity.parallel import mapped_by
from hwmodel.views.figures.canvas import STYLES
from hwmodel.views.sensitivity_tables import largest, sensitivity_tables
from hwmodel.views.tornado import tornado_figure
from tests.specs import CHIP, NETWORK, chip, written

# One linear layer of 8 inputs and 16 outputs, run forward on one image. Only DRAM's reads and the
# MAC cost: at r a bit and p a MAC, with 8 x 32 bit of inputs and 128 weights,
#   fp      256 r + 128 x 32 r + 128 p   wide weights, MACs
#   words   256 r + 128 x 32 r           wide weights, arithmetic for nothing
#   bits    256 r + 128 x  1 r + 128 p   narrow weights, MACs
# `bits` is the cheaper one as long as p < 31 r.
LAYER = Network.model_validate(
    {"version": 1, "name": "layer", "title": "A layer", "input": (8, 1, 1),
     "layers": [{"name": "fc", "kind": "linear", "features": 16}]}
)  # fmt: skip
TOY = chip((None, 1.0, 0.0), (10**6, 0.0, 0.0), mac=20.0)
FREE_LOGIC = replaced_all(load(Accounting, "paper"), {"prices.logic_price_macs": 0.0})


def method(name, weights, arithmetic):
    passes = ("forward", "backward_input", "backward_weight")
    return Method.model_validate(
        {"version": 1, "name": name, "title": name, "sources": {"me": "assumed"},
         "layers": [{"weights": weights, "weight_signal": 32, "update": "optimizer", "source": "me",
                     "arithmetic": dict.fromkeys(passes, arithmetic)}],
         "tensors": [{"bits": 32, "signal": 32, "source": "me"}]}
    )  # fmt: skip


WORDS, BITS = method("words", 32, "logic"), method("bits", 1, "mac")


def toy(hardware=TOY, **options):
    methods = [load(Method, "fp"), WORDS, BITS]
    options = {"accounting": FREE_LOGIC, "mode": "inference"} | options
    return sensitivity(LAYER, [hardware], methods, **options)


def test_a_method_that_is_called_as_the_baseline_is_refused():
    mine = WORDS.model_copy(update={"name": "fp"})
    with pytest.raises(HwmodelError, match="is called 'fp', as the baseline is, and is another"):
        sensitivity(LAYER, [TOY], [mine, BITS], accounting=FREE_LOGIC, mode="inference")


def effect(found, field, value, name):
    (row,) = (e for e in found.effects if (e.field, e.value_to, e.method) == (field, value, name))
    return row


# Against the pencil

MAC, READ = "hardware.arithmetic.mac.32", "hardware.levels.L0.read_energy"


def test_a_price_twice_as_high_moves_percentages_by_what_a_pencil_says():
    found = toy()
    for value, p in ((40.0, 40), (10.0, 10)):
        before, after = 4352 + 128 * 20, 4352 + 128 * p  # of fp
        row = effect(found, MAC, value, "bits")
        assert row.percent_before == pytest.approx(100 * (384 + 128 * 20) / before, rel=1e-12)
        assert row.percent_after == pytest.approx(100 * (384 + 128 * p) / after, rel=1e-12)
        assert row.change_points == pytest.approx(row.percent_after - row.percent_before)
        assert effect(found, MAC, value, "words").percent_after == pytest.approx(100 * 4352 / after)
        assert effect(found, MAC, value, "fp").percent_after == 100
    row = effect(found, READ, 0.5, "bits")
    assert row.percent_after == pytest.approx(100 * (192 + 128 * 20) / (2176 + 128 * 20))
    assert (row.value_from, row.unit) == (1.0, "pJ/bit")


def test_the_ranking_flips_where_a_pencil_says_and_nowhere_else():
    """bits < words as long as p < 31 r: from p = 31 on where r = 1, from r = 20/31 down."""
    found = toy()
    assert {(r.field, r.value_to) for r in found.reversals} == {(MAC, 40.0), (READ, 0.5)}
    by_field = {r.field: r for r in found.reversals}
    assert 31 <= by_field[MAC].flips_at <= 31 * 1.01
    assert 20 / 31 / 1.01 <= by_field[READ].flips_at <= 20 / 31
    assert all(r.pairs == (("bits", "words"),) for r in found.reversals)
    row = effect(found, MAC, 40.0, "bits")
    assert (row.rank_before, row.rank_after, row.flips_at) == (1, 2, by_field[MAC].flips_at)
    assert effect(found, MAC, 10.0, "bits").flips_at is None
    assert effect(found, MAC, 10.0, "bits").rank_after == 1


def test_a_whole_number_flips_at_the_first_that_does():
    """At r = 1 and p = 20 words of b bit cost 256 + 128 b, `bits` 384 + 2560: from b = 22 on."""
    full = method("words", "boolean_vote", "logic")
    choices = replaced_all(FREE_LOGIC, {"widths.boolean_vote_bits": 16})
    found = sensitivity(
        LAYER, [TOY], [full, BITS], accounting=choices, mode="inference"
    )  # before: 2304 against 2944
    (flip,) = (r for r in found.reversals if r.field == "accounting.widths.boolean_vote_bits")
    assert (flip.value_to, flip.flips_at, flip.pairs) == (32, 22, (("words", "bits"),))


def test_all_energies_together_move_nothing():
    """Percentages are ratios: a unit of energy is a matter of taste."""
    ascend = load(Hardware, "ascend")
    double = {}
    for level in ascend.levels:
        for memory in level.buffers:
            double[f"levels.{memory.name}.access_energy"] = 2 * memory.read_energy_per_bit
    double["arithmetic.mac.32"] = 2 * ascend.arithmetic[0].energy_per_operation
    other = replaced_all(ascend, double)
    at = [unmoved("conv-small", hardware, ["fp", "bold"]).percents for hardware in (ascend, other)]
    assert at[0] == pytest.approx(at[1], rel=1e-12)


def unmoved(network, hardware, names):
    return costs(network, hardware, names, load(Accounting, "paper")).at(0, {})


def costs(network, hardware, names, accounting):
    methods = tuple(load(Method, name) for name in names)
    network = load_network(network)
    point = Inputs(network, hardware, methods[0], accounting, 1)
    return Costs(Study(network, methods, methods[0], (point,), "training"))


# What is listed and not dropped


def test_every_number_has_two_moves_and_every_choice_all_others():
    full = load(Accounting, "full")
    point = Inputs(LAYER, load(Hardware, "ascend"), BITS, full)
    to = {}
    for move in moves(point):
        to.setdefault(move.field, []).append(move.value)
    assert to["accounting.extras.flip_rate"] == [0.005, 0.02]
    assert to["accounting.widths.border_bits"] == [16, 64]
    assert to["accounting.extras.optimizer"] == ["none", "sgd", "momentum"]
    assert to["accounting.extras.stored_activations"] == [False]
    assert to["hardware.levels.L0-A.capacity"] == [2**18, 2**20]
    assert to["hardware.levels.L3.read_energy"] == [3.125, 12.5]
    assert to["hardware.arithmetic.mac.32.operations"] == [1, 4]


def test_what_cannot_move_is_there_with_the_reason():
    found = {(m.field, m.value): m.refused for m in moves(Inputs(LAYER, TOY, BITS, FREE_LOGIC))}
    needs = (
        "accounting paper: counting.search: optimal needs counting exact: it minimises exact counts"
    )
    assert found["accounting.counting.search", "optimal"] == needs
    assert found["accounting.widths.border_bits", 0].endswith("border_bits 0: must be at least 1")
    assert found["accounting.extras.flip_rate", None] == "is 0: no factor moves it"
    assert found["hardware.levels.L0.capacity", None] == "is unlimited: no factor moves it"
    effects = {e.field for e in toy().effects}
    assert effects >= {field for field, _ in found}


def test_choices_that_are_refused_alone_move_with_the_fewest_others():
    together = {m.field for m in moves(Inputs(LAYER, TOY, BITS, FREE_LOGIC)) if m.along}
    fields = (
        "search + counting", "stationary + search + counting", "weight_gradient + search + counting",
        "rows + counting", "padding + counting", "transfers + counting",
        "residency + search + counting", "attention + counting",
    )  # fmt: skip
    assert together == {
        *(
            " + ".join(f"accounting.counting.{name}" for name in field.split(" + "))
            for field in fields
        ),
        "accounting.extras.elementwise + accounting.counting.counting",
        "accounting.extras.update_order + accounting.counting.counting"
        " + accounting.extras.optimizer + accounting.extras.boolean_update",  # none are counted
    }


@pytest.mark.parametrize("preset", ["paper", "paper-stated"])
def test_no_fewer_choices_would_do(preset):
    """Against every smaller set of choices; `chip` needs three to search level by level."""
    accounting = load(Accounting, preset)
    choices = [leaf for leaf in leaves(accounting) if leaf.choices and not leaf.number]
    for move in moves(Inputs(LAYER, TOY, BITS, accounting)):
        if not move.along:
            continue
        path = move.leaf.path.removeprefix("accounting.")
        others = [leaf for leaf in choices if leaf.path != path]
        for size in range(len(move.along)):
            for along in combinations(others, size):
                for values in product(*([c for c in x.choices if c != x.value] for x in along)):
                    new = {leaf.path: value for leaf, value in zip(along, values, strict=True)}
                    with pytest.raises(SpecError):
                        replaced_all(accounting, {path: move.value} | new)
    if preset == "paper":
        (four,) = (m for m in moves(Inputs(LAYER, TOY, BITS, load(Accounting, "chip"))) if m.along)
        assert {leaf.path.rpartition(".")[2]: value for leaf, value in four.along} == {
            "stationary": "filter", "weight_gradient": "signal-as-filters", "residency": "none",
        } and four.value == "level-by-level"  # fmt: skip


def test_a_buffer_too_small_for_half_of_it_is_said_and_the_rest_is_computed():
    """One element of 32 and one of 32 bit need 64; half of 100 is 50."""
    found = toy(chip((None, 1.0, 0.0), (100, 0.0, 0.0), mac=20.0))
    row = effect(found, "hardware.levels.L1.capacity", 50, "words")
    assert row.percent_after is row.change_points is row.rank_after is None
    assert "no tile fits" in row.reason
    assert effect(found, "hardware.levels.L1.capacity", 200, "words").percent_after > 0
    assert effect(found, MAC, 40.0, "words").reason == ""


def test_where_nothing_can_be_computed_there_is_no_study():
    with pytest.raises(HwmodelError, match="no tile fits"):
        toy(chip((None, 1.0, 0.0), (8, 0.0, 0.0)))


def test_ranks_and_reversals():
    assert ranks([30.0, 10.0, None, 10.0]) == [3, 1, None, 1]
    assert overtaken([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]) == [(1, 2)]
    assert overtaken([1.0, 2.0], [2.0, 2.0]) == []  # a tie
    assert overtaken([1.0, 2.0], [2.0, None]) == []
    assert overtaken([2.0, 2.0], [1.0, 2.0]) == []


# Against plain `evaluate`


TWO_LAYERS = Network.model_validate(
    {"version": 1, "name": "two", "title": "Two layers", "input": (3, 6, 6),
     "layers": [{"name": "conv", "kind": "conv", "channels": 6, "kernel": 3},
                {"name": "act", "kind": "activation"},
                {"name": "fc", "kind": "linear", "features": 5}]}
)  # fmt: skip
THREE_LEVELS = chip((None, 8.0, 9.0), (3000, 2.0, 2.5), (800, 0.5, 0.25))
TWO_LEVELS = chip((None, 8.0, 9.0), (3000, 2.0, 2.5))


@pytest.mark.filterwarnings("ignore:hardware made has no memory in which tensors could stay")
@pytest.mark.parametrize(
    ("preset", "hardware"), [("paper", THREE_LEVELS), ("full", TWO_LEVELS)], ids=["paper", "full"]
)
def test_what_is_found_once_is_what_evaluate_finds(preset, hardware):
    """At every move of the chip and of the accounting, choices that go together among them."""
    names, accounting = ["fp", "bold"], load(Accounting, preset)
    found, tilings = costs(TWO_LAYERS, hardware, names, accounting), set()
    for move in moves(found.study.points[0]):
        if move.refused or (move.along and preset == "paper"):
            continue
        point = changed(found.study.points[0], move.changes)
        got = found.at(0, move.changes)
        try:
            reports = [
                evaluate(TWO_LAYERS, point.hardware, n, accounting=point.accounting) for n in names
            ]
        except HwmodelError as error:
            asked = re.sub(r"; \w+, \w+, asks for it under method \w+$", "", str(error))
            assert any(asked in reason for reason in got.reasons)
        else:
            fp, bold = (report.energy for report in reports)
            wanted = pytest.approx((100.0, 100 * (bold / fp)), rel=1e-12)
            assert got.percents == wanted, move.field
            tilings |= {tuple(t.mapping for _, t in report.tilings) for report in reports}
    assert len(tilings) > 5  # it is not that there was one tiling to be found


def test_the_result_does_not_hang_on_the_number_of_workers():
    assert toy(samples=5, seed=3, jobs=2) == toy(samples=5, seed=3, jobs=1)


def killed(costs):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_ends_the_study_with_a_message():
    study = costs(LAYER, TOY, ["fp"], FREE_LOGIC).study
    ended = pytest.raises(HwmodelError, match="3 workers died one after the other")
    with ended, mapped_by(study, 2) as mapped:
        list(mapped(killed, [()]))


# Samples


def ranges_file(folder, text):
    return written(folder, text, name="ranges.yaml")


def test_samples_of_one_price_lie_as_a_pencil_says(tmp_path):
    """p from 10 to 50, even in its logarithm: below 31 with the share ln(3.1) / ln(5)."""
    ranges = ranges_file(tmp_path, "hardware.arithmetic.mac.32: [10 pJ, 50]\n")
    (one,) = toy(samples=1000, seed=1, ranges=ranges).sampled
    assert (one.drawn, one.samples, one.complete) == (1, 1000, 1000)
    share = log(3.1) / log(5)
    assert one.ranking_held / 1000 == pytest.approx(
        share, abs=4 * (share * (1 - share) / 1000) ** 0.5
    )
    words = next(s for s in one.spreads if s.method == "words")

    def percent(quantile):  # falls with p
        return 100 * 4352 / (4352 + 128 * 10 * 5**quantile)

    assert percent(0.55) < words.percentile_50 < percent(0.45)
    assert percent(0.08) < words.percentile_95 < percent(0.02)
    assert percent(0.98) < words.percentile_5 < percent(0.92)


def test_the_same_seed_draws_the_same_and_another_another():
    one, same, other = (toy(samples=20, seed=seed).sampled for seed in (7, 7, 8))
    assert one == same
    assert one != other


def test_each_chip_has_its_own_samples():
    other = chip((None, 3.0, 0.0), (10**6, 0.0, 0.0)).model_copy(update={"name": "other"})
    methods = [load(Method, "fp"), BITS]
    options = {"samples": 3, "mode": "inference", "accounting": FREE_LOGIC}
    both = sensitivity(LAYER, [TOY, other], methods, **options)
    for number, hardware in enumerate((TOY, other)):
        alone = sensitivity(LAYER, [hardware], methods, **options)
        assert both.sampled[number] == alone.sampled[0]
        assert [e for e in both.effects if e.hardware == hardware.name] == list(alone.effects)
    assert both.sampled[0].spreads[1][4:] != both.sampled[1].spreads[1][4:]


def test_by_default_energies_prices_and_capacities_are_drawn():
    """Ascend under paper: 6 energies, 5 capacities, the MAC, 4 relative prices, two in MACs."""
    (one,) = sensitivity(LAYER, ["ascend"], ["bold"], accounting="paper", samples=1).sampled
    assert one.drawn == 6 + 5 + 1 + 4 + 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hardware.levels.L1.capacty: [1 KiB, 2 KiB]\n", "ranges.yaml: hardware.levels.L1.capacty: is no path to a number; did you mean 'hardware.levels.L1.capacity'?"),
        ("hardware.levels.L1.capacity: [2 KiB, 1 KiB]\n", "needs 0 < low <= high"),
        ("hardware.levels.L1.capacity: [1 KB, 2 KiB]\n", "'KB' means 1000 to some"),
        ("hardware.levels.L1.capacity: 1 KiB\n", "must be [low, high]"),
        ("hardware.levels.L1.capacity: [unlimited, 1 KiB]\n", "'unlimited' is no number"),
        ("accounting.extras.flip_rate: [0.1, 2]\n", "flip_rate 2: must be at most 1"),
        ("accounting.extras.flip_rate: [0, 1]\n", "needs 0 < low <= high"),
        ("accounting.counting.search: [0, 1]\n", "search 0: must be"),
        ("- 1\n", "holds no 'dotted.path: [low, high]' lines"),
    ],
)  # fmt: skip
def test_wrong_ranges_are_named(tmp_path, text, said):
    with pytest.raises(SpecError) as caught:
        toy(ranges=ranges_file(tmp_path, text))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"samples": -1}, "samples -1: must be a whole number from 0 to"),
        ({"seed": -1}, "seed -1: must be a whole number from 0 to"),
        ({"jobs": 0}, "jobs 0: must be a whole number from 1 to 256"),
        ({"batch": 0}, "batch 0: must be"),
        ({"mode": "both"}, "mode 'both': must be one of"),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(HwmodelError, match=said):
        toy(**options)


# What it says


def test_the_sentences_name_fields_flips_and_what_has_no_effect():
    found = toy(samples=10)
    text = "\n".join(piece for piece in sensitivity_tables(found) if isinstance(piece, str))
    (words,) = (line for line in text.splitlines() if line.startswith("words is moved most by "))
    assert "hardware.arithmetic.mac.32 (40 pJ: -17.02 points)" in words  # 4352 / 9472
    assert "hardware.levels.L0.read_energy (0.5 pJ/bit: -17.02 points)" in words  # 2176 / 4736
    assert "Ranking on made, the cheapest first: bits 42.59 %, words 62.96 %, fp 100.00 %." in text
    assert "  hardware.arithmetic.mac.32, now 20 pJ: from 31." in text
    assert "bits costs more than words" in text
    nothing = next(line for line in text.splitlines() if line.startswith("No effect here: "))
    assert "hardware.levels.L1.capacity" in nothing
    assert "arithmetic.mac.32," not in nothing
    assert (
        "Moved together, as the accounting allows no other way: accounting.counting.search" in text
    )
    assert "seed 0. The ranking holds in " in text


def test_parts_of_a_figure_are_not_named_beside_it(tmp_path):
    found = sensitivity(LAYER, [written(tmp_path, CHIP)], ["fp", "bold"])
    parts = {e.field for e in found.effects if e.part_of}
    named = {field for field, _ in largest(found.effects)}
    assert "hardware.levels.DRAM.read_energy" in parts
    assert "hardware.levels.DRAM.access_energy" in named
    assert not parts & named


def test_every_figure_that_a_bar_ends_at_has_its_unit():
    """Energies are of a bit or an operation, capacities and widths in KiB or bit, choices words."""
    found = sensitivity(LAYER, [TOY], [load(Method, "fp"), load(Method, "bold")], samples=0)
    axes = tornado_figure(found.effects).axes
    texts = [text.get_text() for one in axes for text in one.texts]
    numbers = [text for text in texts if text[0].isdigit()]
    assert numbers
    known = r"[\d.e+-]+ (pJ|pJ/bit|KiB|bit|MAC)|\d"  # a digit: of how many batches are summed
    assert all(re.fullmatch(known, text) for text in numbers), texts


def test_no_axis_of_percentages_is_drawn_below_0_and_no_value_takes_more_than_two_lines():
    methods = [load(Method, "fp"), load(Method, "bold")]
    found = sensitivity(LAYER, [load(Hardware, "ascend")], methods, accounting="paper", samples=0)
    known = {word for e in found.effects for word in re.findall(r"[a-z]+", str(e.value_to))}
    for style in ("paper", "neurips", "slides"):
        figure = tornado_figure(found.effects, STYLES[style])
        drawn = [one for one in figure.axes if one.get_visible() and one.texts]
        assert drawn
        for axes in drawn:
            low, high = axes.spines["bottom"].get_bounds()
            assert low >= 0 and all(low <= tick <= high for tick in axes.get_xticks())
            values = [text.get_text() for text in axes.texts]
            assert all(" + " not in value and value.count("\n") < 2 for value in values), values
            words = {word for value in values for word in re.findall(r"[a-z]{4,}", value)}
            assert words and words <= known  # no word is broken


@pytest.fixture
def command(hwmodel, tmp_path):
    """A function that runs `hwmodel sensitivity` on small files, in a folder without others."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    network = written(folder, NETWORK, name="net.yaml")
    hardware = written(folder, CHIP, name="chip.yaml")

    def run(*options):
        usual = {"--methods": "fp,bold", "--accounting": "paper"}
        words = [word for item in usual.items() if item[0] not in options for word in item]
        files = ("sensitivity", network, "--hardware", hardware, *words)
        return hwmodel(*files, "--jobs", 1, *options)

    return run


def test_the_command_writes_csvs_and_a_figure_and_reruns_are_the_same(command, tmp_path):
    code, out, _ = command("--samples", 4, "--out", "a")
    assert code == 0
    assert "bold is moved most by" in out
    *_, nature, made = out.splitlines()
    assert nature == "All figures are analytical, not measured."
    assert made.startswith("hwmodel 0.")
    assert made.endswith("--accounting paper --batch 1 --mode training --samples 4 --seed 0")
    ends = (".csv", "_chip_tornado.png", "_chip_tornado.svg", "_samples.csv")
    names = sorted(p.name for p in (tmp_path / "a").iterdir())
    stem = names[0].removesuffix(".csv")
    assert stem.startswith("sensitivity_net_chip_fp+bold_paper_training_batch1_")
    assert names == [f"{stem}{end}" for end in ends]
    assert command("--samples", 4, "--out", "b")[:2] == (0, out)
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a" / names[0]).read_text())))
    assert list(rows[0]) == [*Effect._fields, "version", "inputs_sha256", "command"]
    moved = [r for r in rows if r["field"] == "accounting.extras.boolean_update"]
    assert [(r["value_from"], r["value_to"], r["method"]) for r in moved] == [
        ("false", "true", "fp"), ("false", "true", "bold")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--samples", "-1"), "samples -1: must be a whole number from 0 to"),
        (("--ranges", "none.yaml"), "none.yaml: cannot be read"),
        (("--accounting", "papr"), "did you mean 'paper'?"),
        (("--methods", "fp"), "fp: that is the baseline, always 100 %"),
        (("--csv", "net.yaml"), "net.yaml: would be written over what looks like an input"),
    ],
)
def test_wrong_words_are_one_message_and_nothing_is_written(command, tmp_path, options, said):
    code, out, err = command(*options)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["inputs"]
