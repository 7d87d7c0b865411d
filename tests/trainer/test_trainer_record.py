"""A recorder around plain PyTorch loops: counts by hand, and the trainer's own tally."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import small
from ruamel.yaml import YAML

import hwmodel
from hwmodel.errors import HwmodelError, ShapeError, SpecError
from hwmodel.graph.network import NetworkFile
from hwmodel.model.evaluate import evaluate
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.specs.trace import dumps, loads, read_trace
from hwmodel.trainer.nets import build
from hwmodel.trainer.optim import scheduled
from hwmodel.trainer.stack import stack
from hwmodel.trainer.train import Settings, train

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parents[2]


def recorded(model, steps, *, epochs=1, lr=0.1, optimizer=None, told=None, **options):
    """The trace of a loop: `steps` gives the loss of every step."""
    opt = optimizer or torch.optim.SGD(model.parameters(), lr=lr)
    with hwmodel.record(model, **{"method": "fp", "every": 1, **options}) as r:
        for _ in range(epochs):
            for step in steps:
                opt.zero_grad()
                step().backward()
                opt.step()
            r.epoch(**(told or {"loss": 1, "accuracy": 0.5}))
    return r.trace()


def layer_of(trace, name, epoch=0):
    return next(x for x in trace.epochs[epoch].layers if x.name == name)


def test_a_step_by_hand():
    """y = x W^T, dL/dy given; momentum's first step is the votes themselves.

    Sums 1 0 / 3 10. Sent: z W. Votes: z^T x. W - 0.3 q = 2.5 -3 / 1.55 -0.4: one sign of four.
    """
    model = nn.Sequential(nn.Linear(2, 2, bias=False))
    model[0].weight.data = torch.tensor([[1.0, 0], [2, -1]])
    x = torch.tensor([[1.0, 2], [3, -4]], requires_grad=True)
    z = torch.tensor([[1.0, 0], [-2, 0.5]])
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    trace = recorded(model, [lambda: (model(x) * z).sum()], optimizer=opt, binary=["0"])
    found = layer_of(trace, "0")
    sums = found.preactivation
    assert (sums.lowest, sums.highest, sums.mean, found.sum_bits) == (0, 10, 3.5, 5)
    assert sums.deviation == pytest.approx(math.sqrt((1 + 0 + 9 + 100) / 4 - 3.5**2))
    signal, sent, vote = found.signal, found.sent, found.vote
    assert (signal.largest, signal.zero_share) == (2, 0.25)
    assert (
        signal.rms
        == pytest.approx(math.sqrt((1 + 4 + 0.25) / 4))
        == pytest.approx(1.1456, abs=1e-4)
    )
    assert (sent.largest, sent.zero_share, sent.rms) == (1, 0.25, 0.75)
    assert (vote.largest, vote.zero_share) == (10, 0)
    assert vote.rms == pytest.approx(math.sqrt((25 + 100 + 2.25 + 4) / 4))
    assert found.optimizer_state == vote
    assert found.flip_rate == 0.25
    assert trace.run.batch == 2 and trace.run.recording.steps_measured == 1


def test_the_gradient_sent_is_that_of_one_consumer():
    """h = fc1(x); y = h + fc2(h): fc1 receives both branches, fc2 sends its own alone."""

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
            self.fc1.weight.data.fill_(2.0)
            self.fc2.weight.data.fill_(3.0)

        def forward(self, x):
            h = self.fc1(x)
            return h + self.fc2(h)

    model = Residual()
    trace = recorded(model, [lambda: model(torch.ones(1, 1)).sum()])
    first, second = layer_of(trace, "fc1"), layer_of(trace, "fc2")
    assert (first.preactivation.highest, second.preactivation.highest) == (2, 6)
    assert second.signal.largest == 1 and second.sent.largest == 3
    assert first.signal.largest == 4 and first.sent is None  # 1 + 3; x asks for no gradient


def test_an_operator_in_place_changes_no_figure():
    """fc1 gives 5 and -7; the ReLU in place leaves 5 and 0, and sends the signal to 5 alone."""
    model = nn.Sequential(
        nn.Linear(1, 2, bias=False), nn.ReLU(inplace=True), nn.Linear(2, 1, bias=False)
    )
    model[0].weight.data = torch.tensor([[5.0], [-7]])
    model[2].weight.data = torch.tensor([[2.0, 4]])
    trace = recorded(model, [lambda: model(torch.ones(1, 1)).sum()])
    first = layer_of(trace, "0")
    assert (first.preactivation.lowest, first.preactivation.highest) == (-7, 5)
    assert (first.signal.largest, first.signal.zero_share) == (2, 0.5)
    assert layer_of(trace, "2").sent.largest == 4
    assert (first.input_zeros, layer_of(trace, "2").input_zeros) == (None, 0.5)  # 1 is a sign


def test_a_layer_used_twice_stands_twice_with_one_weight():
    """w w x with x = 1, w = 3: sums 3 and 9, signals w and 1, votes 2 w = 6 in both places."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False))
    model[0].weight.data.fill_(3.0)
    twice = lambda: model[0](model[0](torch.ones(1, 1))).sum()  # noqa: E731
    trace = recorded(model, [twice], binary=[nn.Linear], lr=1.0)
    one, two = layer_of(trace, "0"), layer_of(trace, "0+2")
    assert (one.preactivation.highest, two.preactivation.highest) == (3, 9)
    assert (one.signal.largest, two.signal.largest, two.sent.largest) == (3, 1, 3)
    assert one.vote == two.vote and one.vote.largest == 6
    assert one.flip_rate == two.flip_rate == 1.0  # 3 - 6 is below 0
    assert [shape.name for shape in trace.layers] == ["0", "0+2"]


