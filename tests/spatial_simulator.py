"""The judge of counts on memories side by side: every instance by itself, what it wants as a set.

All instances of a level go on together, step by step. At a step each that has a piece for it asks
for what the piece needs; what it asks for goes up through the levels that do not hold it, and where
instances are merged, equal requests become one. Slow and plain: nothing of `hwmodel` is imported.

A chip is read by attribute: `levels` with `held_here` (operands), `multicast` and `reduction`; a
mapping: `unions`, `tiles`, `held`, `cycle`.
"""

from collections import Counter
from functools import partial
from itertools import product

from tests.simulator import DIMENSIONS, met, needed

LOOPS = ("N", "M", "C", "HO", "WO", "HF", "WF")
REDUCTION = ("C", "HF", "WF")


class Simulation:
    """Counts of one nest: `counts[level, operand, what]`, and `cycles` and `moments`."""

    def __init__(self, problem, unions, tiles, held, holds, multicast, reduction, array, rule):
        """`array`: None or (tile of a cycle, operand that rests in the MACs)."""
        self.problem, self.rule, self.array = problem, rule, array
        self.unions, self.tiles, self.held, self.holds = unions, tiles, held, holds
        self.merges = {"I": multicast, "F": multicast, "O": reduction}
        self.counts = Counter()
        self.resting = {}  # sums in the memory of an instance
        self.outputs = {level: set() for level in range(len(holds))}  # written at a level
        self.cycles = self.moments = 0
        whole = {d: (0, n) for d, n in problem.extent._asdict().items()}
        self.visit(1, {(): whole})
        for level, found in self.outputs.items():
            if "O" in holds[level]:
                self.counts[level, "O", "finished"] = len(found)
        for key in self.counts:
            self.counts[key] *= problem.groups
        self.cycles *= problem.groups
        self.moments *= problem.groups

    def visit(self, level, boxes):
        """All instances of the level above work through their boxes."""
        if level > len(self.tiles):
            (self.broadcast if self.array is None else self.compute)(level, boxes)
            return
        union, tile, held = self.unions[level - 1], self.tiles[level - 1], self.held[level - 1]
        inner = [d for d in LOOPS if held == "none" or d not in DIMENSIONS[held]]
        outer = [d for d in LOOPS if d not in inner]
        for key in self.keys(boxes, union, outer):
            brought = {}  # instances that the held operand has reached at this key
            for step in self.keys(boxes, union, inner):
                children = self.children(boxes, union, tile, key | step)
                self.load(level, children, brought)
                brought = children | brought
                self.visit(level + 1, children)
                if held != "O":
                    self.drain(level, children)
            if held == "O":
                self.drain(level, brought)

    def children(self, boxes, union, tile, key):
        """The instances that have a piece at a step, under all those above."""
        found = {}
        for place, box in boxes.items():
            piece = cut(box, union, key)
            if piece:
                found |= {(*place, at): part for at, part in side_by_side(piece, tile).items()}
        return found

    def load(self, level, boxes, brought):
        for x in "IF":
            if x in self.holds[level]:
                held = x == self.held[level - 1]
                new = {i: b for i, b in boxes.items() if not held or i not in brought}
                self.ask(level, x, {i: self.elements(x, b) for i, b in new.items()})

    def keys(self, boxes, tile, loops):
        """The steps of some loops that any instance has."""
        most = {}
        for d in loops:
            lengths = [box[d][1] - box[d][0] for box in boxes.values()]
            most[d] = -(-max(lengths) // getattr(tile, d))
        for at in product(*(range(n) for n in most.values())):
            yield dict(zip(most, at, strict=True))

    def drain(self, level, boxes):
        if "O" in self.holds[level]:
            sums = {i: self.elements("O", box) for i, box in boxes.items()}
            self.counts[level, "O", "drained"] += sum(map(len, sums.values()))
            self.add(level, sums)
            for i in boxes:
                self.resting.pop((level, i), None)

    def ask(self, level, x, wanted):
        """Instances of a level want elements at one moment."""
        at, asked = self.upwards(level, x, wanted)
        self.counts[at, x, "read"] += sum(map(len, asked.values()))

    def add(self, level, wanted):
        """Sums of instances of a level go up at one moment, and are added where they arrive."""
        at, arriving = self.upwards(level, "O", wanted)
        for i, found in arriving.items():
            there = self.resting.setdefault((at, i), set())
            for output, _ in sorted(found):
                self.counts[at, "O", "fetched"] += output in there
                self.counts[at, "O", "written"] += 1
                there.add(output)
                self.outputs[at].add(output)

    def upwards(self, level, x, wanted):
        """Where requests arrive, and what is left of them there, by instance."""
        asked = {i: {(e, ()) for e in elements} for i, elements in wanted.items()}
        while True:
            if level <= len(self.tiles):
                self.counts[level, x, "hop"] += sum(map(len, asked.values()))
            level -= 1
            if level < len(self.tiles):  # not between an array and its own memory
                above = {}
                for i, found in asked.items():
                    if not self.merges[x][level + 1]:
                        found = {(e, (*apart, i[-1])) for e, apart in found}
                    above.setdefault(i[:-1], set()).update(found)
                asked = above
            if x in self.holds[level]:
                return level, asked

    def compute(self, level, boxes):
        """The MACs under every innermost memory; a cycle without a product is not made."""
        tile, rests = self.array
        wanted = {"I": {}, "F": {}, "O": {}}  # by when: for an operand that rests, once a visit
        for key in self.keys(boxes, tile, LOOPS):
            pieces = {place: cut(box, tile, key) for place, box in boxes.items()}
            made = {place: piece for place, piece in pieces.items() if self.works(piece)}
            self.cycles += len(made)
            self.moments += bool(made)
            for x, found in wanted.items():
                when = tuple(key[d] for d in LOOPS if rests != x or d in DIMENSIONS[x])
                together = found.setdefault(when, {})
                for place, piece in made.items():
                    together.setdefault(place, set()).update(self.elements(x, piece))
        for x, found in wanted.items():
            for each in found.values():
                (self.add if x == "O" else partial(self.ask, x=x))(level, wanted=each)

    def broadcast(self, level, boxes):
        """No array: each element of I that is multiplied once for all filters, F and O once."""
        for x in "FO":
            wanted = {i: self.elements(x, box) for i, box in boxes.items()}
            (self.add if x == "O" else partial(self.ask, x=x))(level, wanted=wanted)
        single = self.problem.extent._replace(**dict.fromkeys(LOOPS, 1))
        loops = [d for d in LOOPS if d != "M"]
        for key in self.keys(boxes, single, loops):
            wanted = {}
            for place, box in boxes.items():
                piece = cut(box, single, key)
                if piece:
                    wanted[place] = self.elements("I", piece)
            self.ask(level, "I", wanted)

    def works(self, box):
        return (
            box
            and met(self.problem.height, self.rule, box["HO"], box["HF"])
            and met(self.problem.width, self.rule, box["WO"], box["WF"])
        )

    def elements(self, x, box):
        if x != "I":
            return set(product(*(range(*box[d]) for d in DIMENSIONS[x])))
        rows = needed(self.problem.height, self.rule, box["HO"], box["HF"])
        columns = needed(self.problem.width, self.rule, box["WO"], box["WF"])
        return set(product(range(*box["N"]), range(*box["C"]), rows, columns))


def cut(box, tile, key):
    """The piece of a box at a key, whose loops alone are cut; None where there is none."""
    piece = dict(box)
    for d, at in key.items():
        start = box[d][0] + at * getattr(tile, d)
        if start >= box[d][1]:
            return None
        piece[d] = (start, min(start + getattr(tile, d), box[d][1]))
    return piece


def side_by_side(box, tile):
    """The parts of a box that instances hold together, by their place."""
    parts = {}
    cuts = [range(*box[d], getattr(tile, d)) for d in LOOPS]
    for starts in product(*cuts):
        part = {
            d: (a, min(a + getattr(tile, d), box[d][1])) for d, a in zip(LOOPS, starts, strict=True)
        }
        at = tuple((a - box[d][0]) // getattr(tile, d) for d, a in zip(LOOPS, starts, strict=True))
        parts[at] = part
    return parts
