"""PyTorch modules: ResNet-18 by both ways is the zoo's, and what modules can do besides."""

import subprocess
import sys
from math import prod

import pytest

from hwmodel.errors import HwmodelError, ShapeError
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.vary.paths import replaced_all

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
        network = from_torch(Mean(**options), torch.zeros(2, 5, 8))
        _, pool, out = network.nodes()
        assert (pool.layer.kind, pool.output_shape) == ("global-average-pool", (16, 1, 1))
        rows = merged(evaluate(network, "ascend", "fp", accounting="full", mode="inference"))
        made = {r.tensor: r.operations for r in rows if r.layer == pool.layer.name and r.operations}
        assert (made, out.macs) == ({"add": 4 * 16, "mac": 16}, 64)


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


# The second sheet of cases; counts of products are PyTorch's own or made by hand


def counted(module, *inputs):
    """Multiply-accumulates of products in one forward pass, by PyTorch's own counter."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        module(*inputs)
    return counter.get_total_flops() // 2


def macs_of(found):
    return sum(n.macs for n in found)


def encoder(*, first):
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=not first)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


@pytest.mark.parametrize("shape", [(50, 1, 64), (50, 4, 64), (48, 4, 64), (4, 4, 64), (50, 64)])
def test_C3_sequences_first_are_taken_as_such(shape):
    """Two layers: 4 D^2 + 2 D F for each token, 2 L D for each pair: 3,916,800 for 50 tokens."""
    L = shape[0]
    by_hand = 2 * (L * (4 * 64**2 + 2 * 64 * 128) + 2 * L * L * 64)
    assert by_hand == {50: 3_916_800, 48: 3_735_552, 4: 266_240}[L]
    assert macs_of(nodes(encoder(first=True), torch.zeros(shape))) == by_hand


@pytest.mark.parametrize("shape", [(1, 50, 64), (3, 50, 64), (50, 50, 64)])
def test_C3_sequences_after_the_batch_are_as_before(shape):
    assert macs_of(nodes(encoder(first=False), torch.zeros(shape))) == 3_916_800


class Tagged(nn.Module):
    """Token numbers, sequence first; a table of positions makes the length the module's own."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 64)
        self.places = nn.Parameter(torch.zeros(50, 1, 64))
        self.encoder = encoder(first=True)

    def forward(self, numbers):
        return self.encoder(self.words(numbers) + self.places)


@pytest.mark.parametrize("batch", [1, 2])
def test_C3_a_module_of_one_length_too(batch):
    found = nodes(Tagged(), torch.zeros(50, batch, dtype=torch.long))
    assert macs_of(found) == 3_916_800


def test_C3_what_has_no_batch_anywhere_is_refused():
    class Compared(nn.Module):
        def forward(self, x):
            flat = x.flatten(1)
            return torch.softmax(flat @ flat.T, -1)

    with pytest.raises(ShapeError, match="so that it is no batch"):
        from_torch(Compared(), torch.zeros(4, 2, 6))