def test_passes_that_train_nothing_are_not_looked_at():
    model = nn.Sequential(nn.Linear(1, 1, bias=False))
    model[0].weight.data.fill_(1.0)

    def step():
        model.eval()
        model(torch.full((1, 1), 100.0))
        model.train()
        with torch.no_grad():
            model(torch.full((1, 1), 200.0))
        return model(torch.ones(1, 1)).sum()

    trace = recorded(model, [step, step], lr=0.25)
    sums = layer_of(trace, "0").preactivation
    assert (sums.lowest, sums.highest) == (0.75, 1)
    assert trace.epochs[0].steps == 2 and len(trace.layers) == 1


def test_between_measured_steps_ranges_and_flips_are_seen_and_the_rest_is_not():
    """By SGD of rate 2 the weight is 1, -1, 15, -1, 1, -1, 1: it flips in every step."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False))
    model[0].weight.data.fill_(1.0)
    sizes = iter((1.0, 8.0, 8.0, 1.0, 1.0, 1.0))

    def step():
        z = float(torch.sign(model[0].weight)) * next(sizes)
        return z * model(torch.ones(1, 1)).sum()

    trace = recorded(model, [step] * 3, epochs=2, lr=2.0, every=3, binary=["0"])
    first, second = layer_of(trace, "0", 0), layer_of(trace, "0", 1)
    assert first.signal.largest == 8 and first.signal.rms == 1  # the first step alone is measured
    assert first.flip_rate == 1.0
    assert trace.run.recording.steps_measured == 2 and trace.run.recording.every == 3
    assert second.signal.largest == 1 and second.flip_rate == 1.0
    assert (first.preactivation.highest, second.preactivation.highest) == (15, 1)


def test_sums_of_several_passes_are_one_step():
    """Two passes of gradient accumulation: the votes are those that the optimizer finds."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False))
    model[0].weight.data.fill_(1.0)

    def step():
        model(torch.full((1, 1), 5.0)).sum().backward()
        return model(torch.full((1, 1), 2.0)).sum()

    trace = recorded(model, [step], binary=["0"])
    found = layer_of(trace, "0")
    assert found.vote.largest == 7 and found.preactivation.highest == 5
    assert len(trace.layers) == 1 and trace.epochs[0].steps == 1


