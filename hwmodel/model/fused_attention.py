"""Attention in one kernel: scores and what is done to them stay where they are made.

Forward a block of queries meets all keys and values, block by block; the logarithm of each row's
sum of exponentials is kept. Back a block of keys and values meets all queries, and scores are
computed again: five products in the place of four. All products of a kernel run through one nest
and are cut alike; what one of them brings in the others find there.

Source: Dao et al., FlashAttention, NeurIPS 2022; Dao, FlashAttention-2, 2023, algorithms 1 and 2;
docs/model.md section 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hwmodel.graph.layers import AttentionScores
from hwmodel.model.workload import Run
from hwmodel.work.problem import Operand, Widths
from hwmodel.work.tensor import Direction, Factor, Pass, Role, Tensor, plain
from hwmodel.work.work import Kernel, Move, Multiply, Operate, Side, Work, read, write

__all__ = ["fused_attention"]

FORWARD, BACK, WEIGHT, *_ = Pass
READ = Direction.READ


def fused_attention(runs: Sequence[Run], *, skips: bool) -> dict[str, Iterator[Work]]:
    """Return the work of scores, of what is done to them and of the context, by layer.

    Args:
        runs: of these layers, in order, each as it would run alone.
        skips: whether pairs that a mask hides are left out.
    """
    scores, *between, context = runs
    back = context.job.trains and context.node.learns
    kernels = _Kernels(scores, context, skips=skips, back=back)
    found = {run.node.layer.name: _inside(run, runs, back) for run in between}
    found[scores.node.layer.name] = _of_scores(kernels, runs)
    found[context.node.layer.name] = _of_context(kernels)
    return found


class _Kernels:
    """The products of both layers, put into the nests of a kernel for each direction."""

    def __init__(self, scores: Run, context: Run, *, skips: bool, back: bool) -> None:
        self.scores, self.context, self.back = scores, context, back
        self.first, self.second = _products(scores), _products(context)
        layer, shapes = scores.node.layer, scores.node.input_shapes
        assert isinstance(layer, AttentionScores)
        self.mask = layer.mask(shapes) if skips else None
        self.nests = {b: layer.block_nest(shapes, scores.images, back=b) for b in (False, True)}
        self.Q, self.K = self.first[FORWARD].I, self.first[FORWARD].F
        self.V = self.second[FORWARD].F
        both = plain(self.K.bits + self.V.bits)
        self.forward = Kernel(Widths(both, plain(self.Q.bits), 0))
        dP, dV = self.second.get(BACK), self.second.get(WEIGHT)
        self.dO = dP.I if dP else dV.F if dV else context.t.dO
        self.backward = Kernel(Widths(plain(self.Q.bits + self.dO.bits), both, 0))

    def of_scores(self) -> Iterator[Multiply]:
        """Q K^T; on the way back once more, then dQ and dK."""
        forward, Q, K = self.first[FORWARD], self.Q, self.K
        yield self._put(forward, K, Q, {"I": "F", "F": "I"}, self.forward)
        if not self.back:
            return
        dQ, dK, kernel = self.first.get(BACK), self.first.get(WEIGHT), self.backward
        again = forward._replace(pass_=BACK)
        once = kernel._replace(inner=(1, 2 if dQ else 1))
        yield self._put(again, Q, K, {"I": "I", "F": "F"}, once)
        if dQ:
            yield self._put(
                dQ, Q, K, {"F": "F"}, kernel._replace(moved=(), inner=(0, 0), running="I")
            )
        if dK:
            yield self._put(
                dK, Q, K, {"I": "I"}, kernel._replace(moved=(), inner=(1, 0), running="F")
            )

    def of_context(self) -> Iterator[Multiply]:
        """P V; on the way back dP and dV."""
        forward, V, dO = self.second[FORWARD], self.V, self.dO
        kernel = self.forward._replace(moved=("I",), inner=(1, 0), running="F")
        yield self._put(forward, V, forward.O, {"F": "I"}, kernel)
        if not self.back:
            return
        dP, dV, kernel = self.second.get(BACK), self.second.get(WEIGHT), self.backward
        if dP:
            yield self._put(dP, dO, V, {"I": "I", "F": "F"}, kernel)
        if dV:
            moved: tuple[Operand, ...] = () if dP else ("I",)
            own = kernel._replace(moved=moved, inner=(1, 0), running="F")
            yield self._put(dV, dO, V, {"F": "I"}, own)

    def _put(
        self,
        work: Multiply,
        I: Tensor,  # noqa: E741
        F: Tensor,
        places: dict[Operand, Operand],
        kernel: Kernel,
    ) -> Multiply:
        """Put a product into its kernel; its result moves nowhere of itself.

        Args:
            places: where its operands that are no scores are in the nest of the kernel.
        """
        back = work.pass_ != FORWARD
        side: Side = "keys" if back else "queries"
        mask = (self.mask, side) if self.mask else None
        return work._replace(
            nest=self.nests[back], I=I, F=F, leaves=False,
            expanded=tuple(places[x] for x in work.expanded if x in places),
            kernel=kernel._replace(mask=mask),
        )  # fmt: skip


def _products(run: Run) -> dict[Pass, Multiply]:
    return {work.pass_: work for work in _all(run) if isinstance(work, Multiply)}


def _all(run: Run) -> Iterator[Multiply | Operate]:
    return run.products(run.treatment) if run.treatment else iter(())


def _of_scores(kernels: _Kernels, runs: Sequence[Run]) -> Iterator[Work]:
    run = kernels.scores
    yield from kernels.of_scores()
    yield from _inside(run, runs, kernels.back)
    for pass_, signal in zip((BACK, WEIGHT), run.t.signals, strict=True):
        if pass_ in kernels.first:
            yield from write(pass_, signal)


def _of_context(kernels: _Kernels) -> Iterator[Work]:
    """Yield products, and what enters and leaves the kernel beside their operands."""
    run, scores = kernels.context, kernels.scores
    yield from kernels.of_context()
    yield from (work for work in _all(run) if isinstance(work, Operate))
    yield from write(FORWARD, run.t.O)
    if kernels.back:
        heads, L, _ = scores.node.output_shape
        size = (*run.t.O.shape[:-3], Factor("heads", heads), Factor("L", L))
        rows = replace(run.t.O, shape=size, bits=run.full, role=Role.LOG_SUM, word=None)
        yield from write(FORWARD, rows, why="for the way back")
        yield from read(BACK, rows)
        if run.accounting.extras.stored_activations:
            why = "times dO, it is the sum of each row of P dP"
            yield from read(BACK, run.t.O.as_(Role.SAVED), why=why)
        if WEIGHT in kernels.second:
            yield from write(WEIGHT, run.t.signals[1])
    yield from run.beside()


def _inside(run: Run, runs: Sequence[Run], back: bool) -> Iterator[Work]:
    """Yield operations on scores, which move nowhere; back, those of the forward pass once more.

    What is added to them, or multiplies them, is read, and on the way back read again.
    """
    inside = {one.node.layer.name for one in runs}
    products = (work for work in _all(run) if isinstance(work, Operate))
    for work in (*products, *run.beside()):
        if isinstance(work, Operate):
            yield work
            if back and work.pass_ == FORWARD:
                yield _again(work, run)
        elif isinstance(work, Move) and (work.pass_, work.direction) == (FORWARD, READ):
            place = max(work.tensor.index, 1) - 1
            if work.tensor.name == "I" and run.node.inputs[place] not in inside:
                yield work
                if back:
                    tensor, why = work.tensor.as_(Role.AGAIN), "scores are computed again"
                    yield work._replace(pass_=BACK, tensor=tensor, why=why)


def _again(work: Operate, run: Run) -> Operate:
    """An operation of the forward pass on the way back: of a softmax exp(s - log-sum).

    Source: Dao, FlashAttention-2, 2023, algorithm 2.
    """
    times, told = work.times, "computed again"
    if getattr(run.node.layer, "function", "") == "softmax" and work.kind in ("add", "special"):
        times, told = 1, "exp(s - log-sum), computed again"
    why = ", ".join(filter(None, (work.why, told)))
    return work._replace(pass_=BACK, each=work.each.as_(Role.AGAIN), times=times, why=why)
