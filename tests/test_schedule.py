"""The entries of a ledger know their step and their tensor: a chain by hand, and the zoo."""

from math import fsum

import pytest

from hwmodel import evaluate
from hwmodel.graph.network import Network
from hwmodel.specs.files import validate
from tests.test_memory import CHAIN, FORK


def words(report, memory="L3"):
    """Words of 32 bit that a memory is asked for: by step, tensor and direction."""
    found = {}
    for one in report.ledger.entries:
        if one.memory == memory:
            key = str(report.memory.steps[one.step]), one.stored, str(one.direction)
            found[key] = found.get(key, 0) + one.count / 32
    return found


def test_a_chain_by_hand_what_dram_is_asked_for():
    """Everything fits into the chip's buffers, so each product moves its tensors once.

    Image 32, maps 48, 5 results, weights 6 and 240; Adam moves F, m and v each way.
    """
    report = evaluate(validate(Network, CHAIN, "net"), "ascend", "fp", accounting="full")
    assert words(report) == {
        ("forward of conv", "a:input", "read"): 32,
        ("forward of conv", "F:conv", "read"): 6,
        ("forward of conv", "a:conv", "write"): 48,
        ("forward of act", "a:conv", "read"): 48,
        ("forward of act", "a:act", "write"): 48,
        ("forward of fc", "a:act", "read"): 48,  # reshaped
        ("forward of fc", "F:fc", "read"): 240,
        ("forward of fc", "a:fc", "write"): 5,
        ("backward_weight of fc", "a:act", "read"): 48,
        ("backward_weight of fc", "d:fc", "read"): 5,
        ("backward_weight of fc", "dF:fc", "write"): 240,
        ("backward_input of fc", "d:fc", "read"): 5,
        ("backward_input of fc", "F:fc", "read"): 240,
        ("backward_input of fc", "d:flat", "write"): 48,
        ("backward_input of act", "d:flat", "read"): 48,
        ("backward_input of act", "a:act", "read"): 48,  # its own output gives the derivative
        ("backward_input of act", "d:conv", "write"): 48,
        ("backward_weight of conv", "a:input", "read"): 32,
        ("backward_weight of conv", "d:conv", "read"): 48,
        ("backward_weight of conv", "dF:conv", "write"): 6,
        **{
            (f"update of {layer}", name.format(layer), way): n
            for layer, n in (("conv", 6), ("fc", 240))
            for name in ("F:{}", "m(F):{}", "v(F):{}")
            for way in ("read", "write")
        },
        ("update of conv", "dF:conv", "read"): 6,
        ("update of fc", "dF:fc", "read"): 240,
    }


def test_a_fork_by_hand_reads_what_each_of_its_takers_gives():
    report = evaluate(validate(Network, FORK, "net"), "ascend", "fp", accounting="full")
    fork = {key: n for key, n in words(report).items() if key[1].startswith(("d:act", "d:sum"))}
    assert fork == {
        ("backward_input of fc", "d:sum", "write"): 48,  # of `two` and of the shortcut
        ("backward_weight of two", "d:sum", "read"): 48,
        ("backward_input of two", "d:sum", "read"): 48,
        ("backward_input of two", "d:act<two", "write"): 48,
        ("backward_input of act", "d:act<two + d:sum", "read"): 96,
        ("backward_input of act", "d:act", "write"): 48,
        ("backward_input of act", "d:act", "read"): 48,
    }


ZOO = [
    ("vgg-small", "fp", "full"), ("vgg-small", "xnor-net", "paper"), ("resnet18", "bold", "full"),
    ("densenet121", "fp", "paper"), ("bert-base", "bold-bert", "full"),
    ("bi-realnet-18", "real2binary", "full"), ("deeplabv3-resnet18", "binarynet", "paper"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "method", "accounting"), ZOO)
@pytest.mark.parametrize("mode", ["training", "inference"])
def test_every_entry_has_its_step_and_what_it_moves_lives_there(name, method, accounting, mode):
    report = evaluate(name, "tpuv4i", method, accounting=accounting, mode=mode)
    steps, lives = report.memory.steps, {one.name: one for one in report.memory.tensors}
    for one in report.ledger.entries:
        step = steps[one.step]
        assert (step.layer, step.pass_, step.component) == (one.layer, one.pass_, one.component)
        assert bool(one.stored) == bool(one.memory), one
        for tensor in one.stored.split(" + ") if one.stored else ():
            life = lives[tensor]
            assert life.first <= one.step <= life.last, one
    by_step = report.ledger.by("step").energies(report.prices)
    assert fsum(by_step.values()) == pytest.approx(report.energy, rel=1e-9)
    order = [steps[number].pass_ for (number,) in sorted(by_step)]
    assert order[0] == "forward"
    updated = mode == "training" and accounting == "full"  # `paper` counts no update
    assert (order[-1] == "update") == updated
