"""Attention of today and the networks made of it, against rows that were checked elsewhere.

`data/today/*.csv` hold counts by hand and of a framework's counter, with their sources.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from fractions import Fraction
from functools import cache
from math import prod
from pathlib import Path

import pytest

from hwmodel.errors import ShapeError, SpecError
from hwmodel.graph.generation import generating
from hwmodel.graph.network import Network, family_member
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate
from hwmodel.model.plans import all_tasks
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.method import Method
from hwmodel.vary.paths import replaced
from hwmodel.work.problem import Extents
from hwmodel.work.tensor import product
from hwmodel.work.work import Move, Multiply, Operate

TODAY = Path(__file__).parent / "data" / "today"


def rows(name):
    return list(csv.DictReader((TODAY / name).read_text(encoding="utf-8").splitlines()))


def network(*layers, given=(1, 1, 1)):
    document = {"version": 1, "name": "net", "title": "t", "input": given, "layers": layers}
    return validate(Network, document, "net")


def macs(found, mode="forward"):
    """Multiply-accumulates of one pass over one image, or of a training iteration."""
    if mode == "forward":
        return sum(node.macs for node in found.nodes())
    tasks = all_tasks(found, Job(load(Method, "fp"), load(Accounting, "full"), 1, "training"))
    return sum(product(task.work.macs) for task in tasks if isinstance(task.work, Multiply))


def parameters(found):
    return sum(node.weights + node.other_parameters for node in found.nodes())


NAMES = {
    "vit-b-16": "vit-b-16",
    "gpt2": "gpt2",
    "llama-3.1-8b": "llama-3.1-8b",
    "convnext-t": "convnext-t",
    "mixtral-8x7b": "mixtral-8x7b",
    "lstm-ptb-medium": "lstm-ptb-medium",
}
MODELS = [row for row in rows("models.csv") if row["model"] in NAMES]


@pytest.mark.parametrize("row", MODELS, ids=lambda row: f"{row['model']}-{row['what']}")
def test_a_model_has_the_products_and_parameters_that_a_framework_counts(row):
    found = load_network(NAMES[row["model"]])
    assert row["equal"] == "True"
    assert macs(found, row["what"]) == int(row["macs_hand"])
    assert row["macs_torch"] in ("", row["macs_hand"])
    assert parameters(found) == int(row["parameters_torch"])


def _kinds(layer):
    """What rows by type call a layer: the end of its name, or several of these."""
    last = layer.name.rpartition(".")[2]
    if re.match(r"layers\.\d+(\.input)?$", layer.name):
        return "lstm"
    words = {"patches": "patch"} | dict.fromkeys(
        ("class-token", "positions"), "class token, positions"
    )
    return words.get(last, last)


GROUPS = {  # rows that add up several layers' parameters
    "attention": {"q", "k", "v", "o", "qkv"},
    "mlp": {"gate", "up", "down"},
    "q,o": {"q", "o"},
    "k,v": {"k", "v"},
    "experts": {"gate", "up", "down"},
    "norms": {"norm", "norm1", "norm2"},
    "tables": {"token", "position"},
}
TYPES = [row for row in rows("models_by_type.csv") if row["model"] in NAMES]


@pytest.mark.parametrize(
    "row", TYPES, ids=lambda row: f"{row['model']}-{row['quantity']}-{row['type']}"
)
def test_a_model_has_them_by_type(row):
    nodes = load_network(NAMES[row["model"]]).nodes()
    wanted = GROUPS.get(row["type"], {row["type"]})
    if row["quantity"] == "parameters":
        found = sum(n.weights + n.other_parameters for n in nodes if _kinds(n.layer) in wanted)
    else:
        found = sum(n.macs for n in nodes if _kinds(n.layer) in wanted)
    assert found == int(row["value"])


def test_the_block_of_a_diffusion_network_is_as_counted():
    found = load_network("sd15-unet-block")
    by_quantity = {row["quantity"]: int(row["value"]) for row in rows("unet.csv")}
    assert by_quantity == {"MACs": macs(found), "parameters": parameters(found)}


def test_swin_t_has_the_products_of_its_stages_by_hand():
    """Patches, then 4 D D + 8 D D at each place and 2 x 49 D to the places of its window."""
    by_hand, D, places = 96 * 48 * 56**2, 96, 56**2
    for stage, blocks in enumerate((2, 2, 6, 2)):
        if stage:
            by_hand += places // 4 * 4 * D * 2 * D
            D, places = 2 * D, places // 4
        by_hand += blocks * places * (12 * D * D + 2 * 49 * D)
    assert macs(load_network("swin-t")) == by_hand + 768 * 1000


# --- masks, shared keys and caches ------------------------------------------------------------


def attention(heads=8, kv_heads=None, L=64, S=64, d=32, **more):
    """Scores and context of L queries and S keys, which come from layers that learn."""
    kv = kv_heads or heads
    lengths = {"past": more.get("past", 0)}
    new = S - lengths["past"]
    both = {"heads": heads, "kv_heads": kv_heads, **more}
    both = {key: value for key, value in both.items() if value is not None}
    return network(
        *(
            {"name": name, "kind": "source", "shape": [channels, length, 1], "learned": True}
            for name, channels, length in (("q", heads * d, L), ("k", kv * d, new), ("v", kv * d, new))
        ),
        {"name": "scores", "kind": "attention-scores", "inputs": ["q", "k"], **both},
        {"name": "softmax", "kind": "activation", "function": "softmax"},
        {"name": "context", "kind": "attention-context", "inputs": ["softmax", "v"], **both},
    )  # fmt: skip


ATTENTION = [row for row in rows("attention_recurrent_lora_moe.csv") if row["item"] == "attention"]


@pytest.mark.parametrize("row", ATTENTION, ids=lambda row: f"{row['case']}-{row['quantity']}")
def test_heads_that_share_keys_multiply_as_many_numbers_and_have_fewer_keys(row):
    said = dict(word.split("=") for word in row["case"].split())
    found = attention(**{key: int(value) for key, value in said.items()})
    keys = sum(
        node.output_shape[0] * node.output_shape[1]
        for node in found.nodes()
        if node.layer.name in "kv"
    )
    counted = {
        "forward MACs": macs(found),
        "training MACs": macs(found, "training"),
        "elements of K and V": keys,
    }
    assert counted[row["quantity"]] == int(row["expected"]) == int(row["independent_check"])


PAIRS = [row for row in rows("attention_recurrent_lora_moe.csv") if row["item"] == "causal pairs"]


def pairs(L, past=0, window=None):
    """Count them one by one: query i, from 0, meets key j if j <= past + i, and j is in its window."""
    return sum(
        j <= past + i and (window is None or j > past + i - window)
        for i in range(L)
        for j in range(past + L)
    )


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row["case"])
def test_pairs_that_a_causal_mask_leaves(row):
    said = dict(word.split("=") for word in row["case"].split())
    L, past, window = (None if said[k] == "None" else int(said[k]) for k in ("L", "past", "window"))
    layer = attention(L=L, S=L + past, causal=True, window=window).nodes()[3]
    assert layer.layer.pairs(layer.input_shapes) == int(row["expected"])


@pytest.mark.parametrize(
    ("L", "past", "window"),
    [(5, 3, None), (5, 3, 4), (4, 7, 2), (6, 0, 6), (1, 9, None), (1, 9, 3), (3, 2, 9)],
)
def test_pairs_are_those_that_a_loop_counts(L, past, window):
    layer = attention(L=L, S=L + past, causal=True, window=window, past=past, cache=True).nodes()[3]
    assert layer.layer.pairs(layer.input_shapes) == pairs(L, past, window)


def test_heads_that_share_keys_are_rows_of_one_product():
    """8 heads, 2 of keys, 16 queries: the loops of 2 heads and 64 queries."""
    shared = attention(8, 2, L=16).nodes()
    alone = attention(2, L=64).nodes()
    for name in (3, 5):
        one, other = (n[name].layer.loops(n[name].input_shapes, 3) for n in (shared, alone))
        assert one == other
    assert shared[3].layer.loops(shared[3].input_shapes, 3)["forward"].extent == Extents(
        64, 64, 32, 1, 1, 1, 1
    )


def test_as_many_heads_of_keys_as_of_queries_are_what_is_meant_without():
    for name in (3, 5):
        one, other = (n.nodes()[name] for n in (attention(8, 8), attention(8)))
        assert one.layer.loops(one.input_shapes, 2) == other.layer.loops(other.input_shapes, 2)


def test_keys_in_the_cache_are_met_too():
    """One query, 511 keys before it, row of the sheet: 2 x 8 x 512 x 32 multiply-accumulates."""
    assert macs(attention(8, 2, L=1, S=512, past=511, causal=True, cache=True)) == 262_144


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kv_heads": 3}, "kv_heads 3 does not divide heads 8"),
        ({"window": 4}, "window 4 needs causal: true"),
        ({"past": 4, "S": 68}, "past 4 needs cache: true"),
        ({"window": 0, "causal": True}, "window 0: must be at least 1"),
        ({"causal": True, "L": 65}, "65 queries meet 64 keys"),
    ],
)  # fmt: skip
def test_masks_that_cannot_be(fields, words):
    with pytest.raises((ShapeError, SpecError), match=words):
        attention(**fields).nodes()


def test_keys_of_other_heads_and_masks_that_differ_are_refused():
    found = attention(8, 2)
    layers = [layer.model_dump(exclude_defaults=True) for layer in found.layers]
    wide = [{**x, "shape": [96, 64, 1]} if x["name"] == "k" else x for x in layers]
    with pytest.raises(ShapeError, match=r"not \(8 d, L, 1\) and \(2 d, S, 1\)"):
        network(*wide).nodes()
    masked = [{**x, "causal": True} if x["name"] == "scores" else x for x in layers]
    with pytest.raises(
        ShapeError, match="net: layer context: causal False, and True of its scores"
    ):
        network(*masked).nodes()


def test_arguments_that_a_family_cannot_take():
    with pytest.raises(SpecError, match="1024 positions"):
        family_member("gpt2", {"tokens": 1025})
    with pytest.raises(SpecError, match="multiples of 224"):
        family_member("swin-t", {"image": 256})


# --- experts ----------------------------------------------------------------------------------

GENERATED = rows("generate_scan_spiking.csv")
MOE = rows("attention_recurrent_lora_moe.csv")
CHANCES = [0.9, 0.5, 0.3, 0.1, 0.1, 0.05, 0.03, 0.02]


def experts(E, k, L, D=256, F=688, **more):
    """Gate, up and down of E experts, behind a router."""
    return network(
        {"name": "x", "kind": "source", "shape": [D, L, 1], "learned": True},
        {"name": "router", "kind": "linear", "features": E, "over": "channels"},
        {"name": "sent", "kind": "dispatch", "inputs": ["x", "router"], "active": k, **more},
        {"name": "gate", "kind": "linear", "features": F, "over": "channels", "experts": E},
        {"name": "up", "kind": "linear", "features": F, "over": "channels", "experts": E,
         "inputs": ["sent"]},
        {"name": "product", "kind": "multiply", "inputs": ["gate", "up"]},
        {"name": "down", "kind": "linear", "features": D, "over": "channels", "experts": E},
        {"name": "out", "kind": "combine", "inputs": ["down", "router"], "active": k},
    )  # fmt: skip


def of_experts(found, batch=1):
    """Nests of the layers of experts."""
    return [
        node.layer.loops(node.input_shapes, batch)
        for node in found.nodes()
        if getattr(node.layer, "experts", None)
    ]


DISTINCT = [row for row in (*MOE, *GENERATED) if row["item"] == "moe distinct"]


@pytest.mark.parametrize("row", DISTINCT, ids=lambda row: row["case"])
def test_experts_that_a_batch_is_expected_to_meet(row):
    if row["case"].startswith("p ="):
        found = experts(8, 2, 16, probabilities=CHANCES)
    else:
        n = dict(word.split("=") for word in row["case"].split())
        found = experts(int(n["E"]), int(n["k"]), int(n["tokens"]))
    for nests in of_experts(found):
        assert nests["forward"].times[1].value == pytest.approx(float(row["expected"]), rel=1e-12)


@pytest.mark.parametrize(("E", "k", "T"), [(8, 2, 7), (64, 6, 100), (1000, 1, 3), (8, 8, 5)])
def test_experts_that_are_alike_are_met_as_the_sum_over_them_says(E, k, T):
    exact = E - E * (1 - Fraction(k, E)) ** T
    (nests, *_) = of_experts(experts(E, k, T))
    assert nests["forward"].times[1].value == pytest.approx(float(exact), rel=1e-12)


def test_experts_without_number_are_no_list():
    """Two tokens meet two of 2^31 experts, but for one in 2^31 of a chance to meet the same."""
    (nests, *_) = of_experts(experts(2**31, 1, 2))
    assert nests["forward"].times[1].value == pytest.approx(2 - 2**-31, rel=1e-12)


TRAFFIC = [row for row in GENERATED if row["item"] == "moe traffic"]


@pytest.mark.parametrize("row", TRAFFIC, ids=lambda row: f"{row['case']}-{row['quantity']}")
def test_mixtral_reads_the_weights_of_experts_that_it_meets(row):
    whole = load_network("mixtral-8x7b")
    if row["quantity"].startswith("active"):
        idle = sum(n.weights for n in whole.nodes() if n.layer.role == "experts") * 6 // 8
        assert parameters(whole) - idle == int(row["expected"])
        return
    batch = int(row["case"].rpartition(" ")[2])
    role = "router" if "router" in row["quantity"] else "experts"
    step = [n for n in generating(whole, 1, 7).nodes() if n.layer.role == role]
    if "read" in row["quantity"]:
        found = sum(
            nest.times[1].value * nest.extent.M * nest.extent.C
            for nest in (n.layer.loops(n.input_shapes, batch)["forward"] for n in step)
        )
        assert found == pytest.approx(float(row["expected"]), rel=1e-12)
    else:
        assert batch * sum(node.macs for node in step) == int(row["expected"])


CAPACITY = [row for row in GENERATED if row["item"] == "moe capacity"]


@pytest.mark.parametrize("row", CAPACITY, ids=lambda row: f"{row['case']}-{row['quantity']}")
def test_slots_of_a_capacity_are_all_computed(row):
    n = dict(word.split("=") for word in row["case"].split())
    found = experts(int(n["E"]), int(n["k"]), int(n["tokens"]), capacity=float(n["factor"]))
    nests = [one["forward"] for one in of_experts(found)]
    if row["quantity"].startswith("slots"):
        assert {nest.extent.N for nest in nests} == {int(row["expected"])}
    else:
        assert sum(product(nest.macs) for nest in nests) == int(row["expected"])


def test_the_small_mixtral_that_was_run():
    (row,) = (row for row in rows("models.csv") if row["model"] == "mixtral-small")
    small = {
        "blocks": 2, "features": 256, "heads": 8, "kv_heads": 2, "hidden": 688, "vocabulary": 1000,
        "tokens": 64,
    }  # fmt: skip
    found = family_member("mixtral-8x7b", small)
    assert (macs(found), parameters(found)) == (
        int(row["macs_torch"]),
        int(row["parameters_torch"]),
    )


def entries(found, mode="training"):
    report = evaluate(found, "horowitz45", "fp", accounting="full", batch=2, mode=mode)
    return {entry.name[1:]: entry.count for entry in report.ledger.entries if entry.layer == "gate"}


def test_one_expert_that_all_tokens_go_to_is_a_linear_layer():
    one = experts(1, 1, 4, D=8, F=6)
    layers = [x.model_dump(exclude_defaults=True) | {"kind": x.kind} for x in one.layers]
    dense = network(*({k: v for k, v in x.items() if k != "experts"} for x in layers))
    assert entries(one) == entries(dense)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"k": 3, "E": 2}, "layer sent: 3 active of 2 experts"),
        ({"capacity": 0}, "capacity 0"),
        ({"probabilities": [0.5, 0.4]}, "probabilities sum to 0.9, not to active 1"),
        ({"probabilities": [1.5, 0.5]}, "probabilities"),
        ({"probabilities": [0.5, 0.25, 0.25]}, "3 probabilities of 2 experts"),
        ({"probabilities": []}, "probabilities"),
        ({"distinct": 3}, "distinct 3 is not from 1 active to 2 experts"),
    ],
)  # fmt: skip
def test_experts_that_cannot_be(fields, words):
    with pytest.raises((ShapeError, SpecError), match=words):
        experts(**({"E": 2, "k": 1, "L": 4} | fields)).nodes()


def test_more_experts_than_tokens_go_to_are_not_met():
    with pytest.raises(ShapeError, match="distinct 5 of 2 tokens, each to 2 experts: they meet 4"):
        of_experts(experts(8, 2, 2, distinct=5))
    assert of_experts(experts(8, 2, 2, distinct=4))


def test_a_context_of_another_mask_is_told_by_its_line(tmp_path):
    both = "heads: 2, causal: true, inputs"
    path = tmp_path / "n.yaml"
    path.write_text(
        "version: 1\nname: n\ntitle: t\ninput: [8, 4, 1]\nlayers:\n  - {name: a, kind: activation}\n"
        f"  - {{name: s, kind: attention-scores, window: 2, {both}: [a, a]}}\n"
        f"  - {{name: c, kind: attention-context, window: 3, {both}: [s, a]}}\n",
        encoding="utf-8",
    )
    with pytest.raises(ShapeError) as told:
        load_network(path).nodes()
    assert str(told.value) == f"{path}:8: layer c: window 3, and 2 of its scores s"


@pytest.mark.parametrize("E", [2, 8])
def test_layers_of_experts_have_as_many_as_the_router_scores(E):
    layers = [
        {"name": "x", "kind": "source", "shape": [16, 8, 1], "learned": True},
        {"name": "router", "kind": "linear", "features": 4, "over": "channels"},
        {"name": "sent", "kind": "dispatch", "inputs": ["x", "router"], "active": 2},
        {"name": "up", "kind": "linear", "features": 8, "over": "channels", "experts": 4},
        {"name": "down", "kind": "linear", "features": 16, "over": "channels", "experts": E},
    ]
    said = f"layer down: {E} experts, but sent chooses among 4, the channels of router"
    with pytest.raises(ShapeError, match=said):
        network(*layers).nodes()


def test_experts_need_a_dispatch_before_them():
    layer = {"name": "x", "kind": "linear", "features": 4, "over": "channels", "experts": 2}
    with pytest.raises(ShapeError, match="layer x: experts, but no dispatch before it"):
        network(layer).nodes()


# --- state-space layers -----------------------------------------------------------------------


@cache
def mamba(tokens, blocks=24, **more):
    return family_member("mamba-130m", {"tokens": tokens, "blocks": blocks, **more})


def by_output(found):
    """Multiply-accumulates of y = C h, D N a token and layer, which a framework's counter sees."""
    scans = (n for n in found.nodes() if n.layer.kind == "scan")
    return sum(prod(n.output_shape) * n.layer.states for n in scans)


