"""A network, a data set and a run so small that a whole training takes a blink."""

import numpy as np
from ruamel.yaml import YAML

from hwmodel.graph.network import NetworkFile
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.specs.training import Recipe, Training
from hwmodel.trainer.data import Dataset
from hwmodel.trainer.nets import build
from hwmodel.trainer.stack import stack
from hwmodel.trainer.train import Settings

BLOCK = """\
version: 1
name: block
title: One Boolean block with a shortcut
input: [1, 6, 6]
layers:
  - {name: conv1, kind: conv, channels: 5, kernel: 3, padding: 1, bias: true}
  - {name: bn1, kind: batch-norm}
  - {name: act1, kind: activation}
  - {name: conv2, kind: conv, channels: 7, kernel: 3, stride: 2, padding: 1}
  - {name: bn2, kind: batch-norm}
  - {name: act2, kind: activation}
  - {name: conv3, kind: conv, channels: 7, kernel: 3, padding: 1}
  - {name: side, kind: conv, channels: 7, kernel: 1, stride: 2, inputs: [act1]}
  - {name: sum, kind: add, inputs: [conv3, side]}
  - {name: pool, kind: max-pool, kernel: 2}
  - {name: bn3, kind: batch-norm}
  - {name: act3, kind: activation}
  - {name: fc4, kind: linear, features: 9}
  - {name: bn4, kind: batch-norm}
  - {name: act4, kind: activation}
  - {name: fc5, kind: linear, features: 10, bias: true}
"""


def network(*changes):
    """The block, with texts of its file replaced."""
    text = BLOCK
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return NetworkFile.model_validate(YAML(typ="safe", pure=True).load(text)).network()


WIDE = (
    ("[1, 6, 6]", "[1, 8, 8]"),
    ("channels: 5,", "channels: 16,"),
    ("channels: 7,", "channels: 32,"),
    ("features: 9}", "features: 64}"),
)


def method(name="bold"):
    return load(Method, name)


def training(epochs=3, images=70, **recipe):
    return Training(
        version=1, name="short", title="t", epochs=epochs, images=images, batch=16,
        recipe=Recipe(**recipe),
    )  # fmt: skip


def settings(name="bold", **options):
    return Settings(network(), method(name), training(), **options)


def net(name="bold", *changes, seed=0, **recipe):
    """The block, built."""
    return build(stack(network(*changes), method(name)), Recipe(**recipe), 16, seed)


def images(count=70, test=20):
    rng = np.random.default_rng(8)
    y = np.arange(count + test) % 10
    x = rng.standard_normal((count + test, 6, 6, 1)).astype(np.float32) * 0.3
    x[np.arange(count + test), y // 5 * 3, y % 5] += 3
    return Dataset("made", x[:count], y[:count], x[count:], y[count:], 10, "0" * 64)
