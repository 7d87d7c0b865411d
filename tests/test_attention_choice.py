"""Attention in one kernel or as separate products: of each block the cheaper, against both forced."""

import random
import re

import pytest

from hwmodel import evaluate
from hwmodel.graph.network import family_member
from hwmodel.model.generate import generate
from hwmodel.model.plans import all_tasks
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.vary.counted import Counted
from hwmodel.vary.paths import replaced
from hwmodel.views.explain.explanation import explanation
from tests.test_residency import THOROUGH, small
from tests.test_transformers import attention, network

CHIP = load(Accounting, "chip")
SHARED = {"heads": 8, "kv_heads": 2, "L": 64, "S": 64, "d": 32}
LONG = {"heads": 2, "L": 128, "S": 128, "d": 64}
SHORT = {"heads": 4, "L": 16, "S": 16, "d": 64}
ROOMS = (("2 KiB", "1 KiB", "256 B"), ("8 KiB",), ("32 KiB",), ("256 KiB", "16 KiB"))


def energies(net, chip, mode, base=CHIP):
    """Of one kernel, separate products, and the cheaper of each block."""
    return [
        evaluate(net, chip, "fp", mode=mode, accounting=replaced(base, "counting.attention", way))
        for way in ("fused", "separate", "cheaper")
    ]


@pytest.mark.parametrize(
    ("sizes", "L2", "mode", "cheaper"),
    [
        (SHARED, "8 KiB", "inference", "fused"),
        (LONG, "8 KiB", "training", "separate"),
        (SHORT, "8 KiB", "inference", "separate"),
        (SHARED, "1 MiB", "training", "separate"),  # all of it fits: what is computed again costs
    ],
)
@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_the_cheaper_way_is_taken(sizes, L2, mode, cheaper):
    kernel, separate, chosen = energies(attention(**sizes), small(L2), mode)
    least = {"fused": kernel, "separate": separate}[cheaper]
    assert chosen.energy == pytest.approx(min(kernel.energy, separate.energy), rel=1e-12)
    assert chosen.energy == pytest.approx(least.energy, rel=1e-12)
    assert chosen.job.separate == ({"scores"} if cheaper == "separate" else set())
    names = {one.name for one in chosen.memory.tensors}
    assert names == {one.name for one in least.memory.tensors}