@pytest.mark.parametrize("levels", [(0.0, 1.0), (-1.0, 1.0)])
def test_boolean_weights_are_known_by_their_levels(levels):
    """Of 3 inputs of +-1 a sum of signs is odd, -3 to 3, in two bits; a count 0 to 3 in three."""
    model = nn.Sequential(nn.Linear(3, 8, bias=False), nn.Linear(8, 1))
    codes = torch.tensor([[(i >> b) & 1 for b in range(3)] for i in range(8)])
    model[0].weight.data = torch.tensor(levels)[codes]
    x = torch.ones(1, 3)
    trace = recorded(model, [lambda: model(x).sum()], lr=0.0)
    assert [shape.weights for shape in trace.layers] == ["boolean", "real"]
    assert layer_of(trace, "0").sum_bits == (2 if levels[0] else 3)
    assert trace.layers[0].worst_sum_bits == 2
    assert layer_of(trace, "0").flip_rate == 0 and layer_of(trace, "1").flip_rate is None
    assert layer_of(trace, "1").sum_bits is layer_of(trace, "1").vote is None


class Counted(nn.Linear):
    """Counts of agreements of 0 and 1 less half the inputs, as the published layers give them."""

    def forward(self, x):
        w = self.weight
        return x @ w.T + (1 - x) @ (1 - w).T - w.shape[1] / 2


def test_counts_less_half_the_inputs_are_as_wide_as_sums_of_signs():
    """-1.5, -0.5, 0.5, 1.5 of 3 inputs: four sums, two bits."""
    model = nn.Sequential(Counted(3, 8, bias=False))
    codes = [[(i >> b) & 1 for b in range(3)] for i in range(8)]
    model[0].weight.data = torch.tensor(codes, dtype=torch.float32)
    trace = recorded(model, [lambda: model(torch.ones(1, 3)).sum()], lr=0.0)
    found = layer_of(trace, "0")
    assert (found.preactivation.lowest, found.preactivation.highest) == (-1.5, 1.5)
    assert found.sum_bits == 2 and trace.layers[0].weights == "boolean"


def test_half_precision_and_widths_that_the_loop_holds():
    model = nn.Sequential(nn.Linear(2, 2, bias=False)).to(torch.bfloat16)
    model[0].weight.data = torch.tensor([[1.0, 0], [2, -1]], dtype=torch.bfloat16)
    x = torch.tensor([[1.0, 2]], dtype=torch.bfloat16)
    widths = load(Method, "bold-8").widths
    trace = recorded(
        model, [lambda: model(x).sum()], method="bold-8", widths=widths, binary=["0"], lr=1.0
    )
    found = layer_of(trace, "0")
    assert trace.run.widths == widths
    assert (found.vote.largest, found.signal.largest, found.preactivation.highest) == (2, 1, 1)
    assert found.flip_rate == 0.25  # 0 - 2 turns; 1 - 1, taken as +, 2 - 1 and -1 - 2 do not


def test_a_small_cnn_with_groups_dilation_and_long_kernels():
    model = nn.Sequential(
        nn.Conv2d(2, 4, (3, 1), stride=(2, 1), padding=(1, 0), bias=False), nn.ReLU(),
        nn.Conv2d(4, 4, 3, padding="same", dilation=2, groups=2), nn.Flatten(), nn.Linear(4 * 4 * 8, 3),
    )  # fmt: skip
    trace = recorded(model, [lambda: model(torch.rand(5, 2, 8, 8)).sum()])
    shapes = {s.name: s.model_dump() for s in trace.layers}
    wanted = {
        "0": {"M": 4, "C": 2, "HO": 4, "WO": 8, "HF": 3, "WF": 1, "stride": (2, 1), "padding": (1, 0, 1, 0), "dilation": 1, "groups": 1, "fan_in": 6, "parameters": 24},
        "2": {"M": 4, "C": 4, "HO": 4, "WO": 8, "HF": 3, "WF": 3, "stride": 1, "padding": 2, "dilation": 2, "groups": 2, "fan_in": 18, "parameters": 76},
        "4": {"kind": "linear", "M": 3, "C": 128, "HO": 1, "WO": 1, "fan_in": 128, "parameters": 387, "N": 5},
    }  # fmt: skip
    for name, fields in wanted.items():
        assert {key: shapes[name][key] for key in fields} == fields
    assert loads(dumps(trace), Path("t")) == trace
    network = hwmodel.from_torch(model, torch.rand(1, 2, 8, 8))
    told = trace.model_copy(
        update={"epochs": tuple(e.model_copy(update={"accuracy": 0.9}) for e in trace.epochs)}
    )
    assert evaluate(network, "ascend", "fp", accounting="full", trace=told).energy > 0