MAMBA = [row for row in rows("models.csv") if row["model"].startswith("mamba")]


@pytest.mark.parametrize("row", MAMBA, ids=lambda row: row["model"])
def test_mamba_has_the_products_of_its_layers(row):
    """Beside the scan; a padding on both sides makes a framework compute 18,432 more."""
    one_layer = "layer" in row["model"]
    found = mamba(64, 1) if one_layer else mamba(1)
    thrown_away = 18_432 if one_layer else 0
    assert macs(found) + by_output(found) + thrown_away == int(row["macs_hand"])
    assert parameters(found) == int(row["parameters_hand"])


MAMBA_TYPES = [row for row in rows("models_by_type.csv") if row["model"].startswith("mamba")]


@pytest.mark.parametrize("row", MAMBA_TYPES, ids=lambda row: f"{row['quantity']}-{row['type']}")
def test_mamba_has_them_by_type(row):
    found, wanted = mamba(1), {"A, D": {"scan"}, "norms": {"norm"}}.get(row["type"], {row["type"]})
    if row["type"].startswith("scan"):
        assert by_output(found) == int(row["value"])
        return
    nodes = [n for n in found.nodes() if n.layer.name.rpartition(".")[2] in wanted]
    count = {"MACs": lambda n: n.macs, "parameters": lambda n: n.weights + n.other_parameters}
    assert sum(map(count[row["quantity"]], nodes)) == int(row["value"])


