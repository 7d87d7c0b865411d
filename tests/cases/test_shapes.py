"""A: real networks and layer shapes; B: counting rules on small shapes.

MACs = N M P Q (C/g) R S; output rows = floor((H + p1 + p2 - d (k - 1) - 1) / s) + 1.
"""

import pytest

from tests.conftest import total


def conv(channels, kernel, **fields):
    return {"name": "c", "kind": "conv", "channels": channels, "kernel": kernel} | fields


# id, input, channels, kernel, other fields, output rows and columns, MACs (None: not stated), weights
CONVOLUTIONS = [
    ("A1", (96, 27, 27), 256, 5, {"padding": 2, "groups": 2}, (27, 27), 223_948_800, 307_200),
    ("A1-ungrouped", (96, 27, 27), 256, 5, {"padding": 2}, (27, 27), 447_897_600, 614_400),
    ("A3-224-p0", (3, 224, 224), 96, 11, {"stride": 4}, (54, 54), None, 34_848),
    ("A3-227-p0", (3, 227, 227), 96, 11, {"stride": 4}, (55, 55), 105_415_200, 34_848),
    ("A3-224-p2", (3, 224, 224), 96, 11, {"stride": 4, "padding": 2}, (55, 55), None, 34_848),
    ("A4", (3, 227, 227), 64, 11, {"stride": 4}, (55, 55), 70_276_800, 23_232),
    ("A6", (32, 112, 112), 32, 3, {"padding": 1, "groups": 32}, (112, 112), 3_612_672, 288),
    ("A7", (512, 13, 13), 512, 3, {"padding": 1, "groups": 512}, (13, 13), 778_752, 4_608),
    ("A10", (3, 224, 224), 64, 7, {"stride": 2, "padding": 3}, (112, 112), 118_013_952, 9_408),
    ("A10-squeezenet", (3, 224, 224), 64, 3, {"stride": 2}, (111, 111), None, 1_728),
    ("A13", (3, 224, 224), 8, 3, {"padding": [1, 2, 0, 3]}, (223, 227), None, 216),
    ("A14", (3, 224, 224), 8, 3, {"stride": [2, 1], "padding": 1}, (112, 224), None, 216),
    ("A16", (300, 16, 16), 12, 3, {"padding": 1}, (16, 16), 8_294_400, 32_400),
    ("A18", (4, 32, 32), 4, 3, {"dilation": 18, "padding": 18}, (32, 32), None, 144),
    ("A29", (3, 600, 1000), 64, 7, {"stride": 2, "padding": 3}, (300, 500), 1_411_200_000, 9_408),
    ("A29-300", (3, 300, 300), 64, 7, {"stride": 2, "padding": 3}, (150, 150), 211_680_000, 9_408),
    ("B6", (64, 56, 56), 64, 3, {"stride": 2, "padding": 1}, (28, 28), 28_901_376, 36_864),
    ("B7", (32, 128, 1), 32, [3, 1], {"stride": [2, 1], "padding": [4, 0]}, (67, 1), 205_824, 3_072),
    ("B12", (1, 4, 4), 2, 2, {"padding": [0, 0, 1, 1]}, (4, 4), 128, 8),
    ("B13-valid", (1, 128, 128), 128, 3, {}, (126, 126), 18_289_152, 1_152),
    ("B13-same", (1, 128, 128), 128, 3, {"padding": 1}, (128, 128), 18_874_368, 1_152),
    ("B16", (5, 11, 13), 7, 3, {"padding": 1}, (11, 13), 45_045, 315),
    ("D1", (64, 32, 32), 64, 3, {"padding": 1}, (32, 32), 37_748_736, 36_864),
]  # fmt: skip


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda case: case[0])
def test_convolutions_that_broke_other_tools(shown, case):
    _, given, channels, kernel, fields, (rows, columns), macs, weights = case
    row = shown([conv(channels, kernel, **fields)], given)["c"]
    assert (int(row["C"]), int(row["H"]), int(row["W"])) == (channels, rows, columns)
    assert int(row["weights"]) == weights
    assert int(row["macs"]) == weights * rows * columns
    assert macs in (None, int(row["macs"]))


def test_A5_depthwise_layers_are_not_full_ones(shown):
    rows = shown("mobilenet-v1").values()
    convolutions = [row for row in rows if row["kind"] == "conv"]
    assert total(rows, "macs") == 568_740_352
    assert total(convolutions, "macs") == 567_716_352
    depthwise = [row for row in convolutions if int(row["weights"]) == 9 * int(row["C"])]
    assert total(depthwise, "macs") == 17_385_984
    ungrouped = sum(int(row["macs"]) * int(row["C"]) for row in depthwise)
    assert total(rows, "macs") - total(depthwise, "macs") + ungrouped == 4_828_758_016