class Adapted(nn.Module):
    """A frozen layer and a small one beside it that learns."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(1024, 1024, bias=False).requires_grad_(False)
        self.down = nn.Linear(1024, 8, bias=False)
        self.up = nn.Linear(8, 1024, bias=False)

    def forward(self, x):
        return torch.relu(self.base(x) + self.up(self.down(x)))


def products_of(network):
    """Multiply-accumulates of all products of a training iteration."""
    from hwmodel.model.plans import all_tasks
    from hwmodel.model.workload import Job
    from hwmodel.specs.accounting import Accounting
    from hwmodel.specs.files import load
    from hwmodel.specs.method import Method
    from hwmodel.work.work import Multiply

    job = Job(load(Method, "fp16"), load(Accounting, "full"), 1, "training")
    tasks = [task.work for task in all_tasks(network, job)]
    return sum(prod(w.nest.extent) * w.nest.groups for w in tasks if isinstance(w, Multiply))


def test_C4_what_does_not_learn_is_not_charged_as_if_it_did():
    """Autograd multiplies as often as the products here, forward and back."""
    from torch.utils.flop_counter import FlopCounterMode

    module = nn.Sequential(*(Adapted() for _ in range(4)))
    found = from_torch(module, torch.zeros(1, 128, 1024))
    with FlopCounterMode(display=False) as counter:
        module(torch.zeros(1, 128, 1024)).sum().backward()
    assert counter.get_total_flops() // 2 == 963_641_344 == products_of(found)
    layers = found.nodes()
    assert sum(n.weights for n in layers) == 4_259_840
    assert sum(n.learned_weights for n in layers) == 65_536
    of_then = {"counting.stationary": "filter", "counting.transfers": "upper"}
    accounting = replaced_all(load(Accounting, "full"), of_then)
    report = evaluate(found, "tpuv4i", "fp16", accounting=accounting)
    assert report.energy == pytest.approx(1.682e9, rel=1e-3)


@pytest.mark.parametrize("frozen", ["weights", "biases", "all", "none", "no_grad"])
def test_C4_weights_and_biases_are_frozen_apart(frozen):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)
            self.two.weight.requires_grad_(frozen not in ("weights", "all"))
            self.two.bias.requires_grad_(frozen not in ("biases", "all"))

        def forward(self, x):
            with torch.set_grad_enabled(frozen != "no_grad"):
                return self.two(self.one(x))

    learned = {n.layer.name: n.layer.learned for n in nodes(Two(), torch.zeros(1, 6))}
    wanted = {"weights": "biases", "biases": True, "all": False, "none": True, "no_grad": False}
    assert learned["two"] == wanted[frozen]
    assert learned["one"] == (frozen != "no_grad")


def test_C4_the_norms_of_a_frozen_backbone_are_constants():
    backbone = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.PReLU(4), nn.LayerNorm(5))
    backbone.requires_grad_(False)
    found = nodes(nn.Sequential(backbone, nn.Flatten(), nn.Linear(100, 2)), torch.zeros(1, 3, 5, 5))
    assert [n.layer.learned for n in found if n.weights or n.other_parameters] == [
        False, False, False, False, True,
    ]  # fmt: skip
    assert sum(n.weights + n.other_parameters for n in found) == 16 + 8 + 4 + 10 + 202
    assert not any(n.learns for n in found[:-1])


def test_C4_frozen_tables_and_factors_are_still_parameters():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.place = nn.Parameter(torch.zeros(1, 7, 6), requires_grad=False)
            self.norm = nn.RMSNorm(6).requires_grad_(False)
            self.head = nn.Linear(6, 2)

        def forward(self, x):
            return self.head(self.norm(x + self.place))

    found = nodes(Frozen(), torch.zeros(1, 7, 6))
    assert sum(n.weights + n.other_parameters for n in found) == 42 + 6 + 14
    assert sum(n.learned_weights + n.learned_parameters for n in found) == 14


def test_C5_a_learned_layer_on_a_constant_map_stays_a_layer():
    class Encoded(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("waves", torch.zeros(1, 64, 32, 32))
            self.encode, self.mix = nn.Conv2d(64, 48, 1), nn.Conv2d(48, 48, 1)

        def forward(self, x):
            return self.mix(x + self.encode(self.waves))

    module = Encoded()
    for batch in (1, 2):
        found = nodes(module, torch.zeros(batch, 48, 32, 32))
        own = sum(n.weights + n.other_parameters for n in found)
        assert own == sum(p.numel() for p in module.parameters()) == 5_472
        assert macs_of(found) == counted(module, torch.zeros(1, 48, 32, 32)) == 5_505_024


class Windows(nn.Module):
    """Attention in shifted windows, whose mask is written view by view (Swin)."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        B, H, W, C = x.shape
        side, shift = 4, 2
        zones, zone = x.new_zeros((1, H, W, 1)), 0
        cuts = (slice(0, -side), slice(-side, -shift), slice(-shift, None))
        for rows in cuts:
            for columns in cuts:
                zones[:, rows, columns, :] = zone
                zone += 1
        zones = self.cut(zones, side).squeeze(-1)
        mask = zones.unsqueeze(1) - zones.unsqueeze(2)
        mask = mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)
        cut = self.cut(x, side)
        q, k, v = self.qkv(cut).reshape(-1, side * side, 3, 2, C // 2).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1)
        scores = scores.view(B, -1, 2, side**2, side**2) + mask.unsqueeze(1).unsqueeze(0)
        weights = scores.view(-1, 2, side**2, side**2).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(-1, side**2, C)

    @staticmethod
    def cut(x, side):
        B, H, W, C = x.shape
        x = x.view(B, H // side, side, W // side, side, C).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, side * side, C)


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_C14_masks_made_of_views_of_constants(batch):
    found = nodes(Windows(), torch.zeros(batch, 8, 8, 16))
    assert macs_of(found) == counted(Windows(), torch.zeros(1, 8, 8, 16))
    assert "uncounted" not in {n.layer.kind for n in found}
    (mask,) = [n for n in found if n.layer.kind == "source"]
    assert (prod(mask.output_shape), mask.other_parameters) == (4 * 16 * 16, 0)


@pytest.mark.parametrize("batch", [1, 2])
def test_C14_autocast_inside_forward(batch):
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 4, 3, bias=False), nn.Conv2d(4, 4, 1)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.one(x)
                y = y + self.two(y)
                with torch.no_grad():
                    z = self.two(y)
            return y * z

    found = nodes(Cast(), torch.zeros(batch, 3, 6, 6))
    assert [n.layer.kind for n in found] == ["conv", "conv", "add", "conv", "multiply"]
    assert macs_of(found) == 16 * (108 + 16 + 16)
    assert not found[0].other_parameters  # what is added is no bias of the first


class Video(nn.Module):
    """Frames are folded into the batch before a convolution."""

    def __init__(self, time):
        super().__init__()
        self.time, self.norm = time, nn.BatchNorm2d(8)
        self.one, self.two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, groups=2)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        if self.time == 0:
            x = x.transpose(0, 1)
        B, T = x.shape[:2]
        y = F.max_pool2d(torch.relu(self.norm(self.one(x.flatten(0, 1)))), 2)
        y = F.adaptive_avg_pool2d(self.two(y), 1).flatten(1)
        return self.head(y).view(B, T, -1).mean(1)


