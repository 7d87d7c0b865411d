"""A trace as a figure: loss, accuracy and flips over the steps of a run, or its signals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hwmodel.errors import DataError
from hwmodel.specs.trace import Trace, named, which
from hwmodel.views.colours import called
from hwmodel.views.figures.canvas import DRAFT, STYLES, Style, below, caption, legend, panels

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Draw = Callable[[Axes, Trace, list[int]], None]

__all__ = ["signals_figure", "training_figure"]

_INK = "#1b3a5c"


def training_figure(trace: Trace, style: Style = STYLES[DRAFT]) -> Figure:
    """Loss, accuracy, and the flip rate of every layer, over the steps of a run.

    The flip rate is left out where no weight is Boolean.
    """
    flipping = any(layer.flip_rate is not None for e in trace.epochs for layer in e.layers)
    return _panels(trace, [_losses, _accuracies, *([_flips] if flipping else [])], style)


def signals_figure(trace: Trace, style: Style = STYLES[DRAFT]) -> Figure:
    """Mean and deviation of the signal that each layer receives, and its flips, over the steps.

    Raises: DataError for a trace from before means were measured.

    Source: what BOLD shows of a run, by layer and epoch: its figures 4 and 5.
    """
    layers = [layer.signal for epoch in trace.epochs for layer in epoch.layers]
    if any(signal.mean is None for signal in layers):
        raise DataError(f"the trace of {named(trace.run)} has no means of signals; train anew")
    flipping = any(layer.flip_rate is not None for e in trace.epochs for layer in e.layers)
    return _panels(trace, [_means, _deviations, *([_flips] if flipping else [])], style)


def _panels(trace: Trace, draws: Sequence[Draw], style: Style) -> Figure:
    """A panel for each of some drawings, over the steps of a run, and one legend of the layers."""
    upright = style.columns < len(draws)
    figure, axes = panels(
        style, len(draws), (0.8 if upright else 1) * style.height,
        columns=1 if upright else len(draws),
    )  # fmt: skip
    run = trace.run
    control = ", Boolean weights frozen" if run.frozen else ""
    network, method = called(run.network, "network"), called(run.method)
    caption(figure, style, f"{network} on {run.dataset}: {method}, {which(run)}{control}")
    steps = [epoch.steps for epoch in trace.epochs]
    for draw, panel in zip(draws, axes, strict=True):
        draw(panel, trace, steps)
        below(panel, style, "step")
        panel.grid()
    lines: dict[str, Artist] = {
        str(line.get_label()): line for panel in axes for line in panel.lines if line.get_gid()
    }
    if names := [shape.name for shape in trace.layers if shape.name in lines]:
        legend(figure, style, {}, shown={name: lines[name] for name in names})
    return figure


def _layer(axes: Axes, steps: list[int], values: Sequence[float], index: int, name: str) -> None:
    """The line of one layer, of one colour in all panels; its mark tells it from other lines."""
    dashes = ("-", "--", ":")[index // 10 % 3]
    axes.plot(steps, values, dashes, marker=".", color=f"C{index % 10}", label=name, gid="layer")


def _logarithmic(axes: Axes) -> None:
    """Set plain numbers on a logarithmic axis: a minor tick of Matplotlib's own is in TeX."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _losses(axes: Axes, trace: Trace, steps: list[int]) -> None:
    axes.plot(steps, [e.loss for e in trace.epochs], marker=".", color=_INK)
    axes.set_ylabel("training loss, nat")
    axes.set_ylim(bottom=0)


def _accuracies(axes: Axes, trace: Trace, steps: list[int]) -> None:
    for label, dashes, values in (
        ("test", "-", [e.accuracy for e in trace.epochs]),
        ("training", ":", [e.train_accuracy for e in trace.epochs]),
    ):
        known = [float("nan") if v is None else 100 * v for v in values]  # recorded: need not be
        axes.plot(steps, known, dashes, marker=".", color=_INK, label=label)
    axes.set_ylabel("accuracy, %")
    axes.legend(frameon=False, loc="best")


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
    axes.set_ylabel("flips in a step, % of weights")
    if axes.lines:
        _logarithmic(axes)