def test_A6_and_B5_a_depthwise_layer_sums_over_no_channel_in_any_pass(reported, shown, tmp_path):
    """Not one output channel that reduces over 32; forward, dX and dW have the same products."""
    first = {"name": "first", "kind": "conv", "channels": 32, "kernel": 1}
    last = {"name": "last", "kind": "linear", "features": 2}
    depthwise = conv(32, 3, padding=1, groups=32)
    row = shown([first, depthwise, last], (3, 112, 112))["c"]
    assert int(row["C"]) * int(row["H"]) * int(row["W"]) == 401_408
    rows = reported("net.yaml")
    for phase in ("forward", "backward_input", "backward_weight"):
        asked = {"layer": "c", "direction": "operate", "pass_": phase}
        assert total(rows, "count", **asked) == 3_612_672
    outputs = {"layer": "c", "tensor": "O", "memory": "L3"}
    assert total(rows, "elements", **outputs) == 401_408  # each written once: no partial sums
    assert not [r for r in rows if (r["layer"], r["pass"]) == ("first", "backward_input")]


@pytest.mark.parametrize("strict", [False, True])
def test_A8_operators_without_a_model_are_listed_or_refused(hwmodel, tmp_path, strict):
    layers = "[{name: c, kind: conv, channels: 4, kernel: 3}, {name: s, kind: uncounted, operator: SiluConv}]"
    (tmp_path / "net.yaml").write_text(
        f"version: 1\nname: n\ntitle: t\ninput: [3, 8, 8]\nlayers: {layers}\n"
    )
    options = ("--hardware", "ascend", "--method", "fp", "--csv", "-", *(["--strict"] * strict))
    code, out, err = hwmodel("report", "net.yaml", *options, "--accounting", "paper")
    if strict:
        assert (code, out) == (2, "")
        assert "layer s is the operator 'SiluConv', which has no model" in err
    else:
        assert code == 0
        assert "SiluConv, an operator without a model: 1 layer" in err
        assert "144 output elements (50.0 % of all) an image" in err


def test_A11_images_multiply_the_work_and_the_batch_is_told(hwmodel, reported, shown):
    shown([conv(64, 7, stride=2, padding=3)])
    rows = reported("net.yaml", "--batch", "10", "--mode", "inference")
    assert total(rows, "count", direction="operate") == 1_180_139_520  # 10 x 118,013,952
    assert {row["batch"] for row in rows} == {"10"}
    out = hwmodel(
        "report",
        "net.yaml",
        "--hardware",
        "ascend",
        "--method",
        "fp",
        "--batch",
        "10",
        "--csv",
        "x.csv",
        "--accounting",
        "paper",
    )[1]
    assert "one training iteration of 10 images" in " ".join(out.split())


