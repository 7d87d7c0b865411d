"""A trace as a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from hwmodel.errors import DataError
from hwmodel.specs.trace import Trace, named, which

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Draw = Callable[[Axes, Trace, list[int]], None]

__all__ = ["signals_figure", "training_figure"]


def training_figure(
    trace: Trace,
    width: float = 11.1,
    height: float = 3.2,
    *,
    upright: bool = False,
    titled: bool = True,
) -> Figure:
    """Loss, accuracy, and the flip rate of every layer, over the steps of a run.

    The flip rate is left out where no weight is Boolean.

    Args:
        width: of the figure [inch].
        height: of a panel [inch].
        upright: whether panels stand below one another.
        titled: whether a title stands above them.
    """
    flipping = any(layer.flip_rate is not None for e in trace.epochs for layer in e.layers)
    draws = [_losses, _accuracies, *([_flips] if flipping else [])]
    return _panels(trace, draws, width, height, upright, titled)


def signals_figure(
    trace: Trace,
    width: float = 11.1,
    height: float = 3.2,
    *,
    upright: bool = False,
    titled: bool = True,
) -> Figure:
    """Mean and deviation of the signal that each layer receives, and its flips, over the steps.

    Args: as `training_figure`.

    Raises: DataError for a trace from before means were measured.

    Source: what BOLD shows of a run, by layer and epoch: its figures 4 and 5.
    """
    layers = [layer.signal for epoch in trace.epochs for layer in epoch.layers]
    if any(signal.mean is None for signal in layers):
        raise DataError(f"the trace of {named(trace.run)} has no means of signals; train anew")
    flipping = any(layer.flip_rate is not None for e in trace.epochs for layer in e.layers)
    draws = [_means, _deviations, *([_flips] if flipping else [])]
    return _panels(trace, draws, width, height, upright, titled)


def _panels(
    trace: Trace, draws: Sequence[Draw], width: float, height: float, upright: bool, titled: bool
) -> Figure:
    """A panel for each of some drawings, over the steps of a run."""
    from matplotlib.figure import Figure

    rows, columns = (len(draws), 1) if upright else (1, len(draws))
    figure = Figure(figsize=(width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns)
    run = trace.run
    control = ", Boolean weights frozen" if run.frozen else ""
    title = f"{run.network} on {run.dataset}: {run.method}, {which(run)}{control}"
    figure.set_label(title)
    if titled:
        figure.suptitle(fill(title, int(14 * width)), fontsize="medium")
    steps = [epoch.steps for epoch in trace.epochs]
    for draw, panel in zip(draws, axes, strict=True):
        draw(panel, trace, steps)
        panel.set_xlabel("step")
        panel.grid(alpha=0.3, linewidth=0.5)
        panel.spines[["top", "right"]].set_visible(False)
    _name_layers(trace, [p for p in axes if any(line.get_gid() for line in p.lines)], upright)
    return figure


def _name_layers(trace: Trace, panels: Sequence[Axes], upright: bool) -> None:
    """Name the layers once, beside the panels that have lines of them."""
    lines = {line.get_label(): line for panel in panels for line in panel.lines}
    if shown := [shape.name for shape in trace.layers if shape.name in lines]:
        panels[0 if upright else -1].legend(
            [lines[name] for name in shown], shown,
            loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, fontsize="small",
        )  # fmt: skip


def _layer(axes: Axes, steps: list[int], values: Sequence[float], index: int, name: str) -> None:
    """The line of one layer, of one colour in all panels; its mark tells it from other lines."""
    axes.plot(steps, values, marker=".", color=f"C{index % 10}", label=name, gid="layer")


def _logarithmic(axes: Axes) -> None:
    """Set plain numbers on a logarithmic axis: a minor tick of Matplotlib's own is in TeX."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _losses(axes: Axes, trace: Trace, steps: list[int]) -> None:
    axes.plot(steps, [e.loss for e in trace.epochs], marker=".", color="#1b3a5c")
    axes.set_ylabel("training loss [nat]")
    axes.set_ylim(bottom=0)


def _accuracies(axes: Axes, trace: Trace, steps: list[int]) -> None:
    for label, style, values in (
        ("test", "-", [e.accuracy for e in trace.epochs]),
        ("training", ":", [e.train_accuracy for e in trace.epochs]),
    ):
        known = [float("nan") if v is None else 100 * v for v in values]  # recorded: need not be
        axes.plot(steps, known, style, marker=".", color="#1b3a5c", label=label)
    axes.set_ylabel("accuracy [%]")
    axes.legend(frameon=False, loc="lower right")


def _means(axes: Axes, trace: Trace, steps: list[int]) -> None:
    """One line a layer."""
    for index, shape in enumerate(trace.layers):
        signals = [e.layers[index].signal for e in trace.epochs]
        _layer(axes, steps, [s.mean or 0.0 for s in signals], index, shape.name)
    axes.set_ylabel("mean of signals")


def _deviations(axes: Axes, trace: Trace, steps: list[int]) -> None:
    """One line a layer: sqrt(rms^2 - mean^2), where it is above 0."""
    for index, shape in enumerate(trace.layers):
        signals = [e.layers[index].signal for e in trace.epochs]
        spreads = [math.sqrt(max(s.rms**2 - (s.mean or 0.0) ** 2, 0.0)) for s in signals]
        _layer(axes, steps, [x or math.nan for x in spreads], index, shape.name)
    axes.set_ylabel("deviation of signals")
    _logarithmic(axes)


def _flips(axes: Axes, trace: Trace, steps: list[int]) -> None:
    """One line a layer; at a rate of 0 a logarithm has nothing to show, and the line breaks."""
    for index, shape in enumerate(trace.layers):
        rates = [e.layers[index].flip_rate for e in trace.epochs]
        if any(rates):
            shown = [100 * rate if rate else float("nan") for rate in rates]
            _layer(axes, steps, shown, index, shape.name)
    axes.set_ylabel("weights flipped in a step [%]")
    if axes.lines:
        _logarithmic(axes)