SCANS = [row for row in GENERATED if row["item"] == "mamba scan"]


@pytest.mark.parametrize("row", SCANS, ids=lambda row: f"{row['case']}-{row['quantity']}")
def test_a_scan_does_what_was_counted_by_hand(row):
    tokens = 1024 if "1,024" in row["case"] else 1
    job = Job(load(Method, "fp"), load(Accounting, "full"), 1, "training")
    besides = "besides if not fused" in row["quantity"]
    tasks = all_tasks(mamba(tokens, 1, scan="materialised" if besides else "fused"), job)
    works = [task.work for task in tasks if task.layer == "layers.0.scan"]
    back = "backward" in row["quantity"]
    found = 0
    for work in works:
        if isinstance(work, Operate):
            said = work.why.startswith(("dt A", "states again", "exp(dt A)"))
            kind = {"special": "exponentials", "mac": "multiply-adds"}.get(work.kind, "-")
            if said and kind in row["quantity"] and back == (work.pass_ != "forward"):
                found += work.times * work.each.elements
        elif isinstance(work, Move) and work.pass_ == "forward" and besides:
            found += work.tensor.elements if work.tensor.role == "states" else 0
        elif isinstance(work, Move) and work.pass_ == "forward":
            maps = work.tensor.name in "IO" and work.tensor.role == "operand"
            if maps and f"elements {work.direction}" in row["quantity"].replace("written", "write"):
                found += work.tensor.elements
    assert found == int(row["expected"])