@pytest.mark.parametrize("batch", [1, 2, 6])
@pytest.mark.parametrize("time", [0, 1])
def test_C14_a_batch_folded_with_time_before_a_convolution(time, batch):
    shape = (6, batch, 3, 16, 16) if time == 0 else (batch, 6, 3, 16, 16)
    module = Video(time)
    found = nodes(module, torch.zeros(shape))
    one = (6, 1, 3, 16, 16) if time == 0 else (1, 6, 3, 16, 16)
    assert macs_of(found) == counted(module, torch.zeros(one))
    own = sum(n.weights + n.other_parameters for n in found)
    assert own == sum(p.numel() for p in module.parameters())
    assert "uncounted" not in {n.layer.kind for n in found}


def test_B14_what_does_nothing_is_a_view():
    class Nothing(nn.Module):
        def forward(self, x):
            y = x.reshape_as(torch.zeros_like(x)).expand_as(x).expand(-1, -1, 5)
            torch._assert(y.shape[1] == 4, "four")
            torch.ops.aten._assert_tensor_metadata(y, dtype=torch.float32)
            z = y[:, :1].expand(-1, 4, -1).reshape(y.shape) + y.view_as(x)
            return torch.relu(z * torch.ones_like(z))

    kinds = [n.layer.kind for n in nodes(Nothing(), torch.zeros(2, 4, 5))]
    assert not {"uncounted", "embedding"} & set(kinds)
    assert "expand" in kinds


class Spiking(nn.Module):
    """Steps first; the convolution sees all of them as a batch, the neurons one after the other."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(2, 8, 3, padding=1), nn.Linear(8 * 16, 10)

    def forward(self, x):
        T, B = x.shape[:2]
        currents = self.conv(x.flatten(0, 1)).view(T, B, 8, 8, 8)
        potential, spikes = torch.zeros_like(currents[0]), []
        for step in range(4):
            potential = potential + (currents[step] - potential) / 2.0
            spikes.append(torch.sigmoid(potential))
        pooled = F.avg_pool2d(torch.stack(spikes).flatten(0, 1), 2).flatten(1)
        return self.head(pooled).view(T, B, -1).mean(0)


@pytest.mark.parametrize("batch", [1, 3, 4])
def test_C14_a_spiking_network_with_its_steps_first(batch):
    module = Spiking()
    found = nodes(module, torch.zeros(4, batch, 2, 8, 8))
    assert macs_of(found) == counted(module, torch.zeros(4, 1, 2, 8, 8))
    assert found[0].layer.frames == 4
    own = sum(n.weights + n.other_parameters for n in found)
    assert own == sum(p.numel() for p in module.parameters())
    assert "uncounted" not in {n.layer.kind for n in found}


@pytest.mark.parametrize("kv_heads", [2, 1])
def test_attention_of_fewer_heads_of_keys(kv_heads):
    """4 heads, 5 queries and keys, 8 features a head: 2 x 4 x 5 x 5 x 8 multiply-accumulates."""

    class Grouped(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, enable_gqa=True
            )

    few = torch.zeros(1, kv_heads, 5, 8)
    found = nodes(Grouped(), torch.zeros(1, 4, 5, 8), few, few)
    both = [n for n in found if "attention" in n.layer.kind]
    assert [(n.layer.heads, n.layer.kv_heads, n.layer.causal) for n in both] == [
        (4, kv_heads, True)
    ] * 2
    assert sum(n.macs for n in found) == 2 * 4 * 5 * 5 * 8


class Cached(nn.Module):
    """Gives a cache beside its result, which is no tensor."""

    class Keys:
        pass

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x), self.Keys()


def test_a_module_that_gives_a_cache_is_advised():
    with pytest.raises(HwmodelError, match=r"ask it for none \(module.config.use_cache = False\)"):
        from_torch(Cached().eval(), torch.zeros(1, 4))
