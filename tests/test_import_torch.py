"""PyTorch modules: ResNet-18 by both ways is the zoo's, and what modules can do besides."""

import subprocess
import sys

import pytest

from hwmodel.errors import HwmodelError
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from hwmodel.importers.torch import from_torch  # noqa: E402
from tests.rows import merged  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Block(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = None
        if stride > 1 or before != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.shortcut is None else self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks, before = [], 64
        for channels in (64, 128, 256, 512):
            blocks += [Block(before, channels, 1 + (channels > 64)), Block(channels, channels, 1)]
            before = channels
        self.blocks = nn.Sequential(*blocks)
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, 1000)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.mean(self.blocks(x)), 1))


def by_export(tmp_path, batch):
    return from_torch(ResNet18().eval(), torch.zeros(batch, 3, 224, 224), name="resnet18")


def by_onnx(tmp_path, batch):
    pytest.importorskip("onnx")
    path = tmp_path / "resnet18.onnx"
    torch.onnx.export(
        ResNet18(), (torch.zeros(batch, 3, 224, 224),), path, dynamo=False,
        training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
    )  # fmt: skip
    return load_network(path)


WAYS = [(by_export, 1), (by_export, 3), (by_onnx, 1), (by_onnx, 2)]


@pytest.mark.parametrize(("way", "batch"), WAYS)
def test_resnet18_is_the_zoo_s_layer_by_layer(tmp_path, way, batch):
    found, zoo = way(tmp_path, batch).nodes(), load_network("resnet18").nodes()

    def lines(nodes):
        return [
            (n.layer.kind, n.input_shapes, n.output_shape, n.weights, n.other_parameters, n.macs)
            for n in nodes
        ]

    assert lines(found) == lines(zoo)
    assert sum(n.macs for n in found) == 1_814_073_344
    assert sum(n.weights + n.other_parameters for n in found) == 11_689_512


@pytest.mark.parametrize("accounting", ["paper", "full"])
def test_resnet18_takes_the_zoo_s_energy_layer_by_layer(tmp_path, accounting):
    from hwmodel.specs.accounting import Accounting
    from hwmodel.specs.files import bundled

    if accounting not in bundled(Accounting):
        pytest.skip(f"no accounting {accounting}")

    def energies(network):
        report = evaluate(network, "ascend", "fp", accounting=accounting)
        order = {}
        for row in merged(report):
            order[row.layer] = order.get(row.layer, 0.0) + row.energy
        return list(order.values())

    zoo = energies("resnet18")
    for way in (by_export, by_onnx):
        assert energies(way(tmp_path, 1)) == pytest.approx(zoo, rel=1e-12)


def nodes(module, *inputs):
    return from_torch(module, inputs).nodes()


def test_names_are_kept():
    found = from_torch(ResNet18(), torch.zeros(1, 3, 64, 64))
    assert {"conv1", "bn1", "pool", "blocks.2.shortcut.0", "fc"} <= {n.name for n in found.layers}


def test_a_module_used_twice_is_stored_once_and_computed_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Conv2d(3, 3, 3, padding=1)

        def forward(self, x):
            return self.one(self.one(x))

    first, second = nodes(Twice(), torch.zeros(1, 3, 5, 7))
    assert (first.macs, second.macs) == (81 * 35, 81 * 35)
    assert (first.weights, second.weights, second.other_parameters) == (81, 0, 0)


def test_functional_convolutions_are_counted():
    """The kind of module that other counters pass over as nothing."""

    class Padded(nn.Conv2d):
        def forward(self, x):
            return F.conv2d(F.pad(x, (0, 1, 0, 1)), self.weight, None, 2, 0, 1, self.groups)

    found = nodes(Padded(6, 6, 3, groups=6, bias=False), torch.zeros(1, 6, 8, 8))
    assert [n.layer.kind for n in found] == ["uncounted", "conv"]
    assert found[-1].macs == 6 * 9 * 16


@pytest.mark.parametrize(
    ("module", "shape", "macs"),
    [
        (nn.Conv1d(32, 32, 3, stride=2, padding=4), (32, 128), 205_824),  # without a batch
        (nn.Conv1d(32, 32, 3, stride=2, padding=4), (5, 32, 128), 205_824),
        (nn.ConvTranspose2d(3, 1, 2, stride=2), (1, 3, 2, 2), 48),
        (nn.Linear(128, 128), (1, 128, 128), 2_097_152),
        (nn.Conv2d(5, 7, 3, padding="same"), (1, 5, 11, 13), 45_045),
        (nn.Conv2d(32, 32, 3, padding=1, groups=32), (1, 32, 112, 112), 3_612_672),
        (nn.Conv2d(1, 1, 3, stride=(2, 1), padding=1), (1, 1, 224, 224), 112 * 224 * 9),
    ],
)  # fmt: skip
def test_counts_that_other_tools_have_missed(module, shape, macs):
    assert sum(n.macs for n in nodes(module, torch.zeros(shape))) == macs