def test_states_that_leave_the_chip_on_the_way_back_too():
    """Of 3 tokens, 8 features and 16 states: three tensors written and read, again, and signals."""
    given = {"blocks": 1, "features": 4, "vocabulary": 8, "tokens": 3, "scan": "materialised"}
    report = evaluate(family_member("mamba-130m", given), "ascend", "fp", accounting="full")
    own = [e for e in report.ledger.entries if e.role == "states" and e.key.name == "L3"]
    found = Counter((str(e.pass_), e.tensor, str(e.direction)) for e in own)
    assert {e.elements for e in own} == {3 * 8 * 16}
    assert sum(way == "read" for _, _, way in found) == 9
    ways = ("backward_input", "O"), ("backward_input", "dO"), ("forward", "O")
    assert {(pass_, tensor) for pass_, tensor, _ in found} == {
        (pass_, f"{name}{index}") for pass_, name in ways for index in (1, 2, 3)
    }


def test_what_a_scan_is_given_must_fit():
    four = [{"name": n, "kind": "source", "shape": [c, 3, 1]} for n, c in (("u", 4), ("B", 2))]
    scan = {"name": "scan", "kind": "scan", "states": 3, "inputs": ["u", "u", "B", "B", "u"]}
    with pytest.raises(ShapeError, match=r"layer scan: u, dt, B, C and z are .* \(3, L, 1\)"):
        network(*four, scan).nodes()


