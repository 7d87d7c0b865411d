"""Generation token by token: counts by hand and of real runs, identities, refusals."""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

import hwmodel as package
from hwmodel.errors import HwmodelError, TooLarge
from hwmodel.graph.generation import generating
from hwmodel.graph.network import family_member
from hwmodel.graph.yaml import network_yaml
from hwmodel.importers.load import load_network
from hwmodel.model.cached import CacheWidth, Places
from hwmodel.model.evaluate import evaluate
from hwmodel.model.generate import COLUMNS, elements_of, generate
from hwmodel.model.plans import all_tasks, occupied
from hwmodel.model.prices import Key, Prices
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import folder, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.vary.paths import replaced
from hwmodel.views.generation import generation_tables
from hwmodel.work.tensor import Direction
from tests.specs import CHIP as PLAIN
from tests.test_architecture import PACKAGE
from tests.test_transformers import network, rows

ROOT = PACKAGE.parent
SMALL = {"blocks": 3, "features": 256, "heads": 8, "kv_heads": 2, "hidden": 688, "vocabulary": 1000}
CHIP, METHOD, CHEAP = "tpuv4i", "fp16", "paper"
FULL, FP16 = load(Accounting, "full"), load(Method, "fp16")


@cache
def small():
    """The Llama of three layers that was really run."""
    return family_member("llama-3.1-8b", SMALL)


@cache
def generated(prefill, decode, batch=1, cache_bits=None, accounting=CHEAP):
    return generate(
        small(), CHIP, METHOD, prefill=prefill, decode=decode, batch=batch, cache_bits=cache_bits,
        accounting=accounting,
    )  # fmt: skip


@cache
def moved(name, new, past, batch, skipped=False):
    """Elements of one pass and multiply-accumulates of one point of a generation."""
    found = generating(load_network(name), new, past)
    rules = replaced(FULL, "counting.masked_scores", "skipped") if skipped else FULL
    tasks = all_tasks(found, Job(FP16, rules, batch, "inference"))
    return elements_of(list(tasks), Places(found.nodes(), [], False), batch)


def said(text):
    return {word: int(n) for word, n in re.findall(r"(\w+)=(\d+)", text)}


def steps(name, P, D, batch):
    """The same of all steps, which are straight lines: the sum is their number times the middle."""
    ends = (moved(name, 1, P, batch), moved(name, 1, P + D - 1, batch))
    return {field: (a + b) * D / 2 for field, a, b in zip(ends[0]._fields, *ends, strict=True)}


LLAMA = [
    r for r in rows("generate_scan_spiking.csv") if r["item"] == "generate" and "llama" in r["case"]
]


@pytest.mark.parametrize("row", LLAMA, ids=lambda row: f"{row['case']}-{row['quantity']}")
def test_llama_moves_and_multiplies_what_was_counted_by_hand(row):
    P, D, B = (said(row["case"])[word] for word in ("prefill", "decode", "batch"))
    what = row["quantity"]
    if what.startswith("prefill"):
        found = moved("llama-3.1-8b", P, 0, B, "skipped" in what).macs
    else:
        decode = steps("llama-3.1-8b", P, D, B)
        (word,) = {"decode MACs": ["macs"]}.get(what) or [
            field
            for piece, field in {
                "read from the cache": "cache_read", "written to the cache": "cache_written",
                "weight elements": "weights", "elements of scores": "scores",
            }.items()
            if piece in what
        ]  # fmt: skip
        found = decode[word]
    assert found == int(row["expected"])


RUN = [r for r in rows("attention_recurrent_lora_moe.csv") if r["item"] == "generate"]


def test_a_model_that_was_really_run_multiplies_and_keeps_as_much():
    expected = [int(row["expected"]) for row in RUN]
    prefill, decode = generated(32, 8).phases
    kept = prefill.elements.cache_written + decode.elements.cache_written
    assert [prefill.elements.macs, decode.elements.macs, kept] == expected


WINDOWS = [r for r in rows("generate_scan_spiking.csv") if r["case"].startswith("window=")]