def test_A15_a_transition_is_in_every_concat_of_its_block(shown):
    rows = shown("densenet121")
    points = [rows[f"block1.{index}.conv1"] for index in range(1, 7)]
    assert [int(row["weights"]) // 128 for row in points] == [64, 96, 128, 160, 192, 224]
    assert (int(points[0]["macs"]), int(points[5]["macs"])) == (25_690_112, 89_915_392)
    assert {int(rows[f"block1.{index}.conv2"]["macs"]) for index in range(1, 7)} == {115_605_504}
    assert total(rows.values(), "macs", kind="conv") == 2_833_137_664
    assert total(rows.values(), "macs") == 2_834_161_664


def test_A18_a_kernel_larger_than_its_padded_input_is_refused(refused, tmp_path):
    (tmp_path / "net.yaml").write_text(
        "version: 1\nname: n\ntitle: t\ninput: [4, 32, 32]\nlayers:\n"
        "  - {name: c, kind: conv, channels: 4, kernel: 3, dilation: 18}\n"
    )
    assert refused("network", "check", "net.yaml") == (
        "net.yaml:6: layer c: the effective kernel spans 37 rows, more than the 32 of its input (4, 32, 32) "
        "with padding [0, 0, 0, 0]"
    )


def test_A19_dilation_costs_through_the_larger_map_alone(shown):
    """A stage at stride 1 and dilation 4 instead of stride 2: four times the work, for the map's sake."""
    strided = shown([conv(64, 3, stride=2, padding=1)], (64, 28, 28))["c"]
    dilated = shown([conv(64, 3, padding=4, dilation=4)], (64, 28, 28))["c"]
    plain = shown([conv(64, 3, padding=1)], (64, 28, 28))["c"]
    assert int(dilated["macs"]) == int(plain["macs"]) == 4 * int(strided["macs"])


def test_A21_groups_divide_the_work_exactly(shown):
    one, four = (shown([conv(256, 3, padding=1, groups=g)], (64, 48, 48))["c"] for g in (1, 4))
    assert int(one["macs"]) == 4 * int(four["macs"]) == 64 * 256 * 9 * 48 * 48


def test_A22_a_pixel_shuffle_computes_nothing_and_moves_every_word(reported, shown):
    """Read and written once through every level: nothing is fused, as docs/limits.md says."""
    row = shown([{"name": "up", "kind": "pixel-shuffle", "factor": 2}], (256, 360, 640))["up"]
    assert (row["C"], row["H"], row["W"], row["macs"]) == ("64", "720", "1280", "0")
    rows = reported("net.yaml", "--accounting", "full", "--mode", "inference")
    for tensor in "IO":
        assert total(rows, "elements", tensor=tensor, memory="L3") == 58_982_400
    assert not [row for row in rows if row["operation"]]


def test_A24_bert_has_its_feed_forward_layers_in_all_blocks(shown):
    rows = [row for name, row in shown("bert-base").items() if name.startswith("layer")]
    assert 2 * total(rows, "macs") == 22_347_251_712  # FLOPs of 12 layers at 128 tokens


def test_A28_first_and_last_layers_are_full_precision_and_few_of_the_products(shown):
    rows = shown("vgg-small-1fc", method="bold")
    products = [row for row in rows.values() if row["macs"] != "0"]
    full = [row for row in products if row["weight_bits"] == "32"]
    assert [int(row["macs"]) for row in full] == [3_538_944, 81_920]
    assert total(products, "macs", kind="conv") == 607_518_720
    assert {row["weight_bits"] for row in products} == {"32", "1"}


def test_B1_groups_of_one_channel_and_of_two_are_not_equal(shown):
    given = (24, 222, 222)
    assert shown([conv(24, 3, groups=24)], given)["c"]["macs"] == "10454400"
    two = [conv(12, 3, groups=12, name=name, inputs=["input"]) for name in ("a", "b")]
    assert total(shown(two, given).values(), "macs") == 2 * 10_454_400


def test_B2_a_transposed_convolution_counts_as_what_it_transposes(shown):
    up = {"name": "up", "kind": "conv-transpose", "channels": 1, "kernel": 2, "stride": 2}
    row = shown([up], (3, 2, 2))["up"]
    assert (row["C"], row["H"], row["W"], row["macs"]) == ("1", "4", "4", "48")
    assert shown([conv(3, 2, stride=2)], (1, 4, 4))["c"]["macs"] == "48"


def test_B9_tokens_multiply_the_work(shown):
    layer = {"name": "fc", "kind": "linear", "features": 128, "over": "channels"}
    assert shown([layer], (128, 128, 1))["fc"]["macs"] == "2097152"


def test_B11_a_mac_is_one_multiplication_and_one_addition_and_is_called_mac(shown, hwmodel):
    rows = shown("mlp-784-512-512-10")
    assert total(rows.values(), "macs") == 668_672
    assert "flop" not in hwmodel("network", "show", "mlp-784-512-512-10")[1].lower()


@pytest.mark.parametrize(("accounting", "elements"), [("full", 16), ("paper", 25)])
def test_B12_zero_padding_is_fetched_only_where_the_accounting_says_so(
    reported, shown, accounting, elements
):
    """A 4 x 4 image in a same convolution of 2 x 2 taps: 16 elements exist, 25 with the padding."""
    shown([conv(2, 2, padding=[0, 0, 1, 1])], (1, 4, 4))
    rows = reported("net.yaml", "--accounting", accounting, "--mode", "inference")
    assert total(rows, "elements", tensor="I", memory="L3") == elements
    assert total(rows, "count", direction="operate", component="product") == 128
    read_by_macs = total(rows, "elements", tensor="I", memory="L0-A", direction="read")
    assert (
        read_by_macs == {"full": 49, "paper": 64}[accounting]
    )  # one of 2 filters' worth: 98 / 2 or 128 / 2


def test_B14_layers_in_lists_in_lists_count_as_flat_ones(shown):
    inner = [conv(4, 3, padding=1), {"name": "a", "kind": "activation"}]
    nested = shown([{"name": "r", "repeat": 2, "layers": inner}], (4, 9, 9))
    flat = shown(
        [layer | {"name": f"{layer['name']}{k}"} for k in range(2) for layer in inner], (4, 9, 9)
    )
    assert [row["macs"] for row in nested.values()] == [row["macs"] for row in flat.values()]
    assert total(nested.values(), "macs") == 2 * 4 * 4 * 9 * 9 * 9


def test_B15_a_bias_is_a_parameter_and_no_mac_and_its_addition_is_told_as_left_out(hwmodel, shown):
    rows = [shown([conv(8, 3, bias=bias)], (3, 9, 9))["c"] for bias in (False, True)]
    assert rows[0]["macs"] == rows[1]["macs"]
    assert [row["other_parameters"] for row in rows] == ["0", "8"]
    for accounting in ("paper", "full"):
        said = hwmodel("report", "net.yaml", "--hardware", "ascend", "--method", "fp", "--accounting", accounting,
                       "--csv", "-")[2]  # fmt: skip
        assert "biases" in said


def test_B15_operations_that_are_no_mac_have_rows_of_their_own(reported, shown):
    """A 3 x 3 maximum takes 8 comparisons, a softmax 3 additions and 2 special functions an element."""
    pool = {"name": "p", "kind": "max-pool", "kernel": 3}
    soft = {"name": "s", "kind": "activation", "function": "softmax"}
    shown([pool, soft], (2, 9, 9))
    rows = reported("net.yaml", "--accounting", "full", "--mode", "inference")
    counted = {(r["layer"], r["operation"]): int(r["count"]) for r in rows if r["operation"]}
    assert counted == {("p", "add"): 8 * 18, ("s", "add"): 3 * 18, ("s", "special"): 2 * 18}