# --- masks that a kernel skips ----------------------------------------------------------------


def counts(masked, **more):
    """Elements by layer, pass, tensor and direction of the outermost memory; and operations."""
    rules = replaced(load(Accounting, "full"), "counting.masked_scores", masked)
    report = evaluate(
        attention(4, 2, L=16, S=16, d=8, causal=True, **more), "horowitz45", "fp",
        accounting=rules, batch=2,
    )  # fmt: skip
    outermost = report.hardware.levels[0].buffers[0].name
    found = {}
    for one in report.ledger.entries:
        if one.memory in (outermost, ""):
            key = (one.layer, one.pass_, one.tensor, one.operation or one.direction)
            found[key] = found.get(key, 0) + one.elements
    return found


@pytest.mark.parametrize(("window", "met"), [(None, 136), (4, 58)])
def test_skipped_masks_leave_the_pairs_that_are_met(window, met):
    """16 tokens: 16 x 17 / 2 = 136 of 256 pairs; within a window of 4, 4 x 16 - 1 - 2 - 3 = 58."""
    whole, less = counts("computed", window=window), counts("skipped", window=window)
    assert whole.keys() == less.keys()
    for (layer, phase, tensor, what), number in whole.items():
        place = {"scores": {"O", "dO"}, "context": {"I", "dI"}}.get(layer, set())
        scores = layer == "softmax" or (place and (tensor in place or what == "mac"))
        share = met / 256 if scores else 1
        assert less[(layer, phase, tensor, what)] == pytest.approx(number * share, abs=1), (
            layer, phase, tensor, what,
        )  # fmt: skip


