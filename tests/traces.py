"""Traces made by hand: runs of conv-small, with the figures that a test asks for."""

from hwmodel.specs.trace import VERSION, Trace

# Layers of conv-small that compute sums, from its definition: kind, M, C, output rows (and
# columns), kernel, padding, terms of a sum with its bias.
CONV_SMALL = {
    "conv1": ("conv", 32, 1, 8, 3, 1, 10),
    "conv2": ("conv", 64, 32, 8, 3, 1, 288),
    "conv3": ("conv", 64, 64, 4, 3, 1, 576),
    "fc4": ("linear", 128, 256, 1, 1, 0, 256),
    "fc5": ("linear", 10, 128, 1, 1, 0, 129),
}
ENDS = ("conv1", "fc5")  # in full precision
# Sums, signals, votes and the optimizer's memory [bit] of what flips.
BITS = {"conv2": (9, 7, 6, 11), "conv3": (7, 6, 7, 9), "fc4": (8, 6, 10, 5)}
FULL = (None, 24, None, None)


def magnitudes(bits, zeros=0.0):
    return {
        "largest": 1.0, "rms": 0.5, "zero_share": zeros, "bits": bits, "rounded_zero_share": zeros,
        "octaves": [0.0] * 16,
    }  # fmt: skip


def trace(
    method="bold", accuracies=(0.5, 0.9), flip=0.25, weights="boolean", layers=CONV_SMALL,
    bits=BITS, zeros=0.0, validated=True, **run,
):  # fmt: skip
    """A trace of conv-small; `run` replaces fields of the run, `bits` widths of layers.

    On validation images, unless it is not `validated`, it is as accurate as on test images.
    """
    stated = {
        "tool": "0", "network": "conv-small", "method": method, "dataset": "d", "seed": 0,
        "epochs": max(2, len(accuracies)), "batch": 4, "train_images": 40, "test_images": 10, "validation_images": 10, "learning_rate": 1.0,
        "adam_rate": 0.1, "frozen": False, "reweighting": True, "scaling": True, "signal": "real",
        "logic": "xnor", "signal_error": 0.01, "network_digest": "0" * 64,
        "method_digest": "0" * 64, "data_digest": "0" * 64,
    } | run  # fmt: skip
    shapes = [
        {"name": name, "kind": kind, "weights": "real" if name in ENDS else weights,
         "N": stated["batch"], "M": M, "C": C, "HO": H, "WO": H, "HF": K, "WF": K, "stride": 1,
         "padding": pad, "fan_in": terms, "parameters": 1, "worst_sum_bits": None}
        for name, (kind, M, C, H, K, pad, terms) in layers.items()
    ]  # fmt: skip
    epochs = [
        {"epoch": i, "steps": 10 * i, "loss": 1.0, "train_accuracy": a, "accuracy": a,
         "validation_accuracy": a if validated else None,
         "layers": [_epoch(name, weights, flip, bits.get(name, FULL), zeros) for name in layers]}
        for i, a in enumerate(accuracies, start=1)
    ]  # fmt: skip
    return Trace.model_validate(
        {"version": VERSION, "run": stated, "layers": shapes, "epochs": epochs}
    )


def _epoch(name, weights, flip, bits, zeros):
    sums, signal, vote, memory = bits if weights == "boolean" else FULL
    flips = weights == "boolean" and vote is not None
    return {
        "name": name, "flip_rate": flip if flips else None,
        "preactivation": {
            "lowest": -(2 ** (sums or 1)) / 2, "highest": 2 ** (sums or 1) / 2 - 1, "mean": 0.0,
            "deviation": 1.0,
        },
        "sum_bits": sums, "signal": magnitudes(signal, zeros),
        "sent": magnitudes(signal) if name != "conv1" else None,
        "vote": magnitudes(vote, zeros) if flips else None,
        "optimizer_state": magnitudes(memory) if flips else None,
    }  # fmt: skip
