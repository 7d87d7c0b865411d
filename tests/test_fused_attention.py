"""Attention in one kernel: counts by hand, by loops over blocks and of a framework's counter."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hwmodel import HwmodelError, SpecError
from hwmodel.model.entries import paid, search_options
from hwmodel.model.evaluate import evaluate
from hwmodel.model.plans import all_tasks, occupied
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import memories
from hwmodel.tiling.tile import tile
from hwmodel.vary.paths import replaced, replaced_all
from hwmodel.views.explain.explanation import explanation
from hwmodel.work.problem import Extents
from hwmodel.work.tensor import Direction, Role, product
from hwmodel.work.work import Mask, Multiply
from tests.specs import written
from tests.test_number_formats import of
from tests.test_transformers import attention, network, rows

FULL = load(Accounting, "full")
FUSED = replaced(FULL, "counting.attention", "fused")
UPPER = replaced(FUSED, "counting.transfers", "upper")
SKIPPED = replaced_all(UPPER, {"counting.masked_scores": "skipped"})
SMALL = """\
version: 1
name: c
title: two memories of 256 B
energy_unit: pJ
sources: {m: made up}
levels:
  - {level: 2, name: DRAM, capacity: unlimited, access_energy: 50 pJ/32bit, source: m}
  - {level: 1, name: L1, capacity: 256 B, access_energy: 1 pJ/32bit, source: m}
  - {level: 0, name: L0, capacity: 256 B, access_energy: 1 pJ/32bit, source: m}
arithmetic:
  - {operation: mac, bits: 32, energy: 5 pJ, operations: 2, source: m}
  - {operation: add, bits: 32, energy: 1 pJ, source: m}
"""
PIECES = """\
version: 1
name: n
title: 64 queries and 16 keys of one input
input: [4, 96, 1]
layers:
  - {name: q, kind: slice, axis: rows, start: 0, stop: 64, inputs: [input]}
  - {name: k, kind: slice, axis: rows, start: 64, stop: 80, inputs: [input]}
  - {name: v, kind: slice, axis: rows, start: 80, stop: 96, inputs: [input]}
  - {name: scores, kind: attention-scores, heads: 1, inputs: [q, k]}
  - {name: softmax, kind: activation, function: softmax}
  - {name: context, kind: attention-context, heads: 1, inputs: [softmax, v]}