def test_without_a_mask_nothing_is_skipped():
    rules = replaced(load(Accounting, "full"), "counting.masked_scores", "skipped")
    energies = {
        evaluate(attention(2, L=8, S=8, d=4), "horowitz45", "fp", accounting=one).energy
        for one in (rules, "full")
    }
    assert len(energies) == 1


# --- adapters ---------------------------------------------------------------------------------


def lora(*, before):
    """A block of Llama 3.1 8B, frozen but for adapters of rank 16 on queries and values."""

    def linear(name, features, given, learned=False):
        return {"name": name, "kind": "linear", "features": features, "over": "channels",
                "inputs": [given], "learned": learned}  # fmt: skip

    def adapted(name, features):
        return (
            linear(f"{name}0", features, "norm1"),
            linear(f"{name}A", 16, "norm1", True),
            linear(f"{name}B", features, f"{name}A", True),
            {"name": name, "kind": "add", "inputs": [f"{name}0", f"{name}B"]},
        )

    both = {"heads": 32, "kv_heads": 8, "causal": True}
    return network(
        {"name": "x", "kind": "source", "shape": [4096, 128, 1], "learned": before},
        {"name": "norm1", "kind": "rms-norm", "learned": False},
        *adapted("q", 4096), linear("k", 1024, "norm1"), *adapted("v", 1024),
        {"name": "qr", "kind": "rotary", "heads": 32, "inputs": ["q"]},
        {"name": "kr", "kind": "rotary", "heads": 8, "inputs": ["k"]},
        {"name": "scores", "kind": "attention-scores", "inputs": ["qr", "kr"], **both},
        {"name": "softmax", "kind": "activation", "function": "softmax"},
        {"name": "context", "kind": "attention-context", "inputs": ["softmax", "v"], **both},
        linear("o", 4096, "context"),
        {"name": "sum1", "kind": "add", "inputs": ["o", "x"]},
        {"name": "norm2", "kind": "rms-norm", "learned": False},
        linear("gate", 14336, "norm2"), linear("up", 14336, "norm2"),
        {"name": "swish", "kind": "activation", "function": "swish", "inputs": ["gate"]},
        {"name": "gated", "kind": "multiply", "inputs": ["swish", "up"]},
        linear("down", 4096, "gated"),
        {"name": "sum2", "kind": "add", "inputs": ["down", "sum1"]},
    )  # fmt: skip


