"""Bundled families beside modules of the same structure, by a framework's own operation counter.

The modules are written here, on torch's meta device, and share nothing with the families. The
counter counts two operations for a multiply-accumulate, attention among them. It sees no embedding.
"""

import pytest

from hwmodel.graph.network import family_member
from hwmodel.importers.load import load_network
from tests.test_transformers import macs, parameters

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def attention(q, k, v, heads, kv_heads=None, causal=False):
    """(B, L, features), heads apart, in torch's own function; the same back."""
    q = q.unflatten(-1, (heads, -1)).transpose(1, 2)
    k, v = (x.unflatten(-1, (kv_heads or heads, -1)).transpose(1, 2) for x in (k, v))
    grouped = kv_heads not in (None, heads)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)
    return y.transpose(1, 2).flatten(2)


class Packed(nn.Module):
    """A block of GPT-2 and ViT: norms before attention and before two layers."""

    def __init__(self, D, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        y = attention(*self.qkv(self.norm1(x)).chunk(3, -1), self.heads, causal=self.causal)
        x = x + self.o(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks = nn.Sequential(*(Packed(768, 12, True) for _ in range(12)))
        self.norm = nn.LayerNorm(768)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(1024, device=tokens.device))
        return self.norm(self.blocks(x)) @ self.words.weight.T


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 768, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, 768))
        self.places = nn.Parameter(torch.zeros(1, 197, 768))
        self.blocks = nn.Sequential(*(Packed(768, 12, False) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class SwinBlock(nn.Module):
    def __init__(self, D, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.bias = nn.Parameter(torch.zeros(13 * 13, heads))
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        B, H, W, D = x.shape
        y = self.norm1(x).view(B, H // 7, 7, W // 7, 7, D).transpose(2, 3).reshape(-1, 49, D)
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for z in self.qkv(y).chunk(3, -1))  # fmt: skip
        weights = (q @ k.transpose(-2, -1)).softmax(-1)  # the bias is a sum, and no product
        y = self.o((weights @ v).transpose(1, 2).flatten(2))
        y = y.view(B, H // 7, W // 7, 7, 7, D).transpose(2, 3).reshape(B, H, W, D)
        x = x + y
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.Conv2d(3, 96, 4, 4), ToLast(), nn.LayerNorm(96)]
        for stage, (blocks, heads) in enumerate(zip((2, 2, 6, 2), (3, 6, 12, 24), strict=True)):
            D = 96 * 2**stage
            parts += [Merge(D // 2)] if stage else []
            parts += [SwinBlock(D, heads) for _ in range(blocks)]
        self.parts, self.norm = nn.Sequential(*parts), nn.LayerNorm(768)
        self.head = nn.Linear(768, 1000)

    def forward(self, x):
        return self.head(self.norm(self.parts(x)).mean((1, 2)))


class ToLast(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1)


class Merge(nn.Module):
    def __init__(self, D):
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(4 * D), nn.Linear(4 * D, 2 * D, bias=False)

    def forward(self, x):
        four = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.layer(self.norm(torch.cat(four, -1)))


class ConvNeXtBlock(nn.Module):
    def __init__(self, D):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(D, D, 7, padding=3, groups=D), nn.LayerNorm(D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
        self.factor = nn.Parameter(torch.ones(D))

    def forward(self, x):
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        y = self.factor * self.down(F.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class Norm2d(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        parts, before = [nn.Conv2d(3, 96, 4, 4), Norm2d(96)], 96
        for D, blocks in zip((96, 192, 384, 768), (3, 3, 9, 3), strict=True):
            parts += [Norm2d(before), nn.Conv2d(before, D, 2, 2)] if before < D else []
            parts += [ConvNeXtBlock(D) for _ in range(blocks)]
            before = D
        self.parts, self.norm = nn.Sequential(*parts), nn.LayerNorm(768)
        self.head = nn.Linear(768, 1000)

    def forward(self, x):
        return self.head(self.norm(self.parts(x).mean((2, 3))))


class LlamaBlock(nn.Module):
    """Heads that share keys; its own layers after attention, or experts."""

    def __init__(self, D, heads, kv, hidden, experts=0):
        super().__init__()
        self.heads, self.kv = heads, kv
        self.norm1, self.norm2 = nn.RMSNorm(D), nn.RMSNorm(D)
        self.q, self.o = nn.Linear(D, D, bias=False), nn.Linear(D, D, bias=False)
        self.k, self.v = (nn.Linear(D, D * kv // heads, bias=False) for _ in "kv")
        self.router = nn.Linear(D, experts, bias=False) if experts else None
        self.ways = nn.ModuleList(
            nn.ModuleList(
                [nn.Linear(D, hidden, bias=False), nn.Linear(D, hidden, bias=False),
                 nn.Linear(hidden, D, bias=False)]
            )
            for _ in range(experts or 1)
        )  # fmt: skip

    def forward(self, x):
        y = self.norm1(x)
        y = attention(self.q(y), self.k(y), self.v(y), self.heads, self.kv, causal=True)
        x = x + self.o(y)
        y = self.norm2(x)
        if self.router is None:
            return x + self.way(0, y)
        self.router(y)
        tokens = y.flatten(0, 1).repeat(2, 1)  # two experts a token, tokens spread evenly
        parts = tokens.chunk(len(self.ways))
        out = torch.cat([self.way(e, part) for e, part in enumerate(parts)])
        return x + out.view(2, *y.shape).sum(0)

    def way(self, number, x):
        gate, up, down = self.ways[number]
        return down(F.silu(gate(x)) * up(x))


class Decoder(nn.Module):
    def __init__(self, blocks, D, heads, kv, hidden, vocabulary, experts=0):
        super().__init__()
        self.words = nn.Embedding(vocabulary, D)
        listed = (LlamaBlock(D, heads, kv, hidden, experts) for _ in range(blocks))
        self.blocks, self.norm = nn.Sequential(*listed), nn.RMSNorm(D)
        self.head = nn.Linear(D, vocabulary, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.words(tokens))))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10000, 650)
        self.cells = nn.ModuleList(nn.LSTMCell(650, 650) for _ in range(2))
        self.head = nn.Linear(650, 10000)

    def forward(self, tokens):
        x = self.words(tokens).unbind(1)
        for cell in self.cells:
            state, given = None, []
            for step in x:
                state = self.step(cell, step, state)
                given.append(state[0])
            x = given
        return self.head(torch.stack(x, 1))

    def step(self, cell, x, state):
        """A cell by its products, since the fused one has no formula in the counter."""
        h, c = state or (torch.zeros_like(x), torch.zeros_like(x))
        gates = F.linear(x, cell.weight_ih, cell.bias_ih) + F.linear(
            h, cell.weight_hh, cell.bias_hh
        )
        i, f, g, o = gates.chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class Mamba(nn.Module):
    """One token of a block; of the scan the counter sees y = C h alone."""

    def __init__(self, D=768, states=16):
        super().__init__()
        self.states, inner, rank = states, 2 * D, D // 16
        self.norm, self.in_proj = nn.RMSNorm(D), nn.Linear(D, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner)  # on the three columns before, too
        self.x_proj = nn.Linear(inner, rank + 2 * states, bias=False)
        self.dt_proj, self.out_proj = nn.Linear(rank, inner), nn.Linear(inner, D, bias=False)
        self.A, self.D = nn.Parameter(torch.ones(inner, states)), nn.Parameter(torch.ones(inner))

    def forward(self, x, before, h):
        u, z = self.in_proj(self.norm(x)).chunk(2, -1)
        u = F.silu(self.conv(torch.cat([before, u.unsqueeze(-1)], -1)).squeeze(-1))
        dt, B, C = self.x_proj(u).split([self.D.shape[0] // 32, self.states, self.states], -1)
        dt = F.softplus(self.dt_proj(dt)).unsqueeze(-1)
        h = (dt * -self.A.exp()).exp() * h + dt * u.unsqueeze(-1) * B.unsqueeze(1)
        y = torch.bmm(h, C.unsqueeze(-1)).squeeze(-1) + self.D * u
        return x + self.out_proj(y * F.silu(z))


def counted(module, *given):
    with FlopCounterMode(display=False) as counter:
        module(*given)
    return counter.get_total_flops() // 2, sum(p.numel() for p in module.parameters())


def tokens(length):
    return torch.zeros(1, length, dtype=torch.long, device="meta")


def image():
    return torch.zeros(1, 3, 224, 224, device="meta")


SMALL_LLAMA = {"blocks": 1, "features": 4096, "heads": 32, "kv_heads": 8, "hidden": 14336}
MODELS = {
    "gpt2": (GPT2, lambda: tokens(1024), "gpt2", {}),
    "vit-b-16": (ViT, image, "vit-b-16", {}),
    "swin-t": (Swin, image, "swin-t", {}),
    "convnext-t": (ConvNeXt, image, "convnext-t", {}),
    "a block of llama-3.1-8b": (
        lambda: Decoder(1, 4096, 32, 8, 14336, 128256), lambda: tokens(512), "llama-3.1-8b",
        SMALL_LLAMA | {"tokens": 512},
    ),
    "a block of mixtral-8x7b": (
        lambda: Decoder(1, 4096, 32, 8, 14336, 32000, 8), lambda: tokens(512), "mixtral-8x7b",
        SMALL_LLAMA | {"tokens": 512},
    ),
    "lstm-ptb-medium": (LSTM, lambda: tokens(35), "lstm-ptb-medium", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_family_is_what_a_framework_counts(name):
    module, given, family, changes = MODELS[name]
    with torch.device("meta"):
        built = module()
    found = family_member(family, changes) if changes else load_network(family)
    assert (macs(found), parameters(found)) == counted(built, given())


def test_a_layer_of_mamba_is_what_a_framework_counts():
    """A token: all but the embedding and the head, and y = C h, 16 a feature, which is no product."""
    with torch.device("meta"):
        built = Mamba()
        given = torch.zeros(1, 768), torch.zeros(1, 1536, 3), torch.zeros(1, 1536, 16)
    one, two = (family_member("mamba-130m", {"tokens": 1, "blocks": n}) for n in (1, 2))
    layer = macs(two) - macs(one) + 1536 * 16, parameters(two) - parameters(one)
    assert layer == counted(built, *given)