@pytest.mark.parametrize("row", WINDOWS, ids=lambda row: row["case"])
def test_behind_a_window_no_more_keys_are_met(row):
    n = said(row["case"])
    found = network(
        {"name": "k", "kind": "embedding", "vocabulary": 9, "features": 4},
        *(
            {"name": name, "kind": f"attention-{name}", "heads": 1, "causal": True, "cache": True,
             "window": n["window"], "inputs": inputs}
            for name, inputs in (("scores", ["k", "k"]), ("context", ["scores", "k"]))
        ),
    )  # fmt: skip
    done = generate(found, CHIP, METHOD, prefill=n["prefill"], decode=n["decode"], accounting=CHEAP)
    assert done.phases[1].elements.scores == int(row["expected"])


CACHES = [r for r in rows("generate_scan_spiking.csv") if r["item"] == "cache"]


@pytest.mark.parametrize("row", CACHES, ids=lambda row: f"{row['case']}-{row['quantity']}")
def test_a_cache_has_the_elements_and_bytes_that_are_known(row):
    elements = moved(row["case"], 1, 7, 1).cache_written
    scaled = CacheWidth.of("8/128")
    bits = {"elements a token": 1, "bytes a token at 16 bit": 2}
    each = bits.get(row["quantity"]) or 8192 * 8 * scaled.bits * (1 + scaled.scales) / 8
    assert elements * each == float(row["expected"])


def test_a_cache_lies_in_memory_beside_the_weights():
    """64 keys before: 3 layers, K and V, 2 x 32 features, 16 bit, 2 sequences."""
    job = Job(FP16, FULL, 2, "inference")
    kept = occupied(generating(small(), 1, 64), job).peak().parts
    assert kept["cache"] == 3 * 2 * 64 * 64 * 16 * 2


THOROUGH = os.environ.get("HWMODEL_TESTS") == "thorough"
FLOOR = [
    r
    for r in rows("generate_scan_spiking.csv")
    if r["item"] == "decode floor" and (THOROUGH or re.search(r"batch (8|512) ?,", r["case"]))
]


@pytest.mark.parametrize("row", FLOOR, ids=lambda row: f"{row['case'][:34]}-{row['quantity']}")
def test_the_least_that_a_step_can_cost(row):
    """Every weight once, the cache once, at the prices of the chip's file."""
    batch = int(re.search(r"batch (\d+)", row["case"])[1])
    n, prices = moved("llama-3.1-8b", 1, 1023, batch), Prices(load(Hardware, CHIP), FULL)
    hbm = load(Hardware, CHIP).levels[0].buffers[0].name
    bit = prices.value(Key(Direction.READ, hbm))
    energies = {
        "J a token: weights": n.weights * 16 * bit,
        "J a token: cache read and write": (n.cache_read + n.cache_written) * 16 * bit,
        "J a token: MACs": n.macs * prices.value(Key(Direction.OPERATE, "mac", 16)),
    }
    energy = float(energies[row["quantity"]]) / batch * 1e-12
    assert energy == pytest.approx(float(row["expected"]), rel=1e-12)


def test_steps_together_are_the_steps_one_by_one():
    whole = generated(16, 7)
    ones = [generated(16 + t, 1) for t in range(7)]
    for field in whole.phases[1].elements._fields:
        assert getattr(whole.phases[1].elements, field) == sum(
            getattr(one.phases[1].elements, field) for one in ones
        )
    energy = sum(one.phases[1].energy for one in ones)
    assert whole.phases[1].energy == pytest.approx(energy, rel=max(1e-9, 4 * whole.error))


def test_a_step_costs_what_the_network_behind_a_cache_costs():
    done = generated(16, 1)
    report = evaluate(generating(small(), 1, 16), CHIP, METHOD, accounting=CHEAP, mode="inference")
    assert done.phases[1].energy == pytest.approx(report.energy, rel=1e-12)
    assert sum(done.steps[17].values()) == pytest.approx(report.energy, rel=1e-12)