LORA = [row for row in MOE if row["item"] == "lora"]


@pytest.mark.parametrize("row", LORA, ids=lambda row: f"{row['case'][50:]}-{row['quantity']}")
def test_adapters_train_what_autograd_multiplies(row):
    found = lora(before="something before" in row["case"])
    if row["quantity"].startswith("parameters"):
        counted = sum(n.learned_weights + n.learned_parameters for n in found.nodes())
    else:
        counted = macs(found, row["quantity"].removesuffix(" MACs"))
    assert counted == int(row["expected"])


def test_every_row_by_type_is_counted():
    counted = {row["model"] for row in (*TYPES, *MAMBA_TYPES)}
    assert counted == {row["model"] for row in rows("models_by_type.csv")}


def test_the_head_of_a_step_is_read_once_for_eight_sequences():
    """4,096 x 128,256 weights of 16 bit at 3.92 pJ: 32.9491 mJ of HBM."""
    head = {"name": "head", "kind": "linear", "features": 128256, "over": "channels"}
    net = network(head, given=(4096, 1, 1))
    rules = replaced(load(Accounting, "full"), "counting.transfers", "upper")
    found = evaluate(net, "tpuv4i", "fp16", accounting=rules, batch=8, mode="inference")
    (read,) = (e for e in found.ledger.entries if (e.tensor, e.memory) == ("F", "HBM"))
    assert read.elements == 525_336_576
    assert read.count * found.prices.value(read.key) / 1e9 == pytest.approx(32.9491, abs=5e-5)


@pytest.mark.parametrize("L", [1, 5, 64])
def test_pairs_before_a_mask_and_behind_it_are_all(L):
    layer = attention(1, L=L, S=L, causal=True).nodes()[3]
    behind = sum(j > i for i in range(L) for j in range(L))
    assert layer.layer.pairs(layer.input_shapes) + behind == L * L
