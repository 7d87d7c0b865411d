"""What stays on the chip between operators without weights: against every choice of stays.

Networks of activations, pools, sums and upsampled maps are drawn. Every word that they read or
write passes every memory, and pays there; what stays at a level is paid there and further in. A
stay that begins as an operator reads, once or twice, is read outside once, and under `transfers:
both` written once on its way to where it stays, as docs/model.md section 11 has it. The truth is every choice of stays, with
prices and room counted here.
"""

import random
from itertools import pairwise, product

import pytest

from hwmodel.model.evaluate import evaluate
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.vary.paths import replaced_all
from tests.conftest import THOROUGH

PRICES = {"DRAM": (100, 130), "L2": (20, 25), "L1": (7, 9), "L0": (1, 1)}  # read, written, a word
MEMORIES = [*PRICES]
STREAMED = {"extras.elementwise": "streamed"}
CHIP = """\
version: 1
name: drawn
title: drawn
energy_unit: pJ
sources: {m: made up}
levels:
  - {level: 3, name: DRAM, capacity: unlimited, read_energy: 100 pJ/32bit, write_energy: 130 pJ/32bit, source: m}
  - {level: 2, name: L2, capacity: L2_WORDS, read_energy: 20 pJ/32bit, write_energy: 25 pJ/32bit, source: m}
  - {level: 1, name: L1, capacity: L1_WORDS, read_energy: 7 pJ/32bit, write_energy: 9 pJ/32bit, source: m}
  - {level: 0, name: L0, capacity: 64 B, access_energy: 1 pJ/32bit, source: m}
arithmetic: [{operation: mac, bits: 32, energy: 5 pJ, operations: 2, source: m}]
"""


