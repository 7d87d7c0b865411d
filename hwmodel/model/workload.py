"""The work of a layer in a run, as wide as the method says, without what is left out.

Nothing here depends on a chip or a price. Products become loop nests with widths; operators, stored
activations and weight updates become moves of tensors and operations on their elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from hwmodel.graph.layers import AttentionContext, AttentionScores
from hwmodel.graph.node import Node
from hwmodel.model import widths
from hwmodel.model.arithmetic import expanded, operations, scaled_sums
from hwmodel.model.measured import Measures
from hwmodel.model.widths import Edge, Treatment, Wide
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.method import Method
from hwmodel.work.flattening import flattened
from hwmodel.work.optimizers import optimizer_step
from hwmodel.work.problem import LoopNest, ProductPass
from hwmodel.work.tensor import Direction, Factor, Pass, Role, Tensor, plain
from hwmodel.work.work import (
    Move,
    Multiply,
    Operate,
    Tensors,
    Work,
    Works,
    boolean_step,
    quantised,
    read,
    write,
)

__all__ = ["MODES", "At", "Job", "Mode", "Run", "Task", "as_tiled"]

FORWARD, BACK, WEIGHT, UPDATE, _ = Pass
READ, WRITE, OPERATE = Direction.READ, Direction.WRITE, Direction.OPERATE
Mode = Literal["training", "inference"]
MODES: tuple[Mode, ...] = get_args(Mode)


class Job(NamedTuple):
    """A job: method, accounting, batch, training or inference, and traces' measurements."""

    method: Method
    accounting: Accounting
    batch: int
    mode: Mode
    measured: Measures | None = None
    # Scores of attention that runs as separate products, where each takes the cheaper way.
    separate: frozenset[str] = frozenset()

    @property
    def trains(self) -> bool:
        """Whether there is a way back."""
        return self.mode == "training"

    @property
    def images(self) -> int:
        """Images for one update: of one iteration, or of those whose gradients are added up."""
        return self.batch * (self.accounting.extras.accumulate if self.trains else 1)


class At(NamedTuple):
    """Where a work stands in the schedule of a run, and the names of what lies in memory."""

    step: int = 0
    # Of tensors at I, F and O of a product, or of what a move moves; each may be in parts.
    stored: tuple[tuple[str, ...], ...] = ((), (), ())
    times: int = 1  # iterations for one update


class Task(NamedTuple):
    """A work, the layer that does it, and its place in a schedule."""

    layer: str
    work: Work
    at: At = At()


def _times(steps: int) -> tuple[Factor, ...]:
    """So many steps of a sequence, one after the other; none for one."""
    return (Factor("steps", steps, "one after the other"),) if steps > 1 else ()


def as_tiled(work: Multiply, accounting: Accounting) -> Multiply:
    """Return a product with the loops that an accounting has it tiled in.

    Products that run in the blocks of one kernel keep theirs, which are alike.
    """
    chosen = accounting.counting
    if chosen.search != "optimal" or work.kernel is not None:
        return work
    nest = flattened(work.nest, accounting.counting.loops, touched=chosen.rows == "touched")
    return work._replace(tiled=None if nest == work.nest else nest)