# The trainer's own tally


NET = """\
version: 1
name: rows
title: Two Boolean layers between full-precision ones
input: [9, 1, 1]
layers:
  - {name: fc1, kind: linear, features: 24, bias: true}
  - {name: act1, kind: activation}
  - {name: fc2, kind: linear, features: 15}
  - {name: act2, kind: activation}
  - {name: fc3, kind: linear, features: 33}
  - {name: act3, kind: activation}
  - {name: fc4, kind: linear, features: 10, bias: true}
"""


class Boolean(torch.autograd.Function):
    """s = x W^T on +-1; votes z^T x, sent sqrt(2 / n) z W."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.T

    @staticmethod
    def backward(ctx, z):
        x, w = ctx.saved_tensors
        return math.sqrt(2 / len(w)) * (z @ w), z.T @ x


class Step(torch.autograd.Function):
    """T where s >= 0; z tanh'(pi |s| / (2 sqrt(3 m))) backward."""

    @staticmethod
    def forward(ctx, s, m):
        ctx.save_for_backward(s)
        ctx.slope = math.pi / (2 * math.sqrt(3 * m))
        return torch.where(s >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, z):
        return z * (1 - torch.tanh(ctx.slope * ctx.saved_tensors[0]) ** 2), None


class BooleanLinear(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.weight = nn.Parameter(w)

    def forward(self, x):
        return Boolean.apply(x, self.weight)


class Rows(nn.Module):
    def __init__(self, net):
        super().__init__()
        real = [net.nodes[i].layer.real for i in (0, -1)]
        self.fc1, self.fc4 = nn.Linear(9, 24), nn.Linear(33, 10)
        for layer, (w, b) in zip((self.fc1, self.fc4), real, strict=True):
            layer.weight.data, layer.bias.data = torch.tensor(w.value), torch.tensor(b.value)
        signs = [torch.tensor(net.nodes[i].layer.boolean[0].signs) for i in (2, 4)]
        self.fc2, self.fc3 = map(BooleanLinear, signs)

    def forward(self, x):
        x = Step.apply(self.fc1(x), 1)
        x = Step.apply(self.fc2(x), 24)
        return self.fc4(Step.apply(self.fc3(x), 15))


class Flips(torch.optim.Optimizer):
    """Accumulators and ratios in lists beside the parameters, as in the published listing."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        for group in self.param_groups:
            group["accums"] = [torch.zeros_like(p) for p in group["params"]]
            group["ratios"] = [1.0 for _ in group["params"]]

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for i, p in enumerate(group["params"]):
                m = group["ratios"][i] * group["accums"][i] + group["lr"] * p.grad
                flip = m * p >= 1
                m[flip] = 0
                p.data = torch.where(flip, -p, p)
                group["accums"][i], group["ratios"][i] = m, 1 - float(flip.float().mean())


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_it_measures_what_the_trainer_measures(steps):
    network = NetworkFile.model_validate(YAML(typ="safe", pure=True).load(NET)).network()
    rng = np.random.default_rng(5)
    x = rng.standard_normal((steps * 16, 1, 1, 9)).astype(np.float32)
    data = small.images()._replace(
        x=x, y=np.arange(len(x)) % 10, test_x=x, test_y=np.arange(len(x)) % 10
    )
    plan = small.training(1, len(x), adam_rate=1e-3, boolean_rate=60)
    ours = train(Settings(network, small.method(), plan, seed=2), data)

    net = build(stack(network, small.method()), plan.recipe, 16, 2)
    model = Rows(net)
    flips = Flips([model.fc2.weight, model.fc3.weight], 60)
    adam = torch.optim.Adam([*model.fc1.parameters(), *model.fc4.parameters()])
    order = np.random.default_rng([2, 1, 1]).permutation(len(x))
    with hwmodel.record(model, method="bold", types=(nn.Linear, BooleanLinear), every=1) as r:
        for step in range(steps):
            chosen = order[16 * step : 16 * (step + 1)]
            for opt, rate in ((flips, 60), (adam, 1e-3)):
                opt.param_groups[0]["lr"] = scheduled(rate, step, steps, "cosine")
                opt.zero_grad()
            logits = model(torch.tensor(x[chosen, 0, 0]))
            nn.functional.cross_entropy(logits, torch.tensor(data.y[chosen])).backward()
            flips.step()
            adam.step()
        r.epoch(loss=1, accuracy=1)
    theirs = r.trace()
    assert [s.model_dump() for s in theirs.layers] == [
        s.model_dump() | {"worst_sum_bits": s.worst_sum_bits} for s in ours.layers
    ]
    fields = 0
    for mine, other in zip(ours.epochs[0].layers, theirs.epochs[0].layers, strict=True):
        fields += same(mine.model_dump(), other.model_dump(), mine.name)
    assert fields > 90
    assert ours.epochs[0].layers[1].flip_rate > 0


def same(mine, other, where):
    """Compare numbers of two measurements; the number of them. Sums of floats differ in order."""
    if isinstance(mine, dict):
        assert mine.keys() == other.keys()
        return sum(same(mine[key], other[key], f"{where}.{key}") for key in mine)
    if isinstance(mine, (list, tuple)):
        return sum(same(a, b, where) for a, b in zip(mine, other, strict=True))
    if isinstance(mine, float):
        assert other == pytest.approx(mine, rel=1e-3, abs=2e-3 if "octaves" in where else 1e-6), (
            where
        )
    else:
        assert other == mine, where
    return 1


# What is refused


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "no name", "every": 0, "batch": -1}, r"method 'no name': must match .*batch -1: must be at least 1.*every 0: must be at least 1"),
        ({"types": [nn.Conv2d]}, "record: 0 is a Linear with weights, and none of `types`"),
        ({"binary": ["fc9"]}, "record: binary 'fc9' is no layer of the model"),
        ({"widths": {"signal": {"bits": 0}}}, "widths.signal.bits 0: must be at least 1"),
        ({"types": 3, "binary": 5}, "types '3': must be a list of classes; binary '5': must be a"),
        ({"types": "Linear"}, "types 'Linear': must be a list of classes"),
        ({"types": nn.Linear}, "must be a list of classes"),
        ({"binary": [3]}, r"binary \[3\]: must be a list of classes or names of layers"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_one_line_with_all_faults(options, said):
    with pytest.raises(HwmodelError, match=said) as error:
        hwmodel.record(nn.Sequential(nn.Linear(1, 1)), **{"method": "fp", **options})
    assert "\n" not in str(error.value)


def test_models_that_cannot_be_followed_are_refused():
    for model, said in (
        (5, "model 5: must be an nn.Module"),
        (nn.Sequential(nn.ReLU()), "none of its layers is one of Linear, Conv2d"),
        (nn.Sequential(nn.Conv1d(1, 1, 1)), "0 is a Conv1d with weights, and none of `types`"),
        (nn.DataParallel(nn.Linear(1, 1)), "is a DataParallel, compiled or replicated: record the module inside"),
    ):  # fmt: skip
        with pytest.raises(HwmodelError, match=re.escape(said)):
            hwmodel.record(model, method="fp")
    compiled = nn.Linear(1, 1)
    compiled.compile()
    with pytest.raises(SpecError, match="compiled"):
        hwmodel.record(compiled, method="fp")


def test_loops_that_measured_nothing_are_refused():
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    ones = lambda: model(torch.ones(1, 1)).sum()  # noqa: E731
    with pytest.raises(HwmodelError, match="no step of training was seen in this epoch"):
        recorded(model, [])
    with (
        pytest.raises(HwmodelError, match="no epoch was told"),
        hwmodel.record(model, method="fp") as r,
    ):
        r.trace()
    model[0].requires_grad_(False)
    with pytest.raises(HwmodelError, match="0 received no signal in this epoch: frozen, or not"):
        recorded(model, [ones])
    model[0].requires_grad_(True)
    inf = lambda: ones() * math.inf  # noqa: E731
    with pytest.raises(HwmodelError, match="no finite numbers in 3 steps of this epoch, and no"):
        recorded(model, [inf, inf, inf])
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    with pytest.raises(HwmodelError, match=r"accuracy 97\.0: must be at most 1"):
        told(97)
    model = nn.Sequential(nn.Linear(1, 1))
    with pytest.raises(HwmodelError, match="batch 2 was stated, the model is given 3 images"):
        recorded(model, [lambda: model(torch.ones(3, 1)).sum()], batch=2)
    model = nn.Sequential(nn.Conv2d(1, 1, 1))
    sizes = iter((4, 5))
    changing = lambda: model(torch.ones(1, 1, *[next(sizes)] * 2)).sum()  # noqa: E731
    with pytest.raises(ShapeError, match=r"0 takes \(1, 5, 5\) and gives \(1, 5, 5\) elements an"):
        recorded(model, [changing, changing])


def told(accuracy):
    model = nn.Sequential(nn.Linear(1, 1))
    recorded(model, [lambda: model(torch.ones(1, 1)).sum()], told={"loss": 1, "accuracy": accuracy})


def test_hooks_are_gone_after_the_context_and_after_an_error():
    model = nn.Sequential(nn.Linear(1, 1))
    with pytest.raises(ZeroDivisionError), hwmodel.record(model, method="fp"):
        1 / 0  # noqa: B018
    assert not model._forward_pre_hooks and not model[0]._forward_hooks


def test_two_recorded_runs_of_a_method_are_told_apart_by_their_seed():
    model = nn.Sequential(nn.Linear(4, 3))
    network = hwmodel.from_torch(model, torch.rand(1, 4))
    runs = [
        recorded(model, [lambda: model(torch.rand(2, 4)).sum()], told={"loss": 1, "accuracy": 0.9, "validation": 0.8}, seed=seed)
        for seed in (1, 2, None)
    ]  # fmt: skip
    assert runs[0].epochs[0].validation_accuracy == 0.8
    assert evaluate(network, "ascend", "fp", accounting="full", trace=runs[:2]).energy > 0
    with pytest.raises(
        HwmodelError, match="two of the traces are of one run, Sequential by fp, rec"
    ):
        evaluate(network, "ascend", "fp", accounting="full", trace=[runs[2], runs[2]])


def test_the_script_of_the_documents_is_recorded_and_reported(tmp_path, hwmodel):
    pytest.importorskip("sklearn")
    text = (ROOT / "docs" / "trainer.md").read_text(encoding="utf-8")
    script = re.search(
        r'^```py title="(record_digits.py)"\n(.*?)^```', text, re.DOTALL | re.MULTILINE
    )
    command = re.search(r"^hwmodel (report .*--trace binary\.json.*)$", text, re.MULTILINE)
    lines = [x for x in script[2].splitlines() if x.strip()]
    assert len(lines) <= 45
    (tmp_path / script[1]).write_text(script[2])
    subprocess.run([sys.executable, script[1]], cwd=tmp_path, check=True, timeout=300)
    trace = read_trace(tmp_path / "binary.json")
    assert trace.epochs[-1].accuracy > 0.85 and trace.run.recording.overhead >= 1
    code, out, err = hwmodel(*command[1].split())
    assert code == 0, err
    assert "recorded" in out
    fc2 = next(x for x in out.splitlines() if x.startswith("  fc2") and "not used" in x)
    assert re.match(r"  fc2 +\d+, not used", fc2) and "32 -> 32" not in out  # signals are floats


# What a loop does


def test_a_share_in_float32_is_the_decimal_that_it_stands_for():
    """9 of 10 in float32 is 0.89999998 in float64, and 0.9 is the shortest that rounds to it."""
    model = nn.Sequential(nn.Linear(1, 1))
    step = [lambda: model(torch.ones(1, 1)).sum()]
    for share in (torch.tensor(0.9), torch.tensor(0.9).half(), np.float32(0.9), 0.9):
        told = {"loss": torch.tensor(2.0), "accuracy": share, "validation": share}
        epoch = recorded(model, step, told=told).epochs[0]
        assert (epoch.accuracy, epoch.validation_accuracy, epoch.loss) == (0.9, 0.9, 2)
    third = torch.tensor(1 / 3, dtype=torch.float64)
    assert recorded(model, step, told={"loss": 1, "accuracy": third}).epochs[0].accuracy == 1 / 3


@pytest.mark.parametrize("loss", [torch.zeros(3), "x", "1"])
def test_what_is_told_is_a_number(loss):
    model = nn.Sequential(nn.Linear(1, 1))
    with pytest.raises(HwmodelError, match=r"record: epoch: loss .*: must be one number") as error:
        step = lambda: model(torch.ones(1, 1)).sum()  # noqa: E731
        recorded(model, [step], told={"loss": loss, "accuracy": 0.5})
    assert "\n" not in str(error.value)


def test_latent_weights_without_votes_are_a_control():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    step = lambda: model(torch.ones(1, 2)).sum()  # noqa: E731
    model[1].weight.requires_grad_(False)
    control = recorded(model, [step], binary=["1"])
    assert control.run.frozen and layer_of(control, "1").flip_rate == 0
    assert not recorded(model, [step], binary=["1", "2"]).run.frozen


def test_the_batch_is_the_images_between_two_steps():
    """Four parts of eight; a pass without a backward, and a larger one, change nothing."""
    model = nn.Sequential(nn.Linear(1, 1))

    def step():
        model(torch.ones(100, 1))
        for _ in range(3):
            model(torch.ones(8, 1)).sum().backward()
        return model(torch.ones(8, 1)).sum()

    trace = recorded(model, [step, step])
    assert trace.run.batch == trace.layers[0].N == 32 and trace.epochs[0].steps == 2
    del step
    parts = lambda: model(torch.ones(8, 1)).sum() + model(torch.ones(8, 1)).sum()  # noqa: E731
    assert recorded(model, [parts, parts]).run.batch == 16
    with pytest.raises(HwmodelError, match="batch 8 was stated, a step of the optimizer is of 16"):
        recorded(model, [parts], batch=8)


def test_flips_are_of_a_step_of_the_run():
    """The second layer's optimizer makes one step of four, in which its only weight flips."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    model[0].weight.data.fill_(1.0)
    model[1].weight.data.fill_(1.0)
    often = torch.optim.SGD(model[0].parameters(), lr=0.0)
    seldom = torch.optim.SGD(model[1].parameters(), lr=10.0)
    with hwmodel.record(model, method="fp", every=1, binary=["0", "1"]) as r:
        for number in range(4):
            model(torch.ones(1, 1)).sum().backward()
            often.step()
            if number == 3:
                seldom.step()
        r.epoch(loss=1, accuracy=0.5)
    assert layer_of(r.trace(), "1").flip_rate == 0.25
    assert layer_of(r.trace(), "0").flip_rate == 0


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
def test_steps_that_a_scaler_skips_are_left_out(to_none, when):
    """An overflow in the second of four steps: three are left, each of one image."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False))
    model[0].weight.data.fill_(1.0)
    opt = torch.optim.SGD(model.parameters(), lr=0.0)
    with hwmodel.record(model, method="fp", every=1, binary=["0"]) as r:
        for scale in (1.0, math.inf, 1.0, 1.0):
            if when == "before":
                opt.zero_grad(set_to_none=to_none)
            loss = model(torch.full((1, 1), 1.0 if scale == 1 else 5.0)).sum() * scale
            if when == "after":
                opt.zero_grad(set_to_none=to_none)
            loss.backward()
            if bool(model[0].weight.grad.isfinite().all()):  # as torch.amp.GradScaler does
                opt.step()
        r.epoch(loss=1, accuracy=0.5)
    trace = r.trace()
    assert (trace.run.recording.steps_left_out, trace.epochs[0].steps, trace.run.batch) == (1, 3, 1)
    found = layer_of(trace, "0")
    assert found.signal.largest == 1 and found.preactivation.highest == 1


def test_a_recorder_is_entered_once():
    model = nn.Sequential(nn.Linear(1, 1))
    r = hwmodel.record(model, method="fp")
    with r, pytest.raises(HwmodelError, match="in its loop already"):
        r.__enter__()
    assert not model._forward_pre_hooks and not model[0]._forward_hooks