def drawn(seed):
    """A network as text, the words of each tensor, and what each layer takes, and how often."""
    draw = random.Random(seed)
    shapes, takes, lines = {"input": (draw.choice((2, 3, 4)), 8)}, {}, []
    for number in range(draw.randint(3, 5)):
        name, (source, *_) = f"n{number}", [draw.choice([*shapes][-2:])]
        channels, side = shapes[source]
        others = [x for x in shapes if shapes[x] == shapes[source] and x != source]
        kinds = ["activation", "softmax", "max-pool", "upsample"] + ["add"] * 3 * bool(others)
        kind, taken = draw.choice(kinds), [source]
        own = {
            "activation": "activation, function: relu",
            "softmax": "activation, function: softmax",
            "max-pool": "max-pool, kernel: 2",
            "upsample": "upsample, factor: 2",
        }
        if (kind == "max-pool" and side < 8) or (kind == "upsample" and side > 4):
            kind = "activation"
        if kind == "add":
            taken.append(draw.choice(others))
        shapes[name] = channels, {"max-pool": side // 2, "upsample": side * 2}.get(kind, side)
        takes[name] = [(one, 1 + (kind == "softmax")) for one in taken]  # sums, then values
        lines.append(
            f"  - {{name: {name}, kind: {own.get(kind, kind)}, inputs: [{', '.join(taken)}]}}"
        )
    first, side = shapes["input"]
    text = f"version: 1\nname: drawn\ntitle: drawn\ninput: [{first}, {side}, {side}]\nlayers:\n"
    words = {name: channels * side**2 for name, (channels, side) in shapes.items()}
    return text + "\n".join(lines) + "\n", words, takes


def passed(words, writes, memories):
    """What so many words cost in some memories."""
    return words * sum(PRICES[memory][writes] for memory in memories)


def stays_of(name, words, uses, is_kept, both, room):
    """Every way in which a tensor stays: energy of all its moves, and (memory, from, to) of stays."""
    yield sum(times * passed(words, writes, MEMORIES) for _, writes, times in uses), []
    homes = [memory for memory, holds in room.items() if words <= holds]
    for home in homes if is_kept and len(uses) > 1 else ():
        inside = MEMORIES[MEMORIES.index(home) :]
        yield (sum(times * passed(words, writes, inside) for _, writes, times in uses),
               [(home, uses[0][0], uses[-1][0])])  # fmt: skip
    for chosen in product((None, *homes), repeat=len(uses) - 1):
        if not any(chosen) or any(a and b and a != b for a, b in pairwise(chosen)):
            continue
        energy, kept = 0, []
        for number, (step, writes, times) in enumerate(uses):
            before, after = (None, *chosen)[number], (*chosen, None)[number]
            home = before or after
            inside = MEMORIES[MEMORIES.index(home) :] if home else MEMORIES
            outside = MEMORIES[: len(MEMORIES) - len(inside)]
            energy += times * passed(words, writes, inside)
            energy += passed(words, writes, outside) if not before else 0
            if after and not before and both and not writes:
                energy += passed(words, 1, [*outside[1:], home])
            if after:
                kept.append((after, step, uses[number + 1][0]))
        yield energy, kept


def least(words, takes, both, room):
    """The energy of memories under the best choice of stays that have room."""
    uses = {name: [] for name in words}
    for step, (name, taken) in enumerate(takes.items()):
        for one, times in taken:
            uses[one].append((step, False, times))
        uses[name].append((step, True, 1))
    given = set(words) - {one for taken in takes.values() for one, _ in taken}
    every = [
        sorted(
            stays_of(
                name, words[name], uses[name], name != "input" and name not in given, both, room
            ),
            key=lambda way: way[0],
        )
        for name in words
        if uses[name]
    ]
    rest = [sum(ways[0][0] for ways in every[n:]) for n in range(len(every) + 1)]
    sizes = [words[name] for name in words if uses[name]]
    best = [sum(next(e for e, kept in ways if not kept) for ways in every)]

    def tried(number, energy, used):
        if number == len(every):
            best[0] = min(best[0], energy)
            return
        for own, kept in every[number]:
            if energy + own + rest[number + 1] >= best[0]:
                return
            there = {(home, at) for home, since, to in kept for at in range(since, to + 1)}
            now = used | {at: used.get(at, 0) + sizes[number] for at in there}
            if all(now[at] <= room[at[0]] for at in there):
                tried(number + 1, energy + own, now)

    tried(0, 0, {})
    return best[0]


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
@pytest.mark.parametrize("transfers", ["upper", "both"])
def test_no_choice_of_stays_is_better(transfers, tmp_path):
    accounting = replaced_all(
        load(Accounting, "chip"), STREAMED | {"counting.transfers": transfers}
    )
    begun, count = 0, 150 if THOROUGH else 12
    for seed in range(count):
        text, words, takes = drawn(seed)
        draw = random.Random(seed + 1000)
        holds = {"L1": draw.choice((200, 300, 400, 520, 640))}
        room = {"L2": holds["L1"] + draw.choice((100, 200, 400, 600)), **holds}
        chip = CHIP
        for memory, several in room.items():
            chip = chip.replace(f"{memory}_WORDS", f"{4 * several} B")
        (tmp_path / "net.yaml").write_text(text)
        (tmp_path / "chip.yaml").write_text(chip)
        report = evaluate(
            tmp_path / "net.yaml", tmp_path / "chip.yaml", "fp", accounting=accounting,
            mode="inference",
        )  # fmt: skip
        mine = least(words, takes, transfers == "both", room)
        assert report.residency.energy == pytest.approx(mine, rel=2.5e-4), seed
        assert report.residency.energy >= mine * (1 - 1e-12), seed
        assert report.residency.lower_bound <= mine * (1 + 1e-12), seed
        memories = sum(e for (m,), e in report.energies("memory").items() if m in PRICES)
        assert memories == pytest.approx(report.residency.energy, rel=1e-12), seed
        begun += any(item.name == "a:input" for item in report.residency.items)
    assert begun > count / 4
