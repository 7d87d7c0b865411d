"""A limited run against plain Python: fractions and single words, bit for bit at every width.

The oracle takes from the run only what is real there: the truth values that enter the Boolean
layers and the signal that comes back to them. All between is computed anew, weight by weight.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import hwmodel.trainer.train as loop
from hwmodel.graph.network import NetworkFile
from hwmodel.specs.files import load
from hwmodel.specs.limits import Limits
from hwmodel.specs.method import Method
from hwmodel.specs.training import Recipe, Training
from hwmodel.trainer.data import Dataset
from hwmodel.trainer.optim import scheduled
from hwmodel.trainer.train import Settings, train

LAYERS = """
{"version": 1, "name": "narrow", "title": "t", "input": [3, 1, 1], "layers": [
 {"name": "fc1", "kind": "linear", "features": 6, "bias": true},
 {"name": "act1", "kind": "activation"},
 {"name": "fc2", "kind": "linear", "features": 5},
 {"name": "act2", "kind": "activation"},
 {"name": "fc3", "kind": "linear", "features": 7},
 {"name": "act3", "kind": "activation"},
 {"name": "fc4", "kind": "linear", "features": 10, "bias": true}]}
"""
EPOCHS, BATCH, IMAGES, RATE = 3, 8, 16, 30.0
word = np.float32


def whole(z, rounding, draw=None):
    """A number of steps, exact or a single word, as a whole one."""
    if rounding == "stochastic":
        return math.floor(word(z) + word(draw))
    return {"nearest": round, "truncate": int, "floor": math.floor}[rounding](z)


class Grid:
    """One limited tensor: its scale from step to step, its draws, its values as fractions."""

    def __init__(self, bits, rounding, scale, seed):
        self.bits, self.rounding, self.scale, self.seed = bits, rounding, scale, seed
        self.steps, self.before = 0, None

    def own(self, z):
        sizes = [abs(float(v)) for row in z for v in row if v]
        if not sizes:
            return None
        if self.bits == 1:
            return round(math.log2(math.fsum(sizes) / len(sizes)))
        return math.floor(math.log2(max(sizes))) + 1

    def __call__(self, z):
        own = self.own(z)
        e = own if self.scale == "step" or self.before is None else self.before
        if self.scale == "static" and None not in (own, self.before):
            e = max(own, self.before)  # of the first hundred steps; here are fewer
            self.before = e
        elif own is not None:
            self.before = own
        draws = None
        if self.rounding == "stochastic" and self.bits > 1:
            shape = len(z), len(z[0])
            draws = np.random.default_rng((*self.seed, self.steps)).random(shape, np.float32)
        self.steps += 1
        if e is None:
            return z
        if self.bits == 1:
            return [[Fraction(2) ** e * ((v > 0) - (v < 0)) for v in row] for row in z]
        step, L = Fraction(2) ** (e - self.bits + 1), 2 ** (self.bits - 1) - 1
        low = -L - (self.rounding == "floor")

        def held(v, at):
            k = whole(v / step, self.rounding, None if draws is None else draws[at])
            return min(L, max(low, k)) * step

        return [[held(v, (i, j)) for j, v in enumerate(row)] for i, row in enumerate(z)]


class Layer:
    """A Boolean layer of n neurons: signs, single words of memory, beta."""

    def __init__(self, signs, memory, place, seed, make):
        self.w, self.bits, self.rounding = signs, *memory
        self.m = [[word(0)] * len(signs[0]) for _ in signs]
        self.beta, self.place, self.seed = 1.0, place, seed
        self.received, self.sent, self.vote = (make((seed, place, i)) for i in range(3))
        self.scale = word(math.sqrt(2 / len(signs)))

    def forward(self, x):
        return [[sum(a * b for a, b in zip(row, w, strict=True)) for w in self.w] for row in x]

    def backward(self, z, x):
        z = self.received(z)
        votes = [
            [sum(z[k][j] * x[k][i] for k in range(len(x))) for i in range(len(x[0]))]
            for j in range(len(self.w))
        ]
        sent = [
            [sum(v * w[i] for v, w in zip(row, self.w, strict=True)) for i in range(len(x[0]))]
            for row in z
        ]
        scaled = [[Fraction(float(word(self.scale * word(float(v))))) for v in row] for row in sent]
        return votes, self.sent(scaled)

    def update(self, votes, rate, step):
        votes, flips = self.vote(votes), 0
        total = len(self.w) * len(self.w[0])
        draws = None
        if self.rounding == "stochastic":
            shape = len(self.w), len(self.w[0])
            draws = np.random.default_rng((self.seed, self.place, step, 3)).random(shape)
        half = 2 ** (self.bits - 1)
        for j, row in enumerate(self.w):
            for i, w in enumerate(row):
                t = word(self.m[j][i] * word(self.beta)) + word(rate) * word(float(votes[j][i]))
                if t * w >= 1:
                    row[i], t, flips = -w, word(0), flips + 1
                k = Fraction(float(t)) * half
                k = whole(k, self.rounding) if draws is None else math.floor(float(k) + draws[j, i])
                self.m[j][i] = word(min(half - 1, max(-half, k)) / half)
        self.beta = (total - flips) / total
        return votes


def signs_of(truth):
    return np.where(truth, 1, -1).astype(int).tolist()


CASES = [(b, r) for b in range(1, 17) for r in ("nearest", "stochastic", "truncate", "floor")]


@pytest.mark.parametrize(
    ("bits", "rounding"), [(b, r) for b, r in CASES if b > 1 or r in ("nearest", "stochastic")]
)
def test_a_limited_run_is_that_of_plain_python_bit_for_bit(monkeypatch, bits, rounding):
    scale = ("delayed", "step", "static")[bits % 3]
    tensor = {"bits": bits, "rounding": rounding, "scale": scale}
    memory = {"bits": 2 * bits, "rounding": rounding}
    widths = Limits.model_validate({"signal": tensor, "vote": tensor, "accumulator": memory})
    method = load(Method, "bold").model_copy(update={"name": "mine", "widths": widths})
    network = NetworkFile.model_validate_json(LAYERS).network()
    training = Training(
        version=1, name="short", title="t", epochs=EPOCHS, images=IMAGES, batch=BATCH,
        recipe=Recipe(boolean_rate=RATE, reweighting=False),
    )  # fmt: skip
    rng = np.random.default_rng(bits)
    x = rng.standard_normal((IMAGES, 1, 1, 3)).astype(np.float32)
    data = Dataset("made", x, np.arange(IMAGES) % 10, x, np.arange(IMAGES) % 10, 10, "0" * 64)
    oracle, raw, steps = {}, [], [0]

    def building(*given, build=loop.build):
        net = build(*given)
        for name in ("fc2", "fc3"):
            w = net.nodes[net.places[name]].layer.boolean[0].signs.astype(int).tolist()
            place = net.places[name]
            make = lambda seed: Grid(bits, rounding, scale, seed)  # noqa: E731
            oracle[name] = Layer(w, (2 * bits, rounding), place, 5, make)
        oracle["fc4"] = Grid(bits, rounding, scale, (5, net.places["fc4"], 1))
        limiter = net.limiters["fc4/sent"]

        def spy(z):
            raw.append([[Fraction(float(v)) for v in row] for row in z])
            return limiter(z)

        spy.width = limiter.width
        net.limiters["fc4/sent"] = spy
        return net

    def looking(net, tallies, flips, measure=loop._measure):
        steps[0] += 1
        rate = scheduled(RATE, steps[0] - 1, EPOCHS * IMAGES // BATCH)
        x2 = signs_of(net.values["act1"].reshape(BATCH, -1))
        fc2, fc3 = oracle["fc2"], oracle["fc3"]
        sums2 = fc2.forward(x2)
        x3 = signs_of(np.array(sums2) >= 0)
        assert net.values["fc2"].reshape(BATCH, -1).tolist() == sums2
        assert net.values["fc3"].reshape(BATCH, -1).tolist() == fc3.forward(x3)
        votes3, sent3 = fc3.backward(oracle["fc4"](raw[-1]), x3)
        votes2, sent2 = fc2.backward(sent3, x2)
        for name, votes, sent in (("fc2", votes2, sent2), ("fc3", votes3, sent3)):
            mine, weights = oracle[name], net.nodes[net.places[name]].layer.boolean[0]
            votes = mine.update(votes, rate, steps[0])
            assert weights.votes.tolist() == [[float(v) for v in row] for row in votes]
            assert net.sent[name].reshape(BATCH, -1).tolist() == [[*map(float, r)] for r in sent]
            assert weights.accumulator.tolist() == [[*map(float, row)] for row in mine.m]
            assert weights.signs.astype(int).tolist() == mine.w
            assert weights.ratio == mine.beta
        measure(net, tallies, flips)

    monkeypatch.setattr(loop, "build", building)
    monkeypatch.setattr(loop, "_measure", looking)
    trace = train(Settings(network, method, training, seed=5), data)
    assert steps[0] == EPOCHS * IMAGES // BATCH
    flips = sum(layer.flip_rate or 0 for epoch in trace.epochs for layer in epoch.layers)
    assert flips > 0 and raw
