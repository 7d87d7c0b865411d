"""PyTorch modules of today: recurrent layers, RMS norms, rotary embeddings, language models, experts.

Counts are by hand, or PyTorch's own counter's, which omits recurrent layers.
"""

from collections import Counter
from math import prod

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from hwmodel.errors import HwmodelError, SpecWarning  # noqa: E402
from hwmodel.graph.network import family_member  # noqa: E402
from hwmodel.importers.torch import from_torch  # noqa: E402
from hwmodel.model.plans import all_tasks  # noqa: E402
from hwmodel.model.workload import Job  # noqa: E402
from hwmodel.specs.accounting import Accounting  # noqa: E402
from hwmodel.specs.files import load  # noqa: E402
from hwmodel.specs.method import Method  # noqa: E402
from hwmodel.work.tensor import product  # noqa: E402
from hwmodel.work.work import Multiply  # noqa: E402
from tests.test_import_torch import macs_of, nodes  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def parameters_of(found):
    return sum(n.weights + n.other_parameters for n in found)


def own(module):
    return sum(p.numel() for p in module.parameters())


def uncounted(found):
    return [n.layer.operator for n in found if n.layer.kind == "uncounted"]


# Recurrent layers


@pytest.mark.parametrize("shape", [(1, 32, 128), (32, 3, 128)])
def test_C8_a_gru(shape):
    """3 x 128 x (128 + 128) a step, and two biases; sequences after the batch, or first."""
    module = nn.GRU(128, 128, batch_first=shape[1] == 32)
    found = nodes(module, torch.zeros(shape))
    assert macs_of(found) == 3_145_728
    assert parameters_of(found) == own(module)
    assert not uncounted(found)


def products_by_hand(module):
    """Products of a step: every matrix of every layer and direction once."""
    return sum(p.numel() for p in module.parameters() if p.dim() == 2)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.LSTM(6, 10, 2, batch_first=True), (3, 7, 6)),
        (nn.LSTM(6, 10, bidirectional=True), (7, 3, 6)),
        (nn.LSTM(6, 10, 2, bidirectional=True, proj_size=4), (7, 1, 6)),
        (nn.LSTM(6, 10, bias=False), (7, 6)),
        (nn.GRU(6, 10, 3, bidirectional=True), (7, 1, 6)),
        (nn.RNN(6, 10, 2), (7, 1, 6)),
        (nn.RNN(6, 10, nonlinearity="relu", bidirectional=True), (7, 1, 6)),
    ],
)
def test_cells_layers_directions_and_projections(module, shape):
    """Weights of all layers at each of seven steps, whichever axis is the batch, or none."""
    found = nodes(module, torch.zeros(shape))
    assert macs_of(found) == 7 * products_by_hand(module)
    assert parameters_of(found) == own(module)
    assert not uncounted(found)


def test_a_tagger_and_a_classifier():
    """Tables, an LSTM both ways, a head at every place, and one on what is left at the end."""

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.lstm = nn.Embedding(50, 16), nn.LSTM(16, 24, 2, bidirectional=True)
            self.tags, self.kind = nn.Linear(48, 5), nn.Linear(96, 7)

        def forward(self, numbers):
            every, (last, _) = self.lstm(self.words(numbers).transpose(0, 1))
            return self.tags(every), self.kind(last.transpose(0, 1).flatten(1))

    module = Both()
    found = nodes(module, torch.zeros(2, 11, dtype=torch.long))
    assert macs_of(found) == 11 * (products_by_hand(module.lstm) + 48 * 5) + 96 * 7
    assert parameters_of(found) == own(module)
    assert not uncounted(found)