@pytest.mark.parametrize("batch", [1, 2])
def test_a_transformer_s_block(batch):
    """L tokens of D features: 4 D^2 + 2 L D of attention, 8 D^2 of the rest, a token."""
    L, D = 10, 16
    module = nn.TransformerEncoderLayer(D, 4, 4 * D, activation="gelu", batch_first=True)
    found = nodes(module.eval(), torch.zeros(batch, L, D))
    kinds = [n.layer.kind for n in found]
    assert sum(n.macs for n in found) == L * (12 * D**2 + 2 * L * D)
    assert kinds.count("attention-scores") == kinds.count("attention-context") == 1
    assert "uncounted" not in kinds
    parameters = sum(p.numel() for p in module.parameters())
    assert sum(n.weights + n.other_parameters for n in found) == parameters


class Vision(nn.Module):
    """Patches, a class token, position embeddings, one block, the token's class."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 8, 8)
        self.token = nn.Parameter(torch.rand(1, 1, 32))
        self.place = nn.Parameter(torch.rand(1, 17, 32))
        self.block = nn.TransformerEncoderLayer(
            32, 4, 64, activation="gelu", batch_first=True, norm_first=True
        )
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.block(x)[:, 0])


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("way", ["module", "file"])
def test_a_vision_transformer_by_both_ways(tmp_path, way, batch):
    """16 patches of 8 x 8 and the token: 17 places of 32 features, 4 heads."""
    module, x = Vision().eval(), torch.zeros(batch, 3, 32, 32)
    if way == "module":
        found = nodes(module, x)
    else:
        pytest.importorskip("onnx")
        torch.backends.mha.set_fastpath_enabled(False)
        torch.onnx.export(module, (x,), tmp_path / "v.onnx", dynamo=False, opset_version=17)
        found = load_network(tmp_path / "v.onnx").nodes()
    a_place = 4 * 32 * 32 + 2 * 17 * 32 + 2 * 32 * 64
    assert sum(n.macs for n in found) == 16 * 192 * 32 + 17 * a_place + 320
    parameters = sum(p.numel() for p in module.parameters())
    assert sum(n.weights + n.other_parameters for n in found) == parameters
    assert not [n for n in found if n.layer.kind == "uncounted"]


def test_the_last_operator_is_a_layer_too():
    found = nodes(nn.Sequential(nn.Linear(5, 3), nn.Sigmoid()), torch.zeros(1, 5))
    assert [getattr(n.layer, "function", n.layer.kind) for n in found] == ["linear", "sigmoid"]


def test_functions_written_out():
    class Written(nn.Module):
        def forward(self, x):
            swish = x * torch.sigmoid(x)
            mean = swish.mean(-1, keepdim=True)
            centred = swish - mean
            return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5)

    kinds = [n.layer.kind for n in nodes(Written(), torch.zeros(2, 5, 7))]
    assert kinds == ["activation", "layer-norm"]


def test_a_prelu_has_one_slope_for_all_or_one_for_each_channel():
    found = nodes(nn.Sequential(nn.PReLU(), nn.PReLU(6)), torch.zeros(1, 6, 4, 4))
    assert [n.other_parameters for n in found] == [1, 6]


def test_embeddings_of_tokens():
    module = nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 3))
    found = nodes(module, torch.zeros(2, 7, dtype=torch.long))
    assert [n.layer.kind for n in found] == ["embedding", "linear"]
    assert (found[0].other_parameters, found[1].macs) == (800, 7 * 24)


def test_a_mean_over_tokens_is_a_pool():
    """Of 5 tokens of 16 features: 4 additions and a factor each; 4 x 16 MACs follow."""

    class Mean(nn.Module):
        def __init__(self, **options):
            super().__init__()
            self.options = options
            self.fc, self.out = nn.Linear(8, 16), nn.Linear(16, 4)

        def forward(self, x):
            return self.out(self.fc(x).mean(1, **self.options))

    for options in ({}, {"keepdim": True}):
        _, pool, out = nodes(Mean(**options), torch.zeros(2, 5, 8))
        assert (pool.layer.kind, pool.output_shape) == ("global-average-pool", (16, 1, 1))
        cost = pool.layer.cost(pool.input_shapes)
        assert (cost.adds, cost.macs, out.macs) == (4, 1, 64)


def test_what_torch_says_of_a_failed_export_is_the_message_alone(tmp_path):
    """In a process of its own: torch's log keeps the standard error that it began with."""
    script = tmp_path / "fails.py"
    script.write_text(
        "import logging, torch, hwmodel\n"
        "class Depends(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x if x.sum() > 0 else -x\n"
        "try:\n"
        "    hwmodel.from_torch(Depends(), torch.zeros(1, 2))\n"
        "except hwmodel.HwmodelError as error:\n"
        "    print(error)\n"
        "logging.warning('a log is a log again')\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Depends: torch.export cannot follow it")
    assert ran.stderr == "WARNING:root:a log is a log again\n"


def test_a_module_that_cannot_be_exported_ends_in_one_message():
    class Depends(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(HwmodelError, match=r"Depends: torch\.export cannot follow it"):
        from_torch(Depends(), torch.zeros(1, 3))
