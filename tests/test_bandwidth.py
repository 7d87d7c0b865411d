"""No card is asked for more than it has: published images/s x bytes of DRAM an image under `chip`."""

import csv
import os
from pathlib import Path

import pytest

from hwmodel import evaluate
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import replaced_all

LINES = (Path(__file__).parent / "data" / "resnet50_rates.csv").read_text().splitlines()
RATES = list(csv.DictReader(line for line in LINES if not line.startswith("#")))
CHIP = load(Accounting, "chip")
HELD = replaced_all(CHIP, {"counting.stationary": "filter", "counting.transfers": "upper"})
THOROUGH = pytest.mark.skipif(
    os.environ.get("HWMODEL_TESTS") != "thorough", reason="half a minute each"
)


def bytes_an_image(method, batch, mode, accounting, capacity="8 MiB"):
    """Of the Ascend with an L2 of some capacity."""
    chip = replaced_all(load(Hardware, "ascend"), {"levels.L2.capacity": capacity})
    report = evaluate("resnet50", chip, method, accounting=accounting, batch=batch, mode=mode)
    bits = sum(one.count for one in report.ledger.entries if one.memory == "L3")
    return bits / 8 / batch


def seen(run, each):
    cards = [row for row in RATES if row["run"] == run]
    for row in cards:
        asked = float(row["images_per_s"]) * each
        assert asked < 1e9 * float(row["bandwidth_GB_per_s"]), row
    return len(cards)


def test_inference_of_integers():
    """Both cards have 40 MB of L2 or more. Without fusion and residents 31,590 x 80.2 MB ask for
    2,534 of 1,935 GB/s; now images alone come in, and scores go out."""
    each = bytes_an_image("int8", 8, "inference", HELD, "40 MiB")
    assert each >= 224 * 224 * 3
    assert seen("inference int8", each) == 2
    full = evaluate(
        "resnet50", "ascend", "int8", batch=8, mode="inference",
        accounting=replaced_all(HELD, {"counting.residency": "none", "extras.elementwise": "streamed"}),
    )  # fmt: skip
    streamed = sum(e.count for e in full.ledger.entries if e.memory == "L3") / 64
    assert 31_590 * streamed > 1_935e9  # what was wrong


TRAINED = pytest.mark.parametrize(("method", "run"), [("fp", "fp32"), ("fp16", "fp16")])
ALONE = replaced_all(HELD, {"counting.residency": "none"})


@TRAINED
def test_training_where_nothing_stays(method, run):
    """On the smaller L2 of V100, 6 MB. What stays on the chip moves less than that: below."""
    each = bytes_an_image(method, 256, "training", ALONE, "6 MiB")
    assert each > 3 * 224 * 224  # the image
    assert seen(f"training {run}", each) == 2


@THOROUGH
@TRAINED
def test_training(method, run):
    each = bytes_an_image(method, 256, "training", HELD, "6 MiB")
    assert each < bytes_an_image(method, 256, "training", ALONE, "6 MiB")
    assert seen(f"training {run}", each) == 2
