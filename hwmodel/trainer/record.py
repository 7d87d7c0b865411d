"""Records a PyTorch training loop as a trace: hooks around layers and optimizers, nothing more.

    with hwmodel.record(model, method="bold", dataset="digits", batch=32) as r:
        for epoch in range(30):
            ...  # the loop as it is
            r.epoch(loss=loss, accuracy=accuracy)
    r.trace().write("run.json")

Every layer gets a view of its input, so that the gradient of that view is what this layer alone
sends upstream, and not the sum over branches; the gradient of its output is the signal that it
receives. Both are hooks of tensors: unlike backward hooks of modules they survive an operator
that changes a layer's output in place. Votes are gradients as the optimizer finds them. Passes
without gradients and in evaluation are not looked at. What a pass shows is kept aside until an
optimizer makes a step of it: steps that a scaler of half precision skips, because gradients
overflowed, are left out. torch is imported where it is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from hwmodel import __version__
from hwmodel.errors import HwmodelError
from hwmodel.specs.arguments import quoted
from hwmodel.specs.limits import Limits
from hwmodel.specs.trace import Epoch, Recording, Run, Trace
from hwmodel.trainer.recordable import layers_of, number, planned, see_lists
from hwmodel.trainer.recorded import Pair, Recorded, Use, are_finite, array, extremes
from hwmodel.trainer.train import SIGNAL_ERROR

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Recorder", "record"]

P = ParamSpec("P")
R = TypeVar("R")


def record(
    model: Any,
    *,
    method: str,
    dataset: str = "unnamed",
    network: str | None = None,
    batch: int | None = None,
    every: int = 10,
    types: Sequence[type] | None = None,
    binary: Sequence[type | str] = (),
    widths: Limits | Mapping[str, Any] | None = None,
    seed: int | None = None,
    signal_error: float = SIGNAL_ERROR,
) -> Recorder:
    """Record the training of an `nn.Module`: a context around the loop.

    Args:
        method: name of the method that the loop trains by, as reports know it.
        dataset, network: names for the trace; of the network, by default the module's class.
        batch: images a step; by default the most that were given to the model, and whose
            gradients were computed, between two steps of an optimizer.
        every: one step of so many is measured whole, the first of every epoch among them. Ranges
            and flips are of every step.
        types: classes of the layers with products; default `nn.Linear` and `nn.Conv2d`. Others
            need a parameter `weight` [M, C] or [M, C / groups, HF, WF], and where they have any
            `stride`, `padding`, `dilation`, `groups`. Weights that all are 0 and 1, or -1 and 1,
            are Boolean.
        binary: classes, or names in the model, of layers whose weights are latent ones that
            multiply by their sign, 0 taken as +1.
        widths: at which the loop holds signals, votes and accumulators, as a method's `widths`.
        seed: of the run; several runs of a method are told apart by it.
        signal_error: rms error, relative to the rms, at which widths are stated.

    Raises: HwmodelError where the package torch is missing or an argument is not what it must be,
        with all that are wrong; SpecError for layers that cannot be recorded.
    """
    try:
        import torch
    except ImportError:
        raise HwmodelError(
            "recording PyTorch training needs the package torch: pip install 'hwmodel[torch]'"
        ) from None
    if not isinstance(model, torch.nn.Module):
        raise HwmodelError(f"model {quoted(model)}: must be an nn.Module")
    chosen = (torch.nn.Linear, torch.nn.Conv2d) if types is None else types
    see_lists(chosen, binary)
    run = planned(
        recorded_by=f"hwmodel.record {__version__}, torch {torch.__version__.split('+')[0]}",
        network=network or type(model).__name__.lstrip("_"), method=method, dataset=dataset,
        batch=1 if batch is None else batch, every=every, signal_error=signal_error, widths=widths,
        seed=seed,
    )  # fmt: skip
    return Recorder(model, layers_of(model, tuple(chosen), tuple(binary), signal_error), run, batch)


def _timed(hook: Callable[P, R]) -> Callable[P, R]:
    """Count the time that a method of a recorder takes."""

    @wraps(hook)
    def timed(*given: P.args, **named: P.kwargs) -> R:
        start = time.perf_counter()
        try:
            return hook(*given, **named)
        finally:
            recorder: Any = given[0]
            recorder._spent += time.perf_counter() - start

    return timed


@dataclass(eq=False)
class Pass:
    """A pass in training, of which an optimizer may make a step.

    Attributes:
        images: that it is of.
        earlier: passes whose gradients were there when it began.
        seen: ranges, and what puts each of them, and more, into the measurements.
    """

    images: int = 0
    earlier: tuple[Pass, ...] = ()
    seen: list[tuple[Pair, Callable[[], None]]] = field(default_factory=list)

    def finite(self) -> bool:
        """Whether all sums and gradients are numbers."""
        return are_finite([pair for pair, _ in self.seen])


class Recorder:
    """A loop under way: what the hooks have seen, and the epochs that were told.

    Use it as a context; hooks are there between its beginning and its end alone.
    """

    def __init__(
        self, model: Any, layers: dict[Any, Recorded], run: Run, batch: int | None
    ) -> None:
        from torch import is_grad_enabled

        assert run.recording is not None
        self._recording: Recording = run.recording
        self._graded: Callable[[], bool] = is_grad_enabled
        self._model, self._layers, self._run = model, layers, run
        self._batch = batch
        self._uses: list[Use] = []  # in the order of the first pass
        self._epochs: list[Epoch] = []
        self._hooks: list[Any] = []
        self._calls: dict[Any, int] = {}  # of every layer in this pass
        self._steps = self._measured = 0
        self._images = self._most = 0  # of this step, and of the largest
        self._pass = Pass()
        self._pending: list[Pass] = []  # with gradients, of which no step was made yet
        self._since = 0  # steps of this epoch
        self._left_out = 0  # steps whose gradients were no numbers
        self._before_epoch = 0  # the same before this epoch
        self._stepped = False  # an optimizer has made its step, and no pass has begun since
        self._spent, self._began, self._whole = 0.0, 0.0, 0.0  # [s]

    def __enter__(self) -> Self:
        """Set the hooks. Raises: HwmodelError within the recorder's own context."""
        from torch.optim import optimizer

        if self._hooks:
            raise HwmodelError("record: the recorder is in its loop already: enter it once")

        hooks = [self._model.register_forward_pre_hook(self._begin_pass, with_kwargs=True)]
        for module in self._layers:
            hooks.append(module.register_forward_pre_hook(self._before, with_kwargs=True))
            hooks.append(module.register_forward_hook(self._after, with_kwargs=True))
        hooks.append(optimizer.register_optimizer_step_pre_hook(self._before_step))
        hooks.append(optimizer.register_optimizer_step_post_hook(self._after_step))
        self._hooks = hooks
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the hooks away."""
        self._whole += time.perf_counter() - self._began
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @_timed
    def epoch(
        self,
        *,
        loss: float,
        accuracy: float,
        validation: float | None = None,
        train_accuracy: float | None = None,
    ) -> None:
        """End an epoch, after its evaluation.

        Args:
            loss: mean over the epoch's training images.
            accuracy: share of test images that are classified rightly, 0 to 1.
            validation: the same of validation images, if there are any.
            train_accuracy: the same of the training images.

        Raises: HwmodelError where no optimizer made a step that the recorder saw, or a value is
            no share; DataError where the training left the range of numbers.
        """
        from hwmodel.specs.files import validate

        self._close_step()
        left_out = self._left_out - self._before_epoch + sum(not p.finite() for p in self._pending)
        if left_out and not all(use.seen for use in self._uses):
            raise HwmodelError(
                f"record: gradients were no finite numbers in {left_out:,} steps of this epoch, "
                "and no step is left to measure: the loop overflows"
            )
        if not self._since or not self._uses:
            raise HwmodelError(
                "record: no step of training was seen in this epoch: a forward pass of the "
                "model in training, and a step of a torch optimizer that has its parameters"
            )
        self._epochs.append(
            validate(
                Epoch,
                {
                    "epoch": len(self._epochs) + 1, "steps": self._steps,
                    "loss": number("loss", loss), "accuracy": number("accuracy", accuracy),
                    "train_accuracy": number("train_accuracy", train_accuracy),
                    "validation_accuracy": number("validation", validation),
                    "layers": [use.epoch(self._since) for use in self._uses],
                },
                "record: epoch",
            )
        )  # fmt: skip
        for layer in self._layers.values():
            layer.begin_epoch()
        for use in self._uses:
            use.begin_epoch()
        self._since, self._before_epoch = 0, self._left_out

    def trace(self) -> Trace:
        """Return the trace of the epochs so far. Raises: HwmodelError where there is none."""
        if not self._epochs:
            raise HwmodelError("record: no epoch was told: call epoch(loss=..., accuracy=...)")
        whole = self._whole + (time.perf_counter() - self._began if self._hooks else 0.0)
        overhead = round(whole / max(whole - self._spent, 1e-9), 2)
        measured = {
            "steps_measured": self._measured, "overhead": overhead,
            "steps_left_out": self._left_out,
        }  # fmt: skip
        flipping = [layer for layer in self._layers.values() if layer.kind != "real"]
        run = self._run.model_copy(
            update={
                "epochs": len(self._epochs),
                "recording": self._recording.model_copy(update=measured),
                "batch": self._batch or self._most,
                "frozen": bool(flipping) and not any(layer.learns for layer in flipping),
            }
        )  # fmt: skip
        shapes = tuple(use.shape(run.batch) for use in self._uses)
        return Trace(run=run, layers=shapes, epochs=tuple(self._epochs))

    @property
    def _measuring(self) -> bool:
        return self._since % self._recording.every == 0

    def _looks(self) -> bool:
        return bool(self._model.training) and self._graded()

    def _close_step(self) -> None:
        """Count the step that an optimizer has made, once the next one begins."""
        if self._stepped:
            self._measured += self._measuring
            self._steps += 1
            self._since += 1
            self._most, self._images = max(self._most, self._images), 0
            self._stepped = False
            self._calls.clear()

    @_timed
    def _begin_pass(self, _: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if self._looks():
            self._close_step()
            self._calls.clear()
            x = _tensor(given, named)
            images = len(x) if x is not None and x.dim() else 0
            self._pass = Pass(images, tuple(self._pending))
            if self._batch is not None and images > self._batch:
                raise HwmodelError(
                    f"record: batch {self._batch} was stated, the model is given {images} images"
                )

    @_timed
    def _before(
        self, module: Any, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Give the layer a view of its input, whose gradient is this layer's own."""
        if not self._looks():
            return None
        self._close_step()
        x = _tensor(given, named)
        if x is None:
            raise HwmodelError(f"record: {self._layers[module].name} is given no tensor")
        number = self._calls[module] = self._calls.get(module, 0) + 1
        use = self._use(module, number)
        if use is self._uses[0] and x.dim():
            self._pass.images = self._pass.images or len(x)  # the model itself was given none
        if not x.requires_grad:
            return None
        view = x.view_as(x)
        view.register_hook(self._gradient(use, "sent"))
        put = [view if one is x else one for one in given]
        return tuple(put), {key: view if one is x else one for key, one in named.items()}

    @_timed
    def _after(self, module: Any, given: tuple[Any, ...], named: dict[str, Any], y: Any) -> None:
        """Look at a layer's sums, and ask for their gradient."""
        if not self._looks():
            return
        use = self._use(module, self._calls[module])
        if not hasattr(y, "register_hook"):
            raise HwmodelError(f"record: {use.name} gives no tensor")
        x = _tensor(given, named)
        use.see(module, x, y)
        if y.numel():
            pair = extremes(y.detach())
            put = use.sums(x.detach(), y.detach(), pair, measured=self._measuring)
            self._pass.seen.append((pair, put))
        if y.requires_grad:
            y.register_hook(self._gradient(use, "signal"))

    def _gradient(self, use: Use, what: str) -> Callable[[Any], None]:
        this = self._pass

        def hook(z: Any) -> None:
            start = time.perf_counter()
            if this not in self._pending:
                self._begin_gradients(this)
            if z.numel():
                pair = extremes(z.detach())
                values = array(z) if self._measuring else None
                this.seen.append((pair, partial(use.tensor, what, pair, values)))
            self._spent += time.perf_counter() - start

        return hook

    def _begin_gradients(self, this: Pass) -> None:
        """The first gradient of a pass: without those of earlier ones these make no step."""
        if this.earlier and all(p.grad is None for p in self._model.parameters()):
            gone = [p for p in self._pending if p in this.earlier]
            self._left_out += not all(p.finite() for p in gone)
            self._pending = [p for p in self._pending if p not in gone]
            for one in gone:
                one.seen = []
        this.earlier = ()
        self._pending.append(this)

    def _settle(self) -> None:
        """Measure the passes of which an optimizer makes a step.

        A pass with gradients that are no numbers is of a step that was skipped, or should be; it
        and those before it are left out.
        """
        bad = [place for place, one in enumerate(self._pending) if not one.finite()]
        self._left_out += len(bad)
        for one in self._pending[bad[-1] + 1 if bad else 0 :]:
            for _, put in one.seen:
                put()
            self._images += one.images
        for one in self._pending:
            one.seen, one.images = [], 0
        self._pending = []
        if self._batch is not None and not self._stepped and self._images > self._batch:
            raise HwmodelError(
                f"record: batch {self._batch} was stated, a step of the optimizer is of "
                f"{self._images} images"
            )

    def _use(self, module: Any, number: int) -> Use:
        """The layer in its first, second … place of a pass."""
        layer = self._layers[module]
        if len(layer.uses) < number:
            layer.uses.append(Use(layer, number))
            self._uses.append(layer.uses[-1])
        return layer.uses[number - 1]

    @_timed
    def _before_step(self, optimizer: Any, *_: Any) -> None:
        """Look at the votes as the optimizer finds them."""
        layers = self._of(optimizer)
        if layers:
            self._settle()
        for layer in layers:
            if layer.stepped == self._steps and self._stepped:  # again, without a pass
                self._close_step()
            layer.vote(measured=self._measuring)

    @_timed
    def _after_step(self, optimizer: Any, *_: Any) -> None:
        """Count flips, and look at the optimizer's memory."""
        for layer in self._of(optimizer):
            layer.step(optimizer, measured=self._measuring)
            layer.stepped = self._steps
            self._stepped = True

    def _of(self, optimizer: Any) -> list[Recorded]:
        """The layers whose weights an optimizer moves."""
        given = {id(p) for group in optimizer.param_groups for p in group["params"]}
        return [layer for layer in self._layers.values() if id(layer.weight) in given]


def _tensor(given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """The first tensor among a module's arguments."""
    return next((x for x in (*given, *named.values()) if hasattr(x, "requires_grad")), None)
