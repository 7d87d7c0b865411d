"""A trace as a figure."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from hwmodel.specs.trace import Trace, which

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["training_figure"]


def training_figure(
    trace: Trace, width: float = 11.1, height: float = 3.2, *, upright: bool = False
) -> Figure:
    """Loss, accuracy, and the flip rate of every layer, over the steps of a run.

    The flip rate is left out where no weight is Boolean.

    Args:
        width: of the figure [inch].
        height: of a panel [inch].
        upright: whether panels stand below one another.
    """
    from matplotlib.figure import Figure

    flipping = any(layer.flip_rate is not None for e in trace.epochs for layer in e.layers)
    panels = 3 if flipping else 2
    rows, columns = (panels, 1) if upright else (1, panels)
    figure = Figure(figsize=(width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns)
    run = trace.run
    control = ", Boolean weights frozen" if run.frozen else ""
    title = f"{run.network} on {run.dataset}: {run.method}, {which(run)}{control}"
    figure.suptitle(fill(title, int(14 * width)), fontsize="medium")
    steps = [epoch.steps for epoch in trace.epochs]
    _losses(axes[0], trace, steps)
    _accuracies(axes[1], trace, steps)
    if flipping:
        _flips(axes[2], trace, steps)
    for panel in axes:
        panel.set_xlabel("step")
        panel.grid(alpha=0.3, linewidth=0.5)
        panel.spines[["top", "right"]].set_visible(False)
    return figure


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


def _flips(axes: Axes, trace: Trace, steps: list[int]) -> None:
    """One line a layer; at a rate of 0 a logarithm has nothing to show, and the line breaks."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for index, shape in enumerate(trace.layers):
        rates = [e.layers[index].flip_rate for e in trace.epochs]
        if any(rates):
            shown = [100 * rate if rate else float("nan") for rate in rates]
            axes.plot(steps, shown, marker=".", label=shape.name)
    axes.set_ylabel("weights flipped in a step [%]")
    if axes.lines:
        axes.set_yscale("log")
        # numbers as they are: a minor tick of Matplotlib's own is a power in mathematics
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.legend(frameon=False)