def test_without_residents_a_block_alone_costs_what_the_difference_is():
    """Neither the choice nor the sum knows anything of the other layers then."""
    base = replaced(CHIP, "counting.residency", "none")
    kernel, separate, chosen = energies(attention(**LONG), small("8 KiB"), "training", base)
    (one,) = chosen.ways
    assert one.kernel - one.separate == pytest.approx(kernel.energy - separate.energy, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_scores_that_have_no_room_stay_in_a_kernel():
    """A memory that holds the peak of one kernel, and not of all scores, whichever costs less."""
    base = replaced(CHIP, "counting.residency", "none")
    net, chip = attention(**LONG), small("8 KiB")
    kernel, separate, chosen = energies(net, chip, "training", base)
    assert chosen.energy == separate.energy < kernel.energy
    least, most = (report.memory.peak().size for report in (kernel, separate))
    assert least < most
    ends = replaced(chip, "levels.DRAM.capacity", f"{least} B")
    found = evaluate(net, ends, "fp", accounting=base)
    assert found.energy == kernel.energy and not found.job.separate
    assert "in one kernel, which is the only way" in explanation(found, "softmax")
    assert "as separate products has no room" in explanation(found, "softmax")


def transformer(draw):
    """Blocks of attention with their products before and behind, of sizes that are drawn."""
    L, first = draw.choice((8, 16, 64)), {"kind": "embedding", "vocabulary": 16}
    layers = [{"name": "x", "features": draw.choice((8, 32)), **first}]
    for b in range(draw.choice((1, 1, 2))):
        heads, d, before = draw.choice((1, 2)), draw.choice((8, 32)), layers[-1]["name"]
        own = {"over": "channels", "features": heads * d, "kind": "linear"}
        layers += [{"name": f"{x}{b}", "inputs": [before], **own} for x in "qkv"]
        layers += [
            {"name": f"scores{b}", "kind": "attention-scores", "heads": heads,
             "inputs": [f"q{b}", f"k{b}"], "causal": draw.choice((True, False))},
            {"name": f"softmax{b}", "kind": "activation", "function": "softmax"},
            {"name": f"context{b}", "kind": "attention-context", "heads": heads,
             "inputs": [f"softmax{b}", f"v{b}"]},
            {"name": f"out{b}", **own},
        ]  # fmt: skip
        layers[-2]["causal"] = layers[-4]["causal"]
    return network(*layers, given=(1, L, 1))


# A choice block by block, each alone, was dearer by 0.3 % with seed 0 and by 3.1 % with seed 8.
@pytest.mark.parametrize(
    "seed", [0, 1, 3, *(pytest.param(seed, marks=THOROUGH) for seed in (2, *range(4, 14)))]
)
@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_no_run_is_dearer_than_with_all_attention_alike(seed):
    """Where tensors stay, blocks share the room with all that is around them."""
    draw = random.Random(seed)
    net, chip = transformer(draw), small(*draw.choice(ROOMS))
    kernel, separate, chosen = energies(net, chip, draw.choice(("training", "inference")))
    assert chosen.energy <= min(kernel.energy, separate.energy) * (1 + 1e-12)


def two_blocks():
    """Scores for which one kernel is cheaper on a chip of 8 KiB, and others for which it is not."""
    layers = []
    for sizes, name in ((SHARED, "a"), (SHORT, "b")):
        for layer in attention(**sizes).layers:
            own = layer.model_dump(exclude_unset=True, by_alias=True)
            own["name"] = f"{name}.{layer.name}"
            if layer.kind.startswith("attention"):
                first, second = {"scores": ("q", "k"), "context": ("softmax", "v")}[layer.name]
                own["inputs"] = [f"{name}.{first}", f"{name}.{second}"]
            layers.append(own)
    return network(*layers)


@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_each_block_has_its_own():
    net, chip = two_blocks(), small("8 KiB")
    kernel, separate, chosen = energies(net, chip, "inference")
    assert chosen.job.separate == {"b.scores"}
    assert chosen.energy < min(kernel.energy, separate.energy)
    said = chosen.attention
    # what the block costs alone, with what stays
    assert re.fullmatch(r"attention: 1 of 2 blocks as separate products, which cost [0-9.]+ % less "
                        r"than in one kernel \(b.scores\)", said)  # fmt: skip
    assert not kernel.attention and not separate.attention
    for layer, way in (("a.softmax", "in one kernel"), ("b.softmax", "as separate products")):
        text = explanation(chosen, layer)
        assert f"## Attention of {layer[0]}.scores\n\nIt runs {way}, which costs less." in text
        assert "in one kernel" in text.partition("in which all attention is alike: ")[2]


@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_a_sweep_over_chips_has_the_energies_of_reports():
    """Chips of which each takes another way of the same network."""
    base = replaced(CHIP, "counting.residency", "none")
    net, chips = attention(**LONG), [small(L2) for L2 in ("2 KiB", "64 KiB")]
    job = Job(load(Method, "fp"), base, 1, "inference")
    found = Counted().costs("key", all_tasks(net, job), net, job, chips)
    reports = [evaluate(net, chip, "fp", accounting=base, mode="inference") for chip in chips]
    assert [r.job.separate for r in reports] == [{"scores"}, set()]
    for cost, report in zip(found, reports, strict=True):
        assert cost.energy == pytest.approx(report.energy, rel=1e-12)
        assert cost.peak_bytes == report.memory.peak().size


@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_prompt_and_steps_of_a_generation_each_take_theirs():
    tiny = {"blocks": 1, "features": 64, "heads": 2, "kv_heads": 1, "hidden": 64, "vocabulary": 64}
    net, found = family_member("llama-3.1-8b", tiny), {}
    base = replaced(CHIP, "counting.residency", "none")
    chip = small("2 KiB", "1 KiB", "256 B")
    for way in ("fused", "separate", "cheaper"):
        accounting = replaced(base, "counting.attention", way)
        done = generate(net, chip, "fp", prefill=8, decode=2, accounting=accounting)
        found[way] = [phase.energy for phase in done.phases]
    assert found["cheaper"] == [found["separate"][0], found["fused"][1]]
    assert all(map(float.__le__, found["cheaper"], found["fused"]))
    assert all(map(float.__le__, found["cheaper"], found["separate"]))


# By what a report does, prefill was 0.023 % dearer with seed 6, and a step 0.025 % with seed 0.
@pytest.mark.parametrize("seed", [0, 6])
@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_a_generation_chooses_by_its_own_cache(seed):
    """Where tensors stay: what is new leaves for a cache, or is copied to a narrower one."""
    draw, found = random.Random(seed), {}
    sizes = {"blocks": draw.choice((1, 2)), "features": draw.choice((32, 64)), "heads": 2,
             "kv_heads": draw.choice((1, 2)), "hidden": 64, "vocabulary": 64}  # fmt: skip
    net, chip = family_member("llama-3.1-8b", sizes), small(*draw.choice(ROOMS))
    asked = {"prefill": draw.choice((4, 8, 16, 32)), "decode": 1}
    asked |= {"cache_bits": 8} if draw.choice((None, 8)) else {}
    for way in ("fused", "separate", "cheaper"):
        accounting = replaced(CHIP, "counting.attention", way)
        done = generate(net, chip, "fp", accounting=accounting, **asked)
        found[way] = [phase.energy for phase in done.phases]
    for kernel, separate, chosen in zip(*found.values(), strict=True):
        assert chosen <= min(kernel, separate) * (1 + 1e-12)


TINY = {"heads": 2, "L": 8, "S": 8, "d": 8}


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
@pytest.mark.parametrize("chip", ["ascend-cube", "eyeriss-isca"])
@pytest.mark.parametrize("mode", ["inference", "training"])
def test_attention_on_arrays_is_no_dearer_than_either_way(chip, mode):
    """Operands of a kernel that do not move take no room and leave the lanes as they are."""
    found = energies(attention(**TINY), chip, mode)
    assert found[2].energy <= min(one.energy for one in found[:2]) * (1 + 1e-9)
    for report in found:
        assert report.gap is None or report.energy * (1 - report.gap) > 0
        works = [task.work for task, _ in report.tilings]
        assert all(work.I.bits + 1e-9 >= work.problem.lane.I for work in works)