def test_a_frozen_recurrent_layer_learns_nothing():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru, self.head = nn.GRU(6, 10, batch_first=True), nn.Linear(10, 3)
            self.gru.requires_grad_(False)

        def forward(self, x):
            return self.head(self.gru(x)[0])

    module, x = Frozen(), torch.zeros(1, 7, 6)
    found = from_torch(module, x)
    assert sum(n.learned_weights + n.learned_parameters for n in found.nodes()) == 33
    forward = 7 * (30 * 16 + 30)
    job = Job(load(Method, "fp16"), load(Accounting, "full"), 1, "training")
    tasks = [task.work for task in all_tasks(found, job)]
    counted = sum(product(work.macs) for work in tasks if isinstance(work, Multiply))
    assert counted == forward + 7 * 30  # the head's dF; no signal goes further back


def test_what_comes_of_another_layer_s_state_is_listed():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = (nn.LSTM(6, 10, batch_first=True) for _ in range(2))

        def forward(self, x):
            _, state = self.one(x)
            return self.two(x, state)[0]

    found = nodes(Pair(), torch.zeros(1, 7, 6))
    assert uncounted(found) == ["way back to the initial state of lstm"] * 2
    assert macs_of(found) == 2 * 7 * 40 * 16


def test_cells_alone_are_listed_with_their_products():
    """A loop of the module's own: what goes from step to step is no layer here."""

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(6, 10)

        def forward(self, x):
            state = torch.zeros(x.shape[0], 10)
            for step in range(4):
                state = self.cell(x[:, step], state)
            return state

    module = Loop()
    found = nodes(module, torch.zeros(1, 4, 6))
    listed = [n.layer for n in found if n.layer.kind == "uncounted"]
    assert [one.known_macs for one in listed] == [30 * 16] * 4
    assert parameters_of(found) == own(module)


# Language models as Hugging Face's transformers writes them, written here once more; transformers
# 4.57.6 itself gave the same layers (Llama, Mistral, Qwen 2 and 3, Gemma 2, Phi 3) when tried.


class RMSNorm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x):
        wide = x.to(torch.float32)
        mean = wide.pow(2).mean(-1, keepdim=True)
        return self.weight * (wide * torch.rsqrt(mean + 1e-6)).to(x.dtype)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def tables(length, d):
    """Cosines and sines as buffers and positions make them, (1, 1, length, d)."""
    frequencies = 1 / 10_000 ** (torch.arange(0, d, 2).float() / d)
    angles = torch.arange(length)[:, None].float() * frequencies[None]
    angles = torch.cat((angles, angles), -1)
    return angles.cos()[None, None], angles.sin()[None, None]


def rotated(x):
    cos, sin = tables(x.shape[2], x.shape[3])
    return x * cos + rotate_half(x) * sin