def test_a_narrow_cache_is_written_beside_and_read_at_its_width():
    tiny = {"blocks": 1, "features": 64, "heads": 2, "kv_heads": 1, "hidden": 64, "vocabulary": 64}
    found = family_member("llama-3.1-8b", tiny)
    wide, narrow = (
        generate(found, CHIP, METHOD, prefill=16, decode=1, cache_bits=bits)
        for bits in (None, "8/32")
    )
    hbm = load(Hardware, CHIP).levels[0].buffers[0].name

    def cache_bits(done, direction):
        return done.phases[1].counts[("cache", Key(direction, hbm))]

    elements = 2 * 17 * 32  # K and V, 17 keys of 32 features
    assert cache_bits(wide, Direction.READ) == elements * 16
    assert cache_bits(narrow, Direction.READ) == elements * (8 + 0.5)
    assert cache_bits(wide, Direction.WRITE) == 2 * 32 * 16
    assert cache_bits(narrow, Direction.WRITE) == 2 * 32 * (8 + 0.5)
    more = narrow.phases[1].counts[("compute", Key(Direction.OPERATE, "mac", 32))]
    more -= wide.phases[1].counts[("compute", Key(Direction.OPERATE, "mac", 32))]
    assert more == elements + 2 * 32  # to expand, to quantise


def test_keys_and_values_of_one_layer_are_the_cache_in_part():
    """GPT-2's layer of queries, keys and values: two thirds of what it writes are kept."""
    gpt2 = family_member("gpt2", {"blocks": 1, "features": 32, "heads": 2})
    done = generate(gpt2, CHIP, METHOD, prefill=4, decode=1, accounting="full")
    hbm = load(Hardware, CHIP).levels[0].buffers[0].name
    assert done.phases[1].counts[("cache", Key(Direction.WRITE, hbm))] == 2 * 32 * 16


def test_static_energy_is_a_part_of_its_own(tmp_path):
    """One MAC a cycle of a ns: 1 W pays 1,000 pJ for each, and 10 W ten times that."""
    gpt2 = family_member("gpt2", {"blocks": 1, "features": 32, "heads": 2})
    found = []
    for watts in (1, 10):
        timed = f"array: {{}}\nclock: 1 GHz\nstatic_power: {watts} W\n"
        text = PLAIN.replace("arithmetic:", timed + "arithmetic:")
        (tmp_path / "c.yaml").write_text(text)
        found.append(generate(gpt2, tmp_path / "c.yaml", "fp", prefill=2, decode=1,
                              accounting="full"))  # fmt: skip
    for one, more in zip(*(one.phases for one in found), strict=True):
        assert one.parts["static"] == pytest.approx(1000 * one.elements.macs)
        assert more.parts["static"] == pytest.approx(10 * one.parts["static"])
        assert more.parts["compute"] == pytest.approx(one.parts["compute"])
        assert sum(one.parts.values()) == pytest.approx(one.energy)
    assert [row[9] for row in found[0].records].count("static") == 2
    said = " ".join(str(piece) for piece in generation_tables(found))
    assert "static energy" not in said and "control" in said


def test_the_prompt_alone():
    done = generated(8, 0)
    assert len(done.phases) == 1
    assert done.steps == {}
    assert done.error is None
    assert done.energy == done.phases[0].energy / 8


def test_the_head_gives_one_row_of_a_prompt():
    whole = sum(node.macs for node in generating(small(), 8, 0).nodes())
    row = sum(node.macs for node in generating(small(), 1, 7).nodes())
    assert whole == 8 * row - 7 * 256_000


@pytest.mark.parametrize(
    ("name", "asked", "words"),
    [
        ("resnet18", {}, r"its input (3, 224, 224) is no sequence of tokens"),
        ("bert-base", {}, "bert-base: no attention in it keeps keys and values, so that nothing"),
        ("gpt2", {"prefill": 1000, "decode": 25}, "layer embedding.position has 1,024 positions"),
        ("llama-3.2-1b", {"prefill": 0}, "prefill 0"),
        ("llama-3.2-1b", {"decode": -1}, "decode -1"),
        ("llama-3.2-1b", {"cache_bits": "8/0"}, "cache-bits '8/0': bits of an element"),
        ("llama-3.2-1b", {"cache_bits": "15/1"}, "cache-bits 15/1 (31 bit an element with scales): layer"),
        ("llama-3.2-1b", {"cache_bits": 32}, "cache-bits 32: layer layers.0.scores reads keys or values of 16 bit"),
    ],
)  # fmt: skip
def test_what_cannot_be_generated(name, asked, words):
    with pytest.raises(HwmodelError, match=re.escape(words)):
        generate(name, CHIP, METHOD, **({"prefill": 4, "decode": 2, "accounting": CHEAP} | asked))