@dataclass(frozen=True)
class Run:
    """One layer at its place, in a job."""

    node: Node
    edges: Mapping[str, Edge]
    job: Job
    pairs: int | None = None  # of scores, those of a head that no mask hides, if others are skipped

    def works(self) -> Iterator[Work]:
        """Yield products, operators, sums that the graph implies, and the step of the weights."""
        if self.treatment:
            yield from self.products(self.treatment)
        yield from self.beside()

    def beside(self) -> Iterator[Work]:
        """Yield all that is no product."""
        if self.accounting.extras.elementwise != "preactivation-words":
            yield from self.operator()
            yield from self.copies()
            yield from self.extra_work()
            if self.job.trains:
                yield from self.broadcast_signals()
                yield from self.shared_gradient()
                yield from self.forked_signals()
        else:
            yield from self.preactivation_words()
        if self.job.trains:
            yield from self.summed_gradients()
            yield from self.steps()

    @property
    def accounting(self) -> Accounting:
        """The choices of what is counted and how."""
        return self.job.accounting

    @property
    def full(self) -> int:
        """A full-precision word [bit]."""
        return self.accounting.widths.full_precision_bits

    @property
    def images(self) -> int:
        """Images, or all steps of them, that a nest has at once."""
        outer = self.accounting.extras.time_steps == "outer"
        return self.job.batch * (1 if outer else self.node.steps)

    @cached_property
    def nests(self) -> Mapping[ProductPass, LoopNest]:
        """The products of the layer by pass; none if it only moves."""
        layer, shapes, images = self.node.layer, self.node.input_shapes, self.images
        skips = self.accounting.counting.masked_scores == "skipped"
        if skips and isinstance(layer, (AttentionContext, AttentionScores)):
            return layer.unmasked(shapes, images)
        return layer.loops(shapes, images)

    @cached_property
    def treatment(self) -> Treatment | None:
        """Widths, arithmetic and update of the products; None where there are none."""
        job = self.job
        if not self.nests:
            return None
        return widths.treatment(job.method, self.node, job.accounting, job.measured)

    # -- tensors ---------------------------------------------------------------------------

    @cached_property
    def t(self) -> Tensors:
        """The tensors around the layer, as wide as the method and the accounting have them."""
        node, edge = self.node, self.edges[self.node.layer.name]
        several = len(node.inputs) > 1
        pairs = list(zip(node.inputs, node.input_shapes, strict=True))
        ins = tuple(
            self._tensor("I", shape, self.edges[source], i if several else 0)
            for i, (source, shape) in enumerate(pairs, 1)
        )
        signals = tuple(
            replace(
                one,
                name="dI",
                bits=self.edges[source].signal_bits,
                word=self.edges[source].signal_word,
                nonzero=1.0,
            )
            for one, (source, _) in zip(ins, pairs, strict=True)
        )
        O = self._tensor("O", node.output_shape, edge)  # noqa: E741
        dO = replace(O, name="dO", bits=edge.signal_bits, word=edge.signal_word, nonzero=1.0)
        layer, shapes = node.layer, node.input_shapes
        count = layer.weights(shapes) or layer.other_parameters(shapes)
        F = Tensor("F", (Factor("weights", count),), self.full)
        dF = replace(F, name="dF", floating=edge.floating)
        if self.treatment:
            F = replace(F, bits=self.treatment.weight_bits, word=self.treatment.weight_word)
            dF = replace(dF, bits=self.treatment.weight_signal_bits)
        return Tensors(ins, O, signals, dO, F, dF)

    def _tensor(self, name: str, shape: tuple[int, ...], edge: Edge, index: int = 0) -> Tensor:
        sizes = [Factor(letter, n) for letter, n in zip("CHW", shape, strict=True)]
        if self.pairs is not None and shape == self.node.output_shape:
            sizes[1:] = [Factor("pairs", self.pairs, "that no mask hides")]
        factors = (Factor("N", self.job.batch), *_times(self.node.steps), *sizes)
        floating = edge.floating or bool(edge.word and edge.word.floating)
        shape_and_width = name, factors, edge.bits
        return Tensor(
            *shape_and_width, index=index, floating=floating, word=edge.word, nonzero=edge.nonzero
        )

    @cached_property
    def macs(self) -> tuple[Factor, ...]:
        """The multiply-accumulates of each pass: the loops of one that meets no zeros put in."""
        nests = self.nests.values()
        plain = next(nest for nest in nests if nest.height.spread == nest.width.spread == 1)
        if plain.macs:
            return plain.macs
        loops = (Factor(loop, length) for loop, length in plain.extent._asdict().items())
        return Factor("g", plain.groups), *loops

    # -- products --------------------------------------------------------------------------

    def products(self, treatment: Treatment) -> Iterator[Multiply | Operate]:
        """Yield the passes of a product, on the words that the method reads.

        A product of two activations has no weights; there F is the second input.
        """
        for pass_, nest in self.nests.items():
            if pass_ != FORWARD and not self.job.trains:
                continue
            if not self._wanted(pass_):
                continue
            tensors = self._around(treatment, pass_)
            I, F, O = (tensors[letter] for letter in nest.tensors)  # noqa: E741
            arithmetic = treatment.arithmetic[pass_]
            repeats = self.node.layer.repeats(pass_, self.node.input_shapes)
            if self.accounting.extras.time_steps == "outer":
                repeats *= self.node.steps
            if not repeats:
                continue
            spikes = self.node.input_rates[0] if pass_ == FORWARD else None
            if spikes is not None:
                arithmetic = self.job.method.spikes
            macs = (*self._macs_of(nest), *self._nonzero(pass_))
            done = operations(arithmetic, nest, I, F, macs, self.accounting)
            wide = expanded(arithmetic, I, F)
            every = (*self._macs_of(nest), *_times(repeats))
            product = Multiply(
                Pass(pass_), nest, I, F, O, done, every, True, repeats, wide, self.full
            )
            yield as_tiled(product, self.accounting)
            blocks = scaled_sums(nest, I, F, wide)
            if blocks:
                why = "sums of blocks, each times the scales of both operands"
                yield Operate(Pass(pass_), "mac", O.as_(Role.SCALED), blocks, why=why)

    def _macs_of(self, nest: LoopNest) -> tuple[Factor, ...]:
        """The multiply-accumulates of one nest; of one over all steps, those of each."""
        one = self.nests["forward"]
        steps = nest.extent.C // one.extent.N if nest.tensors[0] == "I" and nest != one else 1
        return self.macs if steps <= 1 or not self._stepped else (*self.macs, *_times(steps))

    @property
    def _stepped(self) -> bool:
        """Whether a nest is done anew in each step of a sequence."""
        return self.node.layer.repeats("forward", self.node.input_shapes) > 1

    def _around(self, treatment: Treatment, pass_: ProductPass) -> dict[str, Tensor]:
        """Return the tensors of a pass by letter, as wide as its product reads them."""
        t, forward = self.t, pass_ == FORWARD
        how = treatment.read_back if pass_ == WEIGHT else treatment.read
        read = [self._as_read(one, how(one.bits, i)) for i, one in enumerate(t.ins)]
        back = [replace(one, index=0) for one in t.signals]
        tensors = {"I": read[0], "dI": back[0], "O": t.O, "dO": t.dO, "F": t.F, "dF": t.dF}
        signal = treatment.signal
        if signal and not forward and signal.bits < t.dO.bits:
            tensors["dO"] = self._as_read(t.dO, signal)
        if treatment.weight_back and not forward:
            bits, word = treatment.weight_back
            role = Role.LATENT if self._reads_latent(treatment) else Role.COPY
            floating = t.F.floating or role == Role.LATENT
            tensors["F"] = replace(t.F, bits=bits, word=word, role=role, floating=floating)
        if len(read) > 1:
            tensors["F"] = replace(read[1], name="F", second=True)
            tensors["dF"] = replace(back[1], name="dF", second=True)
        return tensors

    def _reads_latent(self, treatment: Treatment) -> bool:
        """Whether backward_input reads the weights that are stepped, and no copy of them."""
        back, latent = treatment.weight_back, treatment.latent or self.full
        return bool(back) and back == (latent, None) and self.node.layer.learned is True

    def _nonzero(self, pass_: ProductPass) -> tuple[Factor, ...]:
        """Return the share of a backward pass's operations that an accounting leaves to it."""
        found = (self.job.measured or {}).get(self.node.layer.name)
        if pass_ == FORWARD or found is None:
            return ()
        if self.accounting.counting.zero_signals == "computed":
            return ()
        why = "of the signals, as traces measured; operations on the others are skipped"
        return (Factor("not 0", 1 - found.signal_zeros, why),)

    def _wanted(self, pass_: ProductPass) -> bool:
        """Whether anything wants what a pass gives; of a first layer that is trained, as chosen."""
        node, first = self.node, self.accounting.counting.first_layer_input_gradient
        if pass_ == BACK and first and node.position == "first" and node.learns:
            return True
        return node.wanted(pass_)

    def _as_read(self, tensor: Tensor, wide: Wide) -> Tensor:
        """Return the words that a product reads: a copy narrower than its tensor is of integers.

        One in a floating-point format is not, and one of 16 bit of a floating-point tensor.
        """
        if wide.bits == tensor.bits:
            return replace(tensor, index=0)
        floating = bool(wide.word and wide.word.floating)
        nonzero = 1.0 if wide.bits == 1 else tensor.nonzero  # signs
        return replace(
            tensor, bits=wide.bits, index=0, floating=floating, word=wide.word, nonzero=nonzero
        )

    # -- operators -------------------------------------------------------------------------

    def operator(self) -> Works:
        """Yield the work of an operator, without what this run leaves out."""
        if self.nests and self.node.layer.kind != "recurrence":
            return
        layer, kept = self.node.layer, self._kept_bits
        states = layer.work(self.t) if self.job.trains else layer.inference(self.t)
        for work in states:
            if self._counts(work, kept):
                yield work
        yield from self.membranes()
        if kept and self.job.trains and self.node.learns:
            sums = self.t.O.as_(Role.KEPT_SUM, kept)
            why = f"as wide as method {self.job.method.name} has it under kept"
            yield from write(FORWARD, sums, why=why)
            yield from read(BACK, sums, why=why)

    def membranes(self) -> Works:
        """Move membranes from step to step, where all layers run in each."""
        layer, steps = self.node.layer, self.node.steps
        if layer.kind != "spiking" or self.accounting.extras.time_steps == "inner":
            return
        sizes = zip("CHW", self.node.output_shape, strict=True)
        shape = (Factor("N", self.job.batch), *(Factor(letter, n) for letter, n in sizes))
        one = Tensor("O", shape, layer.membrane_bits, Role.MEMBRANE)
        yield from read(FORWARD, one, times=steps - 1, why="the first step has none")
        yield from write(FORWARD, one, times=steps)

    @property
    def _kept_bits(self) -> int:
        """Width of the sum that is stored for the way back; 0: none is."""
        if not (self.accounting.extras.stored_activations and self.node.inputs):
            return 0
        return widths.kept_bits(self.job.method, self.node, self.edges, self.accounting)

    def _counts(self, work: Move | Operate, kept_bits: int) -> bool:
        """Say whether this run pays for a work of the layer.

        It pays for no way back where there is none, and for no signal that an input does not want.
        It pays for saved tensors if the accounting says so and no kept sum replaces them. A
        threshold on words of one bit is applied as these are written, and moves nothing itself.
        """
        if work.pass_ != FORWARD and not self.job.trains:
            return False
        if work.pass_ == BACK and not self.node.learns:
            return False
        if not isinstance(work, Move):
            return True
        tensor = work.tensor
        thresholded = self.node.layer.kind == "activation" and self.t.I.bits == self.t.O.bits == 1
        if tensor.role == Role.SAVED:
            again = thresholded and tensor.name == "I"
            if not (self.job.trains and self.node.learns):  # nobody needs it again
                return False
            return self.accounting.extras.stored_activations and not (kept_bits or again)
        if work.pass_ == FORWARD:
            return not thresholded
        wanted = dict(zip(self.t.signals, self.node.signal_to, strict=True))
        return wanted.get(tensor, True)

    def copies(self) -> Works:
        """Yield the narrower copies for products, made as a tensor is written.

        A copy of 1 bit takes a comparison, a wider one a multiply-add, which scales. Those of the
        network's input belong to the loading of data, which no accounting counts.
        """
        narrow = self.edges[self.node.layer.name].copies
        narrow = tuple(copy for copy in narrow if copy.copies(self.job.trains))
        for i, copy in enumerate(narrow, 1):
            one = self.t.O.as_(Role.COPY, copy.bits, index=i if len(narrow) > 1 else 0)
            one = replace(one, word=copy.word)
            yield from self._copied(FORWARD, one, self.t.O, copy.copies(self.job.trains))
        if self.treatment and self.job.trains:
            yield from self._copied_signal(self.treatment)

    def _copied(self, pass_: Pass, copy: Tensor, wide: Tensor, times: int = 1) -> Works:
        """Yield a narrower copy; of blocks along both reductions, two."""
        bits = plain(copy.bits)
        why = f"a {bits}-bit copy for the products that read it"
        yield from write(pass_, copy, times=times, why=why)
        if copy.word:
            yield from quantised(pass_, copy, wide, times)
        elif copy.bits == 1:
            yield Operate(pass_, "add", copy, operands=(wide,), why="a comparison")
        else:
            yield Operate(pass_, "mac", copy, why="to scale")

    def _copied_signal(self, treatment: Treatment) -> Works:
        """Yield the narrower dO that the products read, in as many directions as they need."""
        wide, dO = treatment.signal, self.t.dO
        wanted = [self._wanted("backward_input"), self._wanted("backward_weight")]
        if wide and wide.bits < dO.bits and any(wanted):
            copy = replace(dO.as_(Role.COPY, wide.bits), word=wide.word)
            blocks = bool(wide.word and wide.word.block)
            yield from self._copied(BACK, copy, dO, sum(wanted) if blocks else 1)

    def extra_work(self) -> Works:
        """Yield a method's full-precision work on an output, which the graph does not show."""
        found = widths.extra_work(self.job.method, self.node)
        for number, extra in enumerate(found, 1):
            n, what = extra.streamed, extra.what
            if n is None:
                continue
            index = number if len(found) > 1 else 0
            word = self.t.O.as_(Role.EXTRA, self.full, index=index)
            signal = replace(word, name="dO")
            yield from read(FORWARD, word, times=n.reads, why=what)
            yield Operate(FORWARD, "add", word, n.adds, (word,), what)
            yield Operate(FORWARD, "mac", word, n.macs, why=what)
            yield from write(FORWARD, word, times=n.writes, why=what)
            if self.job.trains:
                yield from read(BACK, signal, times=n.signal_reads, why=what)
                yield Operate(BACK, "add", word, n.signal_adds, (word,), what)
                yield Operate(BACK, "mac", word, n.signal_macs, why=what)
                yield from write(BACK, signal, times=n.signal_writes, why=what)

    def preactivation_words(self) -> Works:
        """Yield a method's full-precision work on pre-activations, as words moved in DRAM alone."""
        found = widths.extra_work(self.job.method, self.node)
        for number, extra in enumerate(found, 1):
            times = extra.words * self.accounting.extras.preactivation_words
            word = self.t.O.as_(Role.EXTRA, self.full, index=number if len(found) > 1 else 0)
            why = f"{extra.what}: preactivation_words, in the outermost memory alone"
            yield Move(FORWARD, WRITE, word, times, why, through=False)

    def broadcast_signals(self) -> Works:
        """Sum the signals of the places to which a sum adds one tensor."""
        node, t = self.node, self.t
        if node.layer.kind != "add":
            return
        for one, shape, wanted in zip(t.signals, node.input_shapes, node.signal_to, strict=True):
            if wanted and shape != node.output_shape:
                spread = replace(t.dO, role=Role.BROADCAST, index=one.index)
                yield from read(BACK, spread, why="summed over the places that it was added to")
                yield Operate(BACK, "add", spread, operands=(t.dO,))
                yield from write(BACK, one)

    def forked_signals(self) -> Works:
        """Add up the signals of a tensor that several layers take.

        Slices take parts; parts that one layer alone takes have nothing to be added to.
        """
        node = self.node
        forks = sorted(item for item in node.taken.items() if item[0] > 1) if node.learns else []
        for takers, places in forks:
            some = (
                Factor("N", self.job.batch * node.steps),
                Factor("places", places, f"that {takers} layers take"),
            )
            index = takers if len(forks) > 1 else 0
            fork = replace(self.t.dO, shape=some, role=Role.FORK, index=index)
            yield from read(BACK, fork, times=takers, why="a signal from each taker")
            yield Operate(BACK, "add", fork, takers - 1, (fork,), f"sums of {takers} signals")
            yield from write(BACK, fork)

    def shared_gradient(self) -> Works:
        """Add the gradient of a layer that shares weights to that of their owner."""
        layer, dF = self.node.layer, self.t.dF.as_(Role.SHARED)
        if not layer.shares or layer.learned is not True or not dF.elements:
            return
        if self.nests or any(work.pass_ == WEIGHT for work in layer.work(self.t)):
            yield from read(WEIGHT, dF, times=2, why="its own, and what the others gave")
            yield Operate(WEIGHT, "add", dF, operands=(dF,), why="to the gradient of the owner")
            yield from write(WEIGHT, dF)

    def summed_gradients(self) -> Works:
        """Add the gradient of every iteration but the first to those before it.

        Not where the update is not counted, which takes the sum.
        """
        extras = self.accounting.extras
        again = extras.accumulate - 1
        boolean = self.treatment is not None and self.treatment.update == "boolean"
        if not (extras.boolean_update if boolean else extras.optimizer != "none"):
            return
        of_product = self.treatment and self.node.learned_weights
        if again and (of_product or self._writes_table_gradient):
            dF = self.t.dF.as_(Role.SUMMED)
            yield from read(WEIGHT, dF, times=again, why="what iterations before have given")
            yield Operate(WEIGHT, "add", dF, again, (dF,), "to the gradients before")

    @property
    def _writes_table_gradient(self) -> bool:
        """Whether the layer itself writes a gradient of its own, without a product."""
        return bool(self.node.learned_parameters) and any(
            isinstance(work, Move) and (work.pass_, work.tensor.name) == (WEIGHT, "dF")
            for work in self.node.layer.work(self.t)
        )

    # -- the step --------------------------------------------------------------------------

    def steps(self) -> Works:
        """Step every weight, and every other parameter in full precision."""
        node, optimizer = self.node, self.accounting.extras.optimizer
        treatment = self.treatment
        if treatment and node.learned_weights:
            if treatment.update == "boolean":
                yield from self._boolean_step() if self.accounting.extras.boolean_update else ()
            elif optimizer != "none":
                yield from self._optimizer_step(treatment, treatment.optimizer or optimizer)
        if node.learned_parameters and optimizer != "none":
            size = (
                Factor("parameters", node.learned_parameters, "biases, scales, shifts, tables"),
            )
            P, own = Tensor("P", size, self.full), self.job.method.optimizer or optimizer
            yield from optimizer_step(own, P, replace(P, name="dP"), self.full)

    def _optimizer_step(self, treatment: Treatment, rule: str) -> Works:
        """Step the weights of a product, and write what its passes read of them."""
        F, weights = self.t.F, self.node.learned_weights
        C = self.nests["forward"].extent.C
        back = treatment.weight_back
        latent = treatment.latent or self.full
        copies: tuple[Tensor, ...] = ()
        read = self._wanted("backward_input") or self.node.lent
        if back and read and not self._reads_latent(treatment):
            copies = (replace(F.as_(Role.COPY, back.bits), word=back.word),)
        return optimizer_step(
            rule, F, self.t.dF, latent, shape=(weights // C, C), rank=self.job.method.rank,
            states=treatment.states, copies=copies,
        )  # fmt: skip

    def _boolean_step(self) -> Works:
        """Step Boolean weights, with traces' accumulator bits and flip rate, if there are any."""
        accounting, layer = self.accounting, self.node.layer
        stated = f"as accounting {accounting.name} states"
        bits = Factor("accumulator_bits", accounting.extras.accumulator_bits, stated)
        flips = Factor("flip rate", accounting.extras.flip_rate, stated)
        measured = self.job.measured
        own = widths.limits_of(self.job.method).accumulator
        if own:
            bits = bits._replace(value=own.bits, why=f"as method {self.job.method.name} states")
        if measured is not None and (found := measured.get(layer.name)):
            if found.accumulator_bits and not own:
                bits = bits._replace(value=found.accumulator_bits, why="as traces measured")
            if found.flip_rate is not None:
                flips = flips._replace(value=found.flip_rate, why="as traces measured")
        return boolean_step(self.t.F, self.t.dF, bits, flips)
