"""Mamba: blocks of two linear layers around a short convolution and a selective scan.

Source: Gu and Dao, Mamba, arXiv:2312.00752, figure 3 and section 3.4; configuration of the
published checkpoints: twice the features inside, 16 states, a convolution of 4, D / 16 features
for dt; the head uses the embedding's table. The convolution sees what is before a place alone.
"""

from __future__ import annotations

from typing import Any, Literal

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import Wiring
from hwmodel.graph.layers import Conv, Scan

__all__ = ["network"]

KERNEL = 4


def network(
    *,
    blocks: int,
    features: int,
    vocabulary: int,
    states: int = 16,
    tokens: int = 512,
    scan: Literal["fused", "materialised"] = "fused",
) -> dict[str, Any]:
    """Input and layers.

    Args:
        vocabulary: rows of the table, as the checkpoint has them.
        states: of each feature.
        tokens: length of a sequence.
        scan: whether in one kernel, in which states stay on the chip.
    """
    net = Wiring()
    x = parts.table(net, "embedding", vocabulary, features)
    for index in range(blocks):
        x = _block(net, f"layers.{index}", x, features, states, scan)
    parts.head(net, parts.rms_norm(net, "norm", x), vocabulary, "embedding")
    return {"input": (1, tokens, 1), "layers": net.layers}


def _block(net: Wiring, name: str, x: str, features: int, states: int, scan: Any) -> str:
    inner, rank = 2 * features, -(-features // 16)
    y = parts.rms_norm(net, f"{name}.norm", x)
    y = parts.linear(net, f"{name}.in_proj", y, 2 * inner, "in")
    z = net.channels(f"{name}.z", y, inner, 2 * inner)
    u = net.put(
        Conv(
            name=f"{name}.conv1d", kind="conv", role="depthwise", channels=inner, groups=inner,
            inputs=(net.channels(f"{name}.x", y, 0, inner),), kernel=(KERNEL, 1),
            padding=(KERNEL - 1, 0, 0, 0), bias=True,
        )
    )  # fmt: skip
    u = net.act(f"{name}.swish", u, "swish")
    three = parts.linear(net, f"{name}.x_proj", u, rank + 2 * states, "selection")
    dt = net.channels(f"{name}.rank", three, 0, rank)
    dt = parts.linear(net, f"{name}.dt_proj", dt, inner, "selection", bias=True)
    B = net.channels(f"{name}.B", three, rank, rank + states)
    C = net.channels(f"{name}.C", three, rank + states, rank + 2 * states)
    of = (u, dt, B, C, z)
    y = net.put(Scan(name=f"{name}.scan", kind="scan", inputs=of, states=states, scan=scan))
    return net.add(f"{name}.sum", parts.linear(net, f"{name}.out_proj", y, features, "out"), x)