def test_lengths_that_a_file_states_are_told():
    both = {"heads": 1, "causal": True, "cache": True}
    found = network(
        {"name": "words", "kind": "embedding", "vocabulary": 9, "features": 4},
        {"name": "places", "kind": "source", "shape": [4, 6, 1], "learned": True},
        {"name": "sum", "kind": "add", "inputs": ["words", "places"]},
        {"name": "scores", "kind": "attention-scores", "inputs": ["sum", "sum"], **both},
        {"name": "context", "kind": "attention-context", "inputs": ["scores", "sum"], **both},
        given=(1, 6, 1),
    )
    with pytest.raises(HwmodelError, match=r"net: layer sum: .* the network states a length of 6"):
        generate(found, CHIP, METHOD, prefill=4, decode=1)


def test_behind_a_cache_nothing_is_trained():
    with pytest.raises(HwmodelError, match=r"layer layers\.0\.scores has a past in a cache"):
        evaluate(generating(small(), 1, 7), CHIP, METHOD, accounting=CHEAP)


def test_the_command_prints_the_same_and_writes_rows(hwmodel, tmp_path):
    (tmp_path / "small.yaml").write_text(network_yaml(small()), encoding="utf-8")
    asked = ("generate", "small.yaml", "--hardware", CHIP, "--method", METHOD)
    asked += ("--accounting", CHEAP, "--prefill", 8, "--decode", 2, "--batch", "1,2")
    code, out, err = hwmodel(*asked, "--csv", "x.csv", "--plot", "x.svg")
    assert code == 0, err
    found = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text(encoding="utf-8"))))
    assert tuple(found[0])[: len(COLUMNS)] == COLUMNS
    assert len(found) == 2 * 2 * 5
    assert (tmp_path / "x.svg").read_text(encoding="utf-8").startswith("<?xml")
    one = package.generate(small(), CHIP, METHOD, prefill=8, decode=2, batch=2, accounting=CHEAP)
    energies = [float(row["energy"]) for row in found if row["batch"] == "2"]
    assert energies == [energy for phase in one.phases for energy in phase.parts.values()]
    assert one.table.shape == (10, len(COLUMNS))
    assert "batch 2, decode: " in out


def test_a_batch_that_is_none(hwmodel):
    code, _, err = hwmodel(
        "generate", "gpt2", "--hardware", CHIP, "--method", METHOD, "--prefill", 1, "--decode", 1,
        "--batch", "1,x",
    )  # fmt: skip
    assert (code, err) == (
        2, "hwmodel: --batch 'x': a whole number above 0, or several with commas\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--csv", "x.svg", "--plot", "x.svg"), "--plot x.svg: --csv goes to this file, too"),
        (("--csv", "x.svg", "--plot", "a/../x.svg"), "x.svg: --csv goes to this file, too"),
        (("--csv", "small.yaml"), "small.yaml: is read by the same command"),
        (("--csv", "chip.yaml"), "chip.yaml: is read by the same command"),
        (("--csv", "method.yaml"), "method.yaml: is read by the same command"),
        (("--csv", "rules.yaml"), "rules.yaml: is read by the same command"),
    ],
)
def test_an_output_that_is_refused_before_it_is_computed(
    refused, tmp_path, monkeypatch, words, said
):
    (tmp_path / "small.yaml").write_text(network_yaml(small()), encoding="utf-8")
    specs = {"chip": (Hardware, CHIP), "method": (Method, METHOD), "rules": (Accounting, CHEAP)}
    for name, (kind, one) in specs.items():
        text = (folder(kind.FOLDER) / f"{one}.yaml").read_bytes()
        (tmp_path / f"{name}.yaml").write_bytes(text)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr("hwmodel.rerun.generations.generate", None)  # whoever computes, falls
    given = ("--hardware", "chip.yaml", "--method", "method.yaml", "--accounting", "rules.yaml")
    lengths = ("--prefill", 8, "--decode", 2)
    assert said in refused("generate", "small.yaml", *given, *lengths, *words)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("prefill", "decode"), [(0, 1), (1, -1)])
def test_a_length_that_is_refused_is_called_by_its_option(refused, prefill, decode):
    on = ("--hardware", CHIP, "--method", METHOD, "--prefill", prefill, "--decode", decode)
    said = "--prefill 0: must be a whole" if prefill == 0 else "--decode -1: must be a whole"
    assert refused("generate", "gpt2", *on).startswith(said)