def rotated_as_complex(x):
    """The form of Llama's own code: pairs of features are complex numbers."""
    cos, sin = tables(x.shape[2], x.shape[3] // 2 * 2)
    turns = torch.complex(cos[..., ::2], sin[..., ::2])
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


def repeat_kv(x, times):
    B, heads, L, d = x.shape
    return x[:, :, None].expand(B, heads, times, L, d).reshape(B, heads * times, L, d)


class LlamaBlock(nn.Module):
    def __init__(self, D, heads, kv_heads, hidden, *, how):
        super().__init__()
        self.heads, self.kv_heads, self.how, d = heads, kv_heads, how, D // heads
        self.norm1, self.norm2 = RMSNorm(D), RMSNorm(D)
        self.q, self.o = nn.Linear(D, D, bias=False), nn.Linear(D, D, bias=False)
        self.k, self.v = (nn.Linear(D, kv_heads * d, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(D, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, D, bias=False)

    def attention(self, x):
        B, L, D = x.shape
        d, times = D // self.heads, self.heads // self.kv_heads
        q, k, v = (part(x).view(B, L, -1, d).transpose(1, 2) for part in (self.q, self.k, self.v))
        turn = rotated_as_complex if self.how == "complex" else rotated
        q, k = turn(q), turn(k)
        if self.how in ("gqa", "complex"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        elif self.how == "interleave":
            k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif self.how == "sdpa":
            k, v = repeat_kv(k, times), repeat_kv(v, times)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            k, v = repeat_kv(k, times), repeat_kv(v, times)
            mask = torch.full((L, L), -1e9).triu(1)
            y = torch.softmax(q @ k.transpose(2, 3) * d**-0.5 + mask, -1) @ v
        return self.o(y.transpose(1, 2).reshape(B, L, D))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, D=64, heads=8, kv_heads=2, hidden=176, blocks=2, vocabulary=100, how="sdpa"):
        super().__init__()
        self.table = nn.Embedding(vocabulary, D)
        made = (LlamaBlock(D, heads, kv_heads, hidden, how=how) for _ in range(blocks))
        self.blocks, self.norm = nn.ModuleList(made), RMSNorm(D)
        self.head = nn.Linear(D, vocabulary, bias=False)

    def forward(self, numbers):
        x = self.table(numbers)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


SMALL = {"blocks": 2, "features": 64, "heads": 8, "kv_heads": 2, "hidden": 176, "vocabulary": 100}
VIEWS = {"reshape", "source"}  # and masks


def lines(found, *, left_out):
    return Counter(
        (n.layer.kind, getattr(n.layer, "heads", 0), getattr(n.layer, "kv_heads", 0) or 0,
         n.output_shape, n.macs, n.weights, n.other_parameters)
        for n in found if n.layer.kind not in left_out
    )  # fmt: skip


@pytest.mark.parametrize(
    ("how", "batch"),
    [("sdpa", 1), ("sdpa", 3), ("gqa", 1), ("eager", 2), ("interleave", 1), ("complex", 1)],
)
def test_a_llama_is_the_family_s_layer_by_layer(how, batch):
    """Eight tokens as eight heads, whose tables of angles are as long as there are channels."""
    module = Llama(how=how)
    found = nodes(module, torch.zeros(batch, 8, dtype=torch.long))
    family = family_member("llama-3.1-8b", SMALL | {"tokens": 8}).nodes()
    left_out = VIEWS | ({"add", "scale"} if how == "eager" else set())
    assert lines(found, left_out=left_out) == lines(family, left_out=left_out)
    assert parameters_of(found) == own(module)
    assert not uncounted(found)
    causal = {n.layer.causal for n in found if "attention" in n.layer.kind}
    assert causal == ({False} if how == "eager" else {True})  # a mask that is a tensor is not read


@pytest.mark.parametrize("how", ["sdpa", "gqa", "eager"])
def test_a_llama_multiplies_as_often_as_pytorch_counts(how):
    module = Llama(how=how).to("meta")
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        module(torch.zeros(1, 8, dtype=torch.long))
    found = nodes(Llama(how=how), torch.zeros(1, 8, dtype=torch.long))
    assert macs_of(found) == counter.get_total_flops() // 2


def test_keys_that_are_repeated_along_their_places_are_no_shared_heads():
    class Broadcast(nn.Module):
        def forward(self, q, k, v):
            k = k.expand(-1, -1, 5, -1)
            return torch.softmax(q @ k.transpose(2, 3), -1) @ v

    one, many = torch.zeros(1, 4, 1, 8), torch.zeros(1, 4, 5, 8)
    found = nodes(Broadcast(), many, one, many)
    assert not [n for n in found if getattr(n.layer, "kv_heads", None)]
    assert "expand" in {n.layer.kind for n in found}


def test_rotated_keys_that_go_elsewhere_too():
    """What is kept of keys for later tokens joins others behind the turn; features as (heads, d)."""

    class Joined(nn.Module):
        def forward(self, x, past):
            return torch.cat([past, rotated(x)], 2)

    found = nodes(Joined(), torch.zeros(1, 2, 5, 8), torch.zeros(1, 2, 3, 8))
    (turned,) = [n for n in found if n.layer.kind == "rotary"]
    assert (turned.layer.heads, turned.output_shape) == (2, (16, 5, 1))
    assert (found[-1].layer.kind, found[-1].output_shape) == ("concat", (2, 8, 8))


def test_what_only_looks_like_a_rotary_embedding_is_left_as_it_is():
    """Both halves with their own sign, and two factors of other tensors."""

    class Almost(nn.Module):
        def forward(self, x, y):
            cos, sin = tables(5, 8)
            half = torch.cat((x[..., 4:], x[..., :4]), -1)
            other = torch.cat((-y[..., 4:], y[..., :4]), -1)
            return x * cos + half * sin, x * cos + other * sin

    found = nodes(Almost(), torch.zeros(1, 2, 5, 8), torch.zeros(1, 2, 5, 8))
    assert "rotary" not in {n.layer.kind for n in found}


def test_tables_read_by_constants_are_stored_whole():
    """12 of 40 positions; a table of 9 relative positions read 16 times."""

    class Placed(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(100, 8), nn.Embedding(40, 8)
            self.relative = nn.Parameter(torch.zeros(9, 2))
            self.register_buffer("index", torch.arange(16) % 9)

        def forward(self, numbers):
            x = self.words(numbers) + self.places(torch.arange(numbers.shape[1]))
            return x.mean(1), self.relative[self.index].view(4, 4, 2)

    module = Placed()
    for batch in (1, 2):
        found = nodes(module, torch.zeros(batch, 12, dtype=torch.long))
        assert parameters_of(found) == own(module) == 100 * 8 + 40 * 8 + 18


def test_parts_of_no_length_are_left_out():
    """A turn of all features leaves none that pass by (Phi 3)."""

    class Passing(nn.Module):
        def forward(self, x):
            turned, passing = x[..., :8], x[..., 8:]
            return torch.cat([torch.relu(turned), passing], -1)

    found = nodes(Passing(), torch.zeros(1, 5, 8))
    assert [n.layer.kind for n in found] == ["activation"]


# Einsum, as modules write attention and heads with it


def test_C12_einsum_is_the_product_that_it_is():
    class Equations(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Parameter(torch.zeros(3, 32, 4, 8))
            self.out = nn.Parameter(torch.zeros(4, 8, 32))

        def forward(self, x):
            q, k, v = (torch.einsum("bid,dhe->bihe", x, part) for part in self.qkv)
            p = torch.softmax(torch.einsum("bihe,bjhe->bhij", q, k), -1)
            y = torch.einsum("bhij,bjhe->bihe", p, v)
            return torch.einsum("bihe,hed->bid", y, self.out)

    module, x = Equations(), torch.zeros(1, 10, 32)
    with FlopCounterMode(display=False) as counter:
        module(x)
    by_hand = 4 * 10 * 32 * 32 + 2 * 10 * 10 * 32
    for batch in (1, 2):
        found = nodes(module, torch.zeros(batch, 10, 32))
        assert macs_of(found) == counter.get_total_flops() // 2 == by_hand
        assert parameters_of(found) == own(module)
        kinds = [n.layer.kind for n in found if n.layer.kind != "reshape"]
        assert kinds == ["linear"] * 3 + [
            "attention-scores", "activation", "attention-context", "linear",
        ]  # fmt: skip


# Mixtures of experts: which rows an expert is sent is a matter of data


class Experts(nn.Module):
    def __init__(self, how, D=256, hidden=688, experts=8):
        super().__init__()
        self.how, self.gate = how, nn.Linear(D, experts, bias=False)
        three = [(D, hidden), (D, hidden), (hidden, D)]
        self.experts = nn.ModuleList(
            nn.ModuleList(nn.Linear(*one, bias=False) for one in three) for _ in range(experts)
        )

    def forward(self, x):
        shape, E = x.shape, len(self.experts)
        x = x.reshape(-1, shape[-1])
        shares, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2, -1)
        y = torch.zeros_like(x)
        for index, (gate, up, down) in enumerate(self.experts):
            if self.how == "where":
                rows, place = torch.where(chosen == index)
            else:
                place, rows = torch.where(F.one_hot(chosen, E).permute(2, 1, 0)[index])
            one = x[rows]
            made = down(F.silu(gate(one)) * up(one)) * shares[rows, place, None]
            y = y.index_add(0, rows, made) if self.how != "where" else y.index_put(
                (rows,), made, accumulate=True)  # fmt: skip
        return y.view(shape)


@pytest.mark.parametrize(("how", "batch"), [("where", 1), ("one-hot", 1), ("where", 2)])
def test_C15_experts_are_sent_even_shares_of_the_tokens(how, batch):
    """Two layers: 64 x 2 rows of 8 experts, 3 x 256 x 688 MACs a row, and a router of 256 x 8."""
    module = nn.Sequential(Experts(how), Experts(how))
    with pytest.warns(SpecWarning, match="shared evenly here, 16 rows for each"):
        found = nodes(module, torch.zeros(batch, 64, 256))
    experts = [n for n in found if ".experts." in n.layer.name and n.layer.kind == "linear"]
    assert macs_of(experts) == 135_266_304
    assert macs_of(found) == 135_266_304 + 2 * 64 * 256 * 8
    assert parameters_of(found) == own(module)
    assert {"topk", "index"} <= set(uncounted(found))  # what is not counted is listed


def test_C15_experts_that_are_chosen_by_the_data_alone_end_in_a_message():
    class Hit(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(6, 4)
            self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

        def forward(self, x):
            chosen = self.gate(x).argmax(-1).flatten()
            for index in chosen.unique():
                x = x + self.experts[int(index)](x)
            return x

    with pytest.raises(HwmodelError, match="depends on the data") as error:
        nodes(Hit(), torch.zeros(1, 5, 6))
    assert "dispatch" in str(error.value)
    assert "\n" not in str(error.value)


def test_rows_that_data_choose_of_no_router_are_listed():
    class Chosen(nn.Module):
        def forward(self, x):
            (rows,) = torch.where(x[:, 0] > 0)
            return torch.relu(x)[rows]

    found = nodes(Chosen(), torch.zeros(5, 3))
    assert uncounted(found)[-1].startswith("index")


# Convolutions along three axes


class Clips(nn.Module):
    """Windows that overlap and such that do not, groups, strides, transposes, one of one frame."""

    def __init__(self):
        super().__init__()
        self.one, self.norm = nn.Conv3d(3, 8, 3, padding=1, bias=False), nn.BatchNorm3d(8)
        self.two = nn.Conv3d(8, 12, (3, 5, 1), stride=(2, 1, 1), groups=4)
        self.pool, self.head = nn.AdaptiveAvgPool3d(1), nn.Linear(12, 5)
        self.patches = nn.Conv3d(3, 16, (2, 4, 4), (2, 4, 4))
        self.up = nn.ConvTranspose3d(12, 6, 2, stride=2)
        self.more = nn.ConvTranspose3d(6, 4, 3, stride=2, padding=1, output_padding=1)
        self.wide = nn.ConvTranspose3d(12, 6, (1, 3, 3))

    def forward(self, x):
        y = self.two(torch.relu(self.norm(self.one(x))))
        return (
            self.head(self.pool(y).flatten(1)),
            self.patches(x),
            self.more(self.up(y)),
            self.wide(y),
        )


def test_a_convolution_along_three_axes_without_a_batch():
    found = nodes(nn.Conv3d(3, 4, 3), torch.zeros(3, 5, 6, 7))
    assert macs_of(found) == 4 * 81 * 3 * 4 * 5


@pytest.mark.parametrize("batch", [1, 2])
def test_C12_convolutions_along_three_axes(batch):
    module = Clips()
    with FlopCounterMode(display=False) as counter:
        module(torch.zeros(1, 3, 6, 8, 8))
    found = nodes(module, torch.zeros(batch, 3, 6, 8, 8))
    assert macs_of(found) == counter.get_total_flops() // 2
    assert parameters_of(found) == own(module)
    assert uncounted(found) == ["sum of frames"] * 2
    views = [n.layer.name for n in found if n.layer.kind == "expand"]
    assert views == ["one.frames", "two.frames"]  # patches lie side by side


def test_initial_states_and_biases_of_scores_that_are_learned_are_parameters():
    """What is added to scores is a parameter, or comes of a table of relative positions."""

    class Learned(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru, self.state = (
                nn.GRU(8, 8, batch_first=True),
                nn.Parameter(torch.zeros(1, 1, 8)),
            )
            self.bias, self.table = nn.Parameter(torch.zeros(2, 5, 5)), nn.Embedding(9, 2)

        def forward(self, x):
            x = self.gru(x, self.state)[0].unflatten(-1, (2, 4)).transpose(1, 2)
            one = F.scaled_dot_product_attention(x, x, x, attn_mask=self.bias[None])
            places = torch.arange(5)[:, None] - torch.arange(5) + 4
            bias = self.table(places).permute(2, 0, 1)[None]
            two = F.scaled_dot_product_attention(one, one, one, attn_mask=bias)
            return two + F.scaled_dot_product_attention(x, x, x, attn_mask=torch.zeros(5, 5))

    module = Learned()
    found = nodes(module, torch.zeros(1, 5, 8))
    assert parameters_of(found) == own(module)
    assert [n.layer.kind for n in found].count("add") == 2 + 1  # a mask that is none is left out
    assert not uncounted(found)


def test_shifts_and_merged_patches_are_views():
    """As Swin has them: 8 x 6 places of 5 features, shifted; four of them side by side are one."""

    class Merged(nn.Module):
        def __init__(self):
            super().__init__()
            self.reduce = nn.Linear(20, 10)

        def forward(self, x):
            x = torch.roll(x, shifts=(-3, -3), dims=(1, 2))
            parts = [x[:, i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
            return self.reduce(torch.cat(parts, -1))

    for batch in (1, 2):
        found = nodes(Merged(), torch.zeros(batch, 8, 6, 5))
        assert not uncounted(found)
        assert sum(n.macs for n in found) == 4 * 3 * 20 * 10
        cut = [n for n in found if n.layer.kind == "slice"]
        assert sorted(prod(n.output_shape) for n in cut) == [60] * 4 + [120] * 4


def test_what_is_shifted_is_another_tensor_than_before():
    """A map times itself, shifted, multiplies two tensors, though both are of one."""

    class Shifted(nn.Module):
        def forward(self, x):
            return x.relu() * torch.roll(x.relu(), 1, 1)

    found = nodes(Shifted(), torch.zeros(1, 6, 5))
    assert [n.layer.kind for n in found] == ["activation", "activation", "reshape", "multiply"]


def test_a_step_that_does_not_divide_an_axis_is_listed():
    class Odd(nn.Module):
        def forward(self, x):
            return x[:, ::3].relu()

    assert uncounted(nodes(Odd(), torch.zeros(1, 7, 5))) == ["slice"]


LOWER = torch.ones(6, 6, dtype=torch.bool).tril()


def overwritten():
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    mask[0] = True
    return mask


MASKS = {
    "tril": lambda: torch.ones(6, 6, dtype=torch.bool).tril(),
    "arange": lambda: (torch.arange(6)[None, :] <= torch.arange(6)[:, None])[None, None],
    "full": lambda: torch.full((6, 6), float("-inf")).triu(1),
    "where": lambda: torch.where(LOWER, torch.tensor(0.0), torch.finfo(torch.float32).min),
    "strictly before": lambda: torch.ones(6, 6, dtype=torch.bool).tril(-1),
    "window": lambda: torch.ones(6, 6, dtype=torch.bool).tril().triu(-2),
    "upper": lambda: torch.full((6, 6), float("-inf")).tril(-1),
    "overwritten": overwritten,
    "slopes": lambda: torch.full((6, 6), -1.0).triu(1),
}


@pytest.mark.parametrize(("name", "batch"), [*((name, 1) for name in MASKS), ("arange", 2)])
def test_a_mask_of_constants_is_causal_where_it_is_exactly_that(name, batch):
    class Masked(nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x, x, attn_mask=MASKS[name]())

    found = nodes(Masked(), torch.zeros(batch, 2, 6, 4))
    causal = name in ("tril", "arange", "full", "where")
    attention = [n.layer.causal for n in found if n.layer.kind.startswith("attention")]
    assert attention == [causal] * 2
