"""A network, a data set and a run so small that a whole training takes a blink."""

import numpy as np

from hwmodel.specs.files import load
from hwmodel.trainer.data import Dataset
from hwmodel.trainer.specs import MethodSpec, NetworkSpec
from hwmodel.trainer.train import Settings

BLOCK = """\
version: 1
name: block
title: One Boolean block with a shortcut
epochs: 3
batch: 16
layers:
  - {name: conv1, kind: conv, outputs: 5, kernel: 3, padding: 1, precision: full}
  - {name: act1, kind: activation}
  - {name: conv2, kind: conv, outputs: 7, kernel: 3, stride: 2, padding: 1}
  - {name: act2, kind: activation}
  - {name: conv3, kind: conv, outputs: 7, kernel: 3, padding: 1}
  - {name: side, kind: conv, outputs: 7, kernel: 1, stride: 2, input: act1}
  - {name: sum, kind: add, input: conv3, second: side}
  - {name: pool, kind: pool}
  - {name: act3, kind: activation}
  - {name: fc4, kind: linear, outputs: 9}
  - {name: act4, kind: activation}
  - {name: fc5, kind: linear, outputs: 10, precision: full}
"""


def network(wide=False):
    from ruamel.yaml import YAML

    text = BLOCK
    for few, many in ((5, 16), (7, 32), (9, 64)) if wide else ():
        text = text.replace(f"outputs: {few},", f"outputs: {many},")
        text = text.replace(f"outputs: {few}}}", f"outputs: {many}}}")
    return NetworkSpec.model_validate(YAML(typ="safe", pure=True).load(text))


def method(name="bold", **changes):
    return load(MethodSpec, name).model_copy(update=changes)


def settings(name="bold", **options):
    return Settings(network(), method(name), **options)


def images(count=70, test=20):
    rng = np.random.default_rng(8)
    y = np.arange(count + test) % 10
    x = rng.standard_normal((count + test, 6, 6, 1)).astype(np.float32) * 0.3
    x[np.arange(count + test), y // 5 * 3, y % 5] += 3
    return Dataset("made", x[:count], y[:count], x[count:], y[count:], 10, "0" * 64)