def test_of_too_many_tokens_fewer_are_advised():
    with pytest.raises(TooLarge, match=r"more than 2,147,483,648; take fewer tokens, or fewer"):
        generate(small(), CHIP, METHOD, prefill=2**31, decode=1, accounting=CHEAP)


PAGE = (ROOT / "docs" / "generate.md").read_text(encoding="utf-8")
BESIDE = [
    [float(cell.strip(" %")) for cell in line.strip("| ").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d+ \|", line)
]


def test_the_page_shows_what_was_measured():
    """Rows of batches whose mean is within 1 % of the one that is asked for."""
    text = (ROOT / "tests" / "data" / "llm_decode_llama31_8b.csv").read_text(encoding="utf-8")
    lines = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    measured = {float(row["mean_batch"]): float(row["J_per_token"]) for row in lines}
    assert len(BESIDE) == 7
    for batch, joules, ours, residual, *_ in BESIDE:
        (found,) = (j for mean, j in measured.items() if abs(mean / batch - 1) < 0.01)
        assert joules == pytest.approx(found, abs=0.5e-4)
        assert residual == pytest.approx(100 * (ours / joules - 1), abs=0.6)


@pytest.mark.skipif(not THOROUGH, reason="a minute of searches")
@pytest.mark.parametrize("row", BESIDE, ids=lambda row: f"batch {row[0]:.0f}")
def test_the_page_shows_what_we_count(row):
    batch, _, ours, _, decoding, weights, kept = row
    upper = replaced(FULL, "counting.transfers", "upper")
    done = generate(
        "llama-3.1-8b", "h100-board", METHOD, prefill=512, decode=396, batch=int(batch),
        accounting=upper,
    )  # fmt: skip
    parts, tokens = done.phases[1].parts, done.phases[1].tokens
    found = [
        done.energy_with_prefill,
        done.energy,
        parts["weights"] / tokens,
        parts["cache"] / tokens,
    ]
    assert [x * 1e-12 for x in found] == pytest.approx([ours, decoding, weights, kept], abs=0.5e-4)


# --- what keeps a state in the place of a cache -----------------------------------------------

STATES = [r for r in rows("generate_scan_spiking.csv") if r["item"] == "mamba decode"]


@cache
def scanned(accounting="full"):
    """Two blocks of Mamba-130M, of which the head and the table are small."""
    net = family_member("mamba-130m", {"blocks": 2, "vocabulary": 64})
    return generate(net, CHIP, METHOD, prefill=8, decode=3, accounting=accounting)


def test_a_step_of_mamba_reads_and_writes_its_states():
    """Rows of 24 layers: scans D N each way; convolutions K - 1 columns in, one out."""
    expected = {row["quantity"].partition(" ")[0]: int(row["expected"]) for row in STATES}
    done = scanned().phases[1]
    per_layer = {name: number // 24 for name, number in expected.items()}
    both = 2 * 3 * (per_layer["state"] + per_layer["convolution"])  # layers, steps
    moved = done.elements.cache_read + done.elements.cache_written
    assert moved == both
    hbm = load(Hardware, CHIP).levels[0].buffers[0].name
    bits = [done.counts["cache", Key(way, hbm)] for way in (Direction.READ, Direction.WRITE)]
    assert sum(bits) == 16 * both
    prompt = scanned().phases[0].elements
    assert (prompt.cache_read, prompt.cache_written) == (0, 2 * 1536 * (16 + 3))


def test_what_keeps_a_state_costs_the_same_at_every_step():
    done = scanned()
    assert list(done.steps) == [11] and done.error is None
    assert done.phases[1].energy / 3 == pytest.approx(sum(done.steps[11].values()), rel=1e-12)
    with pytest.raises(HwmodelError, match="cache-bits 8: mamba-130m keeps no keys or values"):
        generate("mamba-130m", CHIP, METHOD, prefill=8, decode=3, cache_bits=8)


def test_an_lstm_generates_by_its_own_step():
    """Two layers of 650: 8 H H weights a layer, and the head; no cache."""
    net = family_member("lstm-ptb-medium", {"vocabulary": 64})
    decode = generate(net, CHIP, METHOD, prefill=8, decode=3, accounting="full").phases[1]
    assert decode.elements.macs == 3 * (2 * 8 * 650 * 650 + 650 * 64)
    assert decode.elements.weights == decode.elements.macs
    assert decode.elements.cache_read == 0


def test_a_prompt_of_an_lstm_reads_its_own_weights_at_every_step():
    """4 H H of each layer at each of 8 tokens; of the inputs, and the head, once."""
    net = family_member("lstm-ptb-medium", {"vocabulary": 64})
    prompt = generate(net, CHIP, METHOD, prefill=8, decode=1, accounting="full").phases[0]
    assert prompt.elements.weights == 2 * 4 * 650 * 650 * (1 + 8) + 650 * 64


def test_what_looks_ahead_is_not_generated(tmp_path):
    text = """\
version: 1
name: both
title: Both ways
input: [1, 10, 1]
layers:
  - {name: words, kind: embedding, vocabulary: 100, features: 32}
  - {name: rnn, kind: lstm, features: 48, directions: 2}
  - {name: head, kind: linear, features: 100, over: channels}
"""
    (tmp_path / "both.yaml").write_text(text, encoding="utf-8")
    again = tmp_path / "again.yaml"
    load_network(tmp_path / "both.yaml").save(again)  # where its layers are written out
    for file in (tmp_path / "both.yaml", again):
        with pytest.raises(HwmodelError, match=r"layer rnn\.1 goes from the last token"):
            generate(file, CHIP, METHOD, prefill=4, decode=1)


def test_elements_of_weights_are_rounded_not_cut():
    """An expected number of experts, as a binary float, is a little below the whole one."""
    one = generated(16, 4)
    phases = tuple(
        replace(p, elements=p.elements._replace(weights=8 - Fraction(1, 2**40))) for p in one.phases
    )
    assert [r[13] for r in replace(one, phases=phases).records if r[9] == "weights"] == [8, 8]


def test_new_keys_and_values_are_written_for_later_steps():
    """Under `chip` 2 kv d words a token leave for the outermost memory, though maps stay."""
    tiny = {"blocks": 1, "features": 64, "heads": 2, "kv_heads": 1, "hidden": 64, "vocabulary": 64}
    net, chip = family_member("llama-3.1-8b", tiny), load(Hardware, CHIP)
    one = generate(net, CHIP, METHOD, prefill=16, decode=4, accounting="chip")
    outermost = {memory.name for memory in chip.levels[0].buffers}
    words = [
        count
        for (part, key), count in one.phases[0].counts.items()
        if part == "cache" and key.direction == Direction.WRITE and key.name in outermost
    ]
    assert sum(words) == 2 * 16 * 32 * 16  # keys and values, tokens, d, bits


def test_what_stays_on_the_chip_is_moved_less():
    """One block under `chip`: maps stay where the weights do not; no step is dearer than `full`."""
    tiny = {"blocks": 1, "features": 64, "heads": 2, "kv_heads": 1, "hidden": 64, "vocabulary": 64}
    net = family_member("llama-3.1-8b", tiny)
    full, chip = (generate(net, CHIP, METHOD, prefill=16, decode=4, accounting=a)
                  for a in ("full", "chip"))  # fmt: skip
    assert chip.phases[1].elements.macs == full.phases[1].elements.macs
    assert chip.phases[1].elements.scores == 0 < full.phases[1].elements.scores
    for one, other in zip(chip.phases, full.phases, strict=True):
        assert one.energy < other.energy
    report = evaluate(generating(net, 1, 16), CHIP, METHOD, accounting="chip", mode="inference")
    assert sum(chip.steps[17].values()) == pytest.approx(report.energy, rel=1e-12)


def test_its_table_is_verified(hwmodel, tmp_path):
    (tmp_path / "small.yaml").write_text(network_yaml(small()), encoding="utf-8")
    asked = ("generate", "small.yaml", "--hardware", CHIP, "--method", METHOD)
    asked += ("--accounting", CHEAP, "--prefill", 8, "--decode", 2, "--batch", "1,2")
    assert hwmodel(*asked, "--csv", "x.csv")[0] == 0
    text = (tmp_path / "x.csv").read_text(encoding="utf-8")
    assert text.splitlines()[0].endswith("version,inputs_sha256,command")
    assert "--prefill 8 --decode 2 --batch 1,2" in text
    assert hwmodel("verify", "x.csv")[0] == 0
    (tmp_path / "x.csv").write_text(text.replace(",weights,", ",weights,1", 1), encoding="utf-8")
    assert hwmodel("verify", "x.csv")[0] == 1
