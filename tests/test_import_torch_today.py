"""PyTorch modules of today: recurrent layers, RMS norms, rotary embeddings, language models, experts.

Counts are by hand, or PyTorch's own counter's, which omits recurrent layers.
"""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from hwmodel.importers.torch import from_torch  # noqa: E402
from hwmodel.model.evaluate import all_tasks  # noqa: E402
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