"""
SIZES = {"heads": 8, "kv_heads": 2, "L": 64, "S": 64, "d": 32}
Q, KV, PAIRS = 8 * 64 * 32, 2 * 64 * 32, 8 * 64 * 64  # elements


def run(net, accounting=FUSED, chip="ascend", **rest):
    return evaluate(net, chip, "fp", accounting=accounting, **rest)


def outermost(report, **where):
    """Elements that the outermost memory moves, by layer, tensor, role and direction."""
    name = report.hardware.levels[0].buffers[0].name
    return {
        (e.layer, e.tensor, str(e.role), str(e.direction)): e.elements
        for e in of(report, memory=name, **where)
        if e.layer in ("scores", "softmax", "context")
    }


def test_forward_by_hand():
    """Queries, keys and values are read once and the context written: no word of scores."""
    found = run(attention(**SIZES), mode="inference")
    assert outermost(found) == {
        ("scores", "I", "operand", "read"): Q,
        ("scores", "F", "operand", "read"): KV,
        ("context", "F", "operand", "read"): KV,
        ("context", "O", "operand", "write"): Q,
    }
    done = of(found, component="product", operation="mac")
    assert sum(e.elements for e in done) == 2 * PAIRS * 32
    alone = run(attention(**SIZES), FULL, mode="inference")
    exponentials = [of(r, layer="softmax", operation="special") for r in (found, alone)]
    assert [e.elements for e in exponentials[0]] == [e.elements for e in exponentials[1]]


def test_back_by_hand():
    """Q, K, V, O, dO and log-sums are read, dQ, dK and dV written; five products, not four.

    5,242,880 is what a framework counts for the way back of its fused function.
    """
    found = run(attention(**SIZES))
    back = {"scores": ("dI1", "dI2"), "context": ("dI2",)}
    moved = {**outermost(found, pass_="backward_input")}
    moved |= outermost(found, pass_="backward_weight")
    assert moved == {
        ("scores", "I", "operand", "read"): Q,
        ("scores", "F", "operand", "read"): KV,
        ("context", "dO", "operand", "read"): Q,
        ("context", "F", "operand", "read"): KV,
        ("context", "O", "saved", "read"): Q,
        ("context", "O", "log-sum", "read"): 8 * 64,
        ("scores", back["scores"][0], "operand", "write"): Q,
        ("scores", back["scores"][1], "operand", "write"): KV,
        ("context", back["context"][0], "operand", "write"): KV,
    }
    macs = of(found, component="product", operation="mac")
    assert sum(e.elements for e in macs if e.pass_ != "forward") == 5_242_880 == 5 * PAIRS * 32
    again = of(found, layer="softmax", role="computed again")
    forward = of(found, layer="softmax", pass_="forward")
    assert {str(e.operation): e.elements for e in again} == {"add": PAIRS, "special": PAIRS}
    assert {str(e.operation): e.elements for e in forward} == {
        "add": 3 * PAIRS,
        "special": 2 * PAIRS,
    }


def test_what_lies_in_memory():
    """Scores do not, the logarithms of their sums do: a word of 32 bit for each row."""
    for accounting, log_sums in ((FULL, False), (FUSED, True)):
        job = Job(load(Method, "fp"), accounting, 1, "training")
        kept = {t.name: t.bits for t in occupied(attention(**SIZES), job).tensors}
        assert any("scores" in n or "softmax" in n for n in kept) is not log_sums
        assert kept.get("log-sum:context", 0) == log_sums * 8 * 64 * 32


def kernels(net, accounting, trains=False):
    mode = "training" if trains else "inference"
    tasks = all_tasks(net, Job(load(Method, "fp"), accounting, 1, mode))
    return [t for t in tasks if isinstance(t.work, Multiply) and t.work.kernel]


def asked(work, accounting, *tiles):
    """What the outermost of as many levels as tiles, and one more, is asked for, by operand."""
    chip = memories(load(Hardware, "horowitz45"), work.kinds)
    chip = chip._replace(levels=(chip.levels[0], *chip.levels[-len(tiles) :]))
    mapping = Mapping(tiles, ("F",) * len(tiles))
    found = paid(work, mapping, chip, search_options(accounting, work))
    return [(level, one, product(one.factors)) for level, one in found]


def words(work, accounting, block, columns=1):
    """Elements read at I from the outermost level, with `block` rows held below it."""
    n = work.nest.extent
    tile = Extents(columns, block, n.C, 1, 1, 1, 1)
    first = asked(work, accounting, tile)
    return sum(x for level, one, x in first if level == 0 and one.operand == "I")


BLOCKS = [r for r in rows("onnx_fused_blocks.csv") if r["item"] == "fused attention"]


@pytest.mark.parametrize("row", BLOCKS, ids=lambda row: row["case"])
def test_keys_are_read_once_a_block_of_queries(row):
    said = {word: int(n) for word, n in re.findall(r"(\w+)=(\d+)", row["case"])}
    block = said.pop("block")
    scores, context = (t.work for t in kernels(attention(**said, d=1), UPPER))
    assert words(scores, UPPER, block) == int(row["expected"])
    assert words(context, UPPER, block) == int(row["expected"])  # of values


CAUSAL = [r for r in rows("generate_scan_spiking.csv") if r["item"] == "causal blocks"]


@pytest.mark.parametrize("row", CAUSAL, ids=lambda row: row["case"])
def test_keys_that_blocks_of_queries_meet_behind_a_mask(row):
    L, past, block = map(int, re.findall(r"=(\d+)", row["case"]))
    net = attention(1, L=L, S=L + past, d=1, causal=True)
    scores = kernels(net, SKIPPED)[0].work
    assert words(scores, SKIPPED, block) == int(row["expected"])


@pytest.mark.parametrize("window", [None, 1, 3, 6, 40])
@pytest.mark.parametrize(
    ("L", "P", "g", "block"), [(7, 0, 1, 2), (5, 4, 3, 4), (6, 9, 2, 5), (1, 8, 4, 1)]
)
def test_shares_of_blocks_are_those_of_loops(window, L, P, g, block):
    S = L + P
    met = [
        (i, j) for i in range(L) for j in range(S)
        if j <= P + i and (window is None or j > P + i - window)
    ]  # fmt: skip
    mask = Mask(L, S, window, g)
    rows_of = [{r // g for r in range(b, min(b + block, L * g))} for b in range(0, L * g, block)]
    spans = [[j for i, j in met if i in some] for some in rows_of]
    keys = sum(max(span) - min(span) + 1 for span in spans)
    assert mask.share("queries", block) * S * len(rows_of) == pytest.approx(keys)
    columns = [range(b, min(b + block, S)) for b in range(0, S, block)]
    spans = [[i for i, j in met if j in some] for some in columns]
    queries = sum(max(span) - min(span) + 1 for span in spans if span)
    assert mask.share("keys", block) * L * len(columns) == pytest.approx(queries)


def simulated(S, N, c, n):
    """The way back, block by block: keys of c rows held, queries of n rows stream past.

    Returns loads of rows of queries and of keys, and partial sums of dQ written and read back.
    """
    loads_q = loads_k = written = back = 0
    begun = set()
    for k in range(0, S, c):
        loads_k += min(c, S - k)
        for q in range(0, N, n):
            here = min(n, N - q)
            loads_q += here
            if q in begun:
                back += here
            begun.add(q)
            written += here
    return loads_q, loads_k, written - N, back  # of dQ all but the last are unfinished


@pytest.mark.parametrize(("c", "n"), [(64, 8), (16, 32), (10, 7)])
def test_back_as_a_loop_over_blocks_has_it(c, n):
    """8 queries share each of 2 heads of keys, 4 to one: 256 rows of queries and 64 of keys."""
    tasks = kernels(attention(**SIZES), UPPER, trains=True)
    found = {}
    tile = Extents(n, c, 32, 1, 1, 1, 1)
    for task in tasks:
        if task.work.pass_ == "forward":
            continue
        for level, one, number in asked(task.work, UPPER, tile):
            if level == 0:
                key = str(task.work.O), one.operand, str(one.role), str(one.direction)
                found[key] = number
    loads_q, loads_k, written, back = (2 * 32 * x for x in simulated(64, 256, c, n))
    assert found["O", "I", "operand", "read"] == found["dI", "I", "operand", "read"] == loads_q
    assert found["O", "F", "operand", "read"] == found["dI", "F", "operand", "read"] == loads_k
    running = {k[3]: v for k, v in found.items() if k[2] == str(Role.RUNNING)}
    assert running.get("write", 0) == written and running.get("read", 0) == back


@pytest.mark.parametrize(("c", "n"), [(64, 8), (16, 32), (10, 7)])
def test_where_running_sums_come_from_pays_its_side(c, n):
    """Each that leaves is read there; each that comes back is written, and read to be added to.

    Below two memories with one tile all arrive in the upper of them, and none comes back further.
    """
    tile, rows = Extents(n, c, 32, 1, 1, 1, 1), {}
    for task in kernels(attention(**SIZES), FUSED, trains=True):
        if task.work.pass_ == "backward_input" and str(task.work.O) == "dI":
            for level, one, number in asked(task.work, FUSED, tile, tile):
                if level and one.role == Role.RUNNING:
                    at = level, str(one.direction)
                    rows[at] = rows.get(at, 0) + number
    _, _, written, back = (2 * 32 * x for x in simulated(64, 256, c, n))
    mine = {(1, "read"): written + back, (1, "write"): back + written, (2, "read"): written}
    assert rows == {at: number for at, number in mine.items() if number}


def test_a_result_comes_back_where_a_block_does():
    """Keys cut in two above a block of queries: its sums of the context leave once unfinished."""
    (_, context) = (t.work for t in kernels(attention(8, 2, L=64, S=64, d=32), UPPER))
    whole, half = Extents(64, 256, 32, 1, 1, 1, 1), Extents(32, 256, 32, 1, 1, 1, 1)
    small = Extents(32, 16, 32, 1, 1, 1, 1)
    assert not [
        one for _, one, _ in asked(context, UPPER, whole, whole) if one.role == Role.RUNNING
    ]
    found = {
        (level, str(one.direction)): number
        for level, one, number in asked(context, UPPER, half, small)
        if one.role == Role.RUNNING
    }
    assert found == {(1, "write"): Q, (1, "read"): Q}


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_no_proof_holds_for_what_its_search_has_not_seen(tmp_path, monkeypatch):
    """64 queries and 16 keys of 4 features: sums of the context leave L0 unfinished.

    Their price is none of the search's: the tile that it finds is dearer than another, and no more
    is said than that as much may be left as they cost.
    """
    written(tmp_path, PIECES, name="net.yaml")

    def energy_of(name):
        chip = written(tmp_path, SMALL, ("name: c", f"name: {name}"), name=f"{name}.yaml")
        return run(tmp_path / "net.yaml", chip=chip, mode="inference")

    found = energy_of("found")
    assert found.unproved and of(found, role=str(Role.RUNNING))
    energies = []
    for queries, keys in [(12, 2), (13, 1), (10, 3), (9, 4), (6, 8), (1, 15)]:

        def cut(problem, places, options, M=queries, N=keys):
            one = tile(problem, places, options)
            tiles = tuple(x._replace(M=M, N=N) for x in one.mapping.tiles)
            return one._replace(mapping=replace(one.mapping, tiles=tiles))

        monkeypatch.setattr("hwmodel.model.entered.tile", cut)
        energies.append(energy_of(f"cut{queries}").energy)
    assert min(energies) < found.energy
    assert found.energy * (1 - found.gap) <= min(energies)


def test_only_what_is_wanted_goes_back():
    """Keys and values frozen: dQ alone, by way of dP; queries frozen, too: forward alone."""
    net = attention(**SIZES)

    def frozen(*names):
        layers = [
            layer.model_copy(update={"learned": layer.name not in names})
            if layer.name in "qkv"
            else layer
            for layer in net.layers
        ]
        return net.model_copy(update={"layers": tuple(layers)})

    some = run(frozen("k", "v"))
    back = {(e.layer, e.tensor) for e in of(some, component="product", operation="mac")
            if e.pass_ != "forward"}  # fmt: skip
    assert back == {("scores", "O"), ("scores", "dI"), ("context", "dI")}
    values = run(frozen("q", "k"))
    back = {(e.layer, e.tensor) for e in of(values, component="product", operation="mac")
            if e.pass_ != "forward"}  # fmt: skip
    assert back == {("scores", "O"), ("context", "dF")}
    assert outermost(values, pass_="backward_weight")["context", "dO", "operand", "read"] == Q


def biased(learned):
    """Something that is added to scores, learned or given."""
    net = attention(**SIZES)
    layers = [layer.model_dump(exclude_none=True) | {"kind": layer.kind} for layer in net.layers]
    bias = {"name": "bias", "kind": "source", "shape": [8, 64, 64], "learned": learned}
    added = {"name": "biased", "kind": "add", "inputs": ["scores", "bias"]}
    softmax = layers[4] | {"inputs": ["biased"]}
    return network(*layers[:4], bias, added, softmax, layers[5])


def test_what_is_added_to_scores_is_read_again():
    found = run(biased(learned=False))
    name = found.hardware.levels[0].buffers[0].name
    reads = {str(e.pass_): e.elements for e in of(found, layer="biased", memory=name)}
    assert reads == {"forward": PAIRS, "backward_input": PAIRS}
    assert not of(run(biased(learned=False), mode="inference"), role="computed again")


def test_a_bias_that_learns_keeps_scores_in_memory():
    found = run(biased(learned=True))
    assert of(found, layer="softmax", tensor="O", direction="write")
    assert not of(run(biased(learned=True), mode="inference"), layer="softmax", direction="write")


@pytest.mark.parametrize(
    ("chip", "mode"),
    [("ascend", "training"), ("ascend", "inference"), ("ascend-cube", "inference")],
)
def test_a_kernel_costs_less_and_is_explained(chip, mode):
    net = attention(8, 2, L=200, S=200, d=64, causal=True)
    fused, alone = (run(net, accounting, chip, mode=mode) for accounting in (FUSED, FULL))
    assert fused.energy < alone.energy
    for layer in ("scores", "softmax", "context"):  # every row is compared with the report
        assert explanation(fused, layer)


def test_narrow_words_and_formats_in_a_kernel():
    for method in ("int8", "bf16", "mxfp8"):
        choices = replaced(FUSED, "prices.narrow_floats", "expanded")
        found = evaluate(attention(**SIZES), "ascend", method, accounting=choices, mode="inference")
        assert not of(found, layer="softmax", direction=str(Direction.WRITE))


def test_it_needs_exact_counts(tmp_path):
    with pytest.raises((SpecError, HwmodelError), match="fused needs counting exact"):
        replaced(load(Accounting, "paper"), "counting.attention", "fused")
