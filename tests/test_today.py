"""Every row of tests/data/today is a test: the parameter of one, or of a kind that one reads whole."""

import csv
import importlib
from pathlib import Path

import pytest

pytest.importorskip("onnx")  # some rows are of its files

TODAY = Path(__file__).parent / "data" / "today"
MODULES = ("accumulation", "fused_attention", "generate", "import_onnx", "methods_of_today")
MODULES += ("number_formats", "recurrent", "spiking", "transformers")
# What a row begins with -> the tests that read it by its name or its number, or all under thorough.
READ_WITHIN = {
    ("formats.csv", "E8M0 scale"): ["number_formats.test_every_row_of_the_table_is_here"],
    ("generate_scan_spiking.csv", "decode floor"): ["generate.test_the_least_that_a_step_can_cost"],
    ("generate_scan_spiking.csv", "mamba decode"): [
        "generate.test_a_step_of_mamba_reads_and_writes_its_states"
    ],
    ("attention_recurrent_lora_moe.csv", "generate"): [
        "generate.test_a_model_that_was_really_run_multiplies_and_keeps_as_much"
    ],
    ("models.csv", "mixtral-small"): ["transformers.test_the_small_mixtral_that_was_run"],
    ("optimizers.csv", "lora, qlora"): [
        "methods_of_today.test_every_optimizer_of_the_table_is_known"
    ],
    ("unet.csv", "transformer block of SD-1.5, 320 features, 64 x 64, context 77 x 768"): [
        "transformers.test_the_block_of_a_diffusion_network_is_as_counted"
    ],
}
SPIKING = ["test_vgg_small_in_four_steps", "test_one_step_at_rate_1_is_the_network_of_additions"]
SPIKING += ["test_a_neuron_by_hand", "test_sew_resnet_as_published"]
for _name in ("spiking.csv", "generate_scan_spiking.csv"):
    READ_WITHIN[_name, "spiking"] = [f"spiking.{test}" for test in SPIKING]


def rows(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def parameters():
    """What tests are parametrized with: rows, or their first cells."""
    for module in map(module_of, MODULES):
        for name, test in vars(module).items():
            for mark in getattr(test, "pytestmark", ()) if name.startswith("test_") else ():
                if mark.name == "parametrize":
                    for one in mark.args[1]:
                        yield from one if isinstance(one, (tuple, list)) else [one]


def module_of(name):
    return importlib.import_module(f"tests.test_{name}")


def key(row):
    return tuple(map(str, row.items()))


def test_tests_that_read_rows_within_are_there():
    for place in (place for places in READ_WITHIN.values() for place in places):
        module, _, name = place.partition(".")
        assert callable(getattr(module_of(module), name, None)), place


@pytest.mark.parametrize("path", sorted(TODAY.glob("*.csv")), ids=lambda path: path.stem)
def test_every_row_has_a_test(path):
    given = list(parameters())
    whole = {key(one) for one in given if isinstance(one, dict)}
    names = {one for one in given if isinstance(one, str)}
    for row in rows(path):
        first = next(iter(row.values()))
        by_name = first in names and path.name in ("formats.csv", "optimizers.csv")
        assert key(row) in whole or by_name or (path.name, first) in READ_WITHIN, row
