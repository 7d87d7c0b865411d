"""Every field of an accounting and every number of a chip moved alone: sweeps, studies, evaluate.

Sweeps and studies remember tilings, counts and work by what these depend on. Here each field moves
from a point that has just been asked for, so that one which is left out of a key gives the old
figure; the truth is `evaluate` with nothing remembered.
"""

import csv
import io
import re
from functools import cache

import pytest

from hwmodel import HwmodelError, evaluate, importers
from hwmodel.importers.load import load_network
from hwmodel.specs import files as files_of_specs
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling import level_by_level
from hwmodel.tiling.tile import tile
from hwmodel.vary.paths import Inputs, leaves, replaced_all
from hwmodel.vary.sensitivity.costs import Costs, Study
from hwmodel.vary.sweep.file import SweepFile
from hwmodel.vary.sweep.part import columns, run_part
from hwmodel.vary.sweep.plan import plan
from tests.specs import written

# Strides that leave rows out, padding, a reduction that is cut, and a norm: all fields matter.
NETWORK = """\
version: 1
name: odd
title: A strided network with a norm
input: [4, 9, 9]
layers:
  - {name: first, kind: conv, channels: 6, kernel: 3, padding: 1}
  - {name: norm, kind: batch-norm}
  - {name: act, kind: activation}
  - {name: middle, kind: conv, channels: 12, kernel: 1, stride: 2}
  - {name: norm2, kind: batch-norm}
  - {name: act2, kind: activation}
  - {name: last, kind: linear, features: 5}
"""
CHIP = """\
version: 1
name: narrow
title: A narrow chip that prices much
energy_unit: pJ
sources: {me: "made up"}
levels:
  - {level: 1, name: DRAM, capacity: unlimited, read_energy: 8 pJ/bit, write_energy: 9 pJ/bit, source: me}
  - level: 0
    name: RF
    split:
      - {name: RI, holds: [I], capacity: 100 B, access_energy: 0.5 pJ/B, source: me}
      - {name: RF0, holds: [F], capacity: 50 B, efficiency: 3.3 GB/s/mW, source: me}
      - {name: RO, holds: [O], capacity: 30 B, read_energy: 0.2 pJ/bit, write_energy: 0.3 pJ/bit, source: me}
arithmetic:
  - {operation: mac, bits: 32, efficiency: 1.7 TOPS/W, operations: 2, source: me}
  - {operation: mac, bits: 16, energy: 1.1 pJ, source: me}
  - {operation: mac, bits: 64, energy: 6 pJ, source: me}
voltage: {priced: 0.9 V, run: 0.7 V, source: me}
"""
# A Boolean method that distils: its teacher is paid where the accounting says so. One of integers.
TAUGHT = """\
version: 1
name: taught
title: Boolean, with a teacher
sources: {me: "made up"}
layers:
  - {precision: bold, source: me}
tensors:
  - {where: {position: [last]}, bits: full_precision, signal: full_precision, source: me}
  - {where: {kind: [activation]}, bits: 1, signal: boolean_signal, source: me}
  - {where: {position: [first]}, bits: border, signal: boolean_signal, source: me}
  - {where: {kind: [batch-norm]}, bits: preactivation, signal: boolean_signal, source: me}
  - {bits: boolean_sum, signal: boolean_signal, source: me}
extra_work:
  - {what: batch norm of the pre-activations, where: {kind: [conv, linear]}, source: me}
teacher: {network: mlp-784-512-512-10, method: fp, source: me}
"""
INTEGER = """\
version: 1
name: integer
title: Integers in three widths, half words where they are added
sources: {me: "made up"}
layers:
  - {where: {position: [first]}, precision: fp, weights: 8, arithmetic: {forward: int-mac, backward_input: add, backward_weight: mac}, source: me}
  - {precision: fp, weights: 4, inputs: 4, arithmetic: {forward: int-mac, backward_input: mac, backward_weight: mac}, source: me}
tensors:
  - {where: {kind: [activation]}, bits: 8, signal: 16, format: floating, source: me}
  - {where: {kind: [batch-norm]}, bits: 16, signal: 16, format: floating, source: me}
  - {bits: 8, signal: 16, source: me}
"""
# Points to move from: the bundled ones, and one between them from which each choice moves alone.
LOOSE = """\
version: 1
name: loose
title: Level by level with exact counts
based_on: paper
counting: {counting: exact}
"""
PAPER = load(Accounting, "paper")
GROUPS = ("counting", "widths", "prices", "extras")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths to the files above, by name."""
    folder = tmp_path_factory.mktemp("odd")
    texts = {
        "network": NETWORK,
        "hardware": CHIP,
        "taught": TAUGHT,
        "integer": INTEGER,
        "loose": LOOSE,
    }
    return {name: str(written(folder, text, name=f"{name}.yaml")) for name, text in texts.items()}


@pytest.fixture(scope="module", autouse=True)
def _read_once():
    """Files are parsed once: they stay as they are, and there are two thousand readings of them."""
    parsed = cache(files_of_specs.read_yaml)
    with pytest.MonkeyPatch.context() as patched:
        for module in (files_of_specs, importers.load):
            patched.setattr(module, "read_yaml", parsed)
        yield


@pytest.fixture(autouse=True)
def _without_a_disk(monkeypatch):
    monkeypatch.setenv("HWMODEL_CACHE", "off")


def moved(leaf):
    """Another value of a leaf: every other choice, and a number up and down."""
    values = [choice for choice in leaf.choices if choice != leaf.value]
    if leaf.number and isinstance(leaf.value, (int, float)) and not isinstance(leaf.value, bool):
        more = 2 * leaf.value or 3
        number = 0.5 if leaf.path.endswith("flip_rate") else more
        values.append(max(1, leaf.value // 2) if leaf.whole and more > 64 > leaf.value else number)
    elif leaf.number:
        values.append(16 if leaf.whole else 0.01)
    return values


def moves(spec):
    """(path, value) of every leaf of a spec that its rules allow to move alone."""
    for leaf in leaves(spec):
        for value in moved(leaf):
            try:
                replaced_all(spec, {leaf.path: value})
            except HwmodelError:
                continue
            yield leaf.path, value


pytestmark = pytest.mark.filterwarnings("ignore:hardware narrow has no memory in which tensors")
METHODS = ("fp", "taught", "integer")
POINTS = [
    ("accounting", "paper"), ("accounting", "loose"), ("accounting", "full"),
    ("hardware", "paper"), ("hardware", "full"),
]  # fmt: skip


def spec_of(files, root, base):
    """The spec that moves: the chip, or the accounting of a name."""
    if root == "hardware":
        return load(Hardware, files["hardware"])
    return load(Accounting, files.get(base, base))


def afresh(files, base, root=None, path=None, value=None):
    """What each method costs there, or why there is no figure; with nothing remembered."""
    inputs = {"hardware": spec_of(files, "hardware", base)}
    inputs["accounting"] = spec_of(files, "accounting", base)
    if root:
        inputs[root] = replaced_all(inputs[root], {path: value})
    found = []
    for method in METHODS:
        tile.cache_clear()
        level_by_level.greedy.cache_clear()
        try:
            report = evaluate(files["network"], method=files.get(method, method), **inputs)
            found.append(report.energy)
        except HwmodelError as error:
            # Who asks for a price, `evaluate` alone says.
            found.append(re.sub(r"; [^;]* asks for it under method \S+$", "", str(error)))
    return found


@pytest.fixture(scope="module")
def truths(files):
    """Of every point to move from: (path, value, what each method costs with it)."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HWMODEL_CACHE", "off")
        return {
            (root, base): [
                (path, value, afresh(files, base, root, path, value))
                for path, value in moves(spec_of(files, root, base))
            ]
            for root, base in POINTS
        }


def test_every_field_of_an_accounting_moves_some_energy(files, truths):
    unmoved = {f"{g}.{f}" for g in GROUPS for f in type(getattr(PAPER, g)).model_fields}
    for (root, base), found in truths.items():
        if root == "accounting":
            plain = afresh(files, base)
            for path, _, costs in found:
                if costs != plain:
                    unmoved.discard(".".join(path.split(".")[:2]))
    assert unmoved == {
        "counting.zero_signals",  # only a trace says what is 0: test_turn2_traces
        "counting.masked_scores",  # of a causal mask: test_transformers
        "counting.attention",  # test_fused_attention
        "counting.weight_gradient",  # where filters are held alone: below
        "extras.kept",  # moves the peak of memory: test_memory
        "extras.time_steps",  # of spiking networks: test_spiking
        "prices.narrow_floats",  # of products of formats: test_number_formats
        "counting.residency",  # in a memory between the outermost and level 0: test_residency
    }


def test_the_roles_of_the_weight_gradient_count_where_filters_are_held(files):
    held = replaced_all(load(Accounting, "full"), {"counting.stationary": "filter"})
    one_role = replaced_all(held, {"counting.weight_gradient": "signal-as-filters"})
    either, signal = (
        evaluate(files["network"], files["hardware"], "fp", accounting=accounting).energy
        for accounting in (held, one_role)
    )
    assert either < signal


@pytest.mark.parametrize(("root", "base"), POINTS)
def test_a_study_gives_what_evaluate_gives_wherever_a_field_moves(files, truths, root, base):
    chip, accounting = (spec_of(files, kind, base) for kind in ("hardware", "accounting"))
    fp, *others = (load(Method, files.get(method, method)) for method in METHODS)
    network = load_network(files["network"])
    point = Inputs(network, chip, fp, accounting)
    costs = Costs(Study(network, (fp, *others), fp, (point,), "training"))
    for path, value, (whole, *rest) in truths[root, base]:
        costs.at(0, {})
        got = costs.at(0, {f"{root}.{path}": value})
        if isinstance(whole, str):
            assert set(got.reasons) == {f"the baseline: {whole}"}
            continue
        for percent, reason, wanted in zip(got.percents[1:], got.reasons[1:], rest, strict=True):
            if isinstance(wanted, str):
                assert reason == wanted, (path, value)
            else:
                assert percent == pytest.approx(100 * wanted / whole, rel=1e-12), (path, value)


@pytest.mark.parametrize(("root", "base"), POINTS)
def test_a_sweep_gives_what_evaluate_gives_wherever_a_field_moves(files, truths, root, base):
    own = {leaf.path: leaf.value for leaf in leaves(spec_of(files, root, base))}
    for path, value, wanted in truths[root, base]:
        if value is None:  # which an axis cannot say
            continue
        options = [x for x in (own[path], value) if x is not None]
        if path.endswith("capacity"):
            options = [f"{bits} bit" for bits in options]
        for got, energy in zip(swept(files, base, f"{root}.{path}", options), wanted, strict=True):
            if isinstance(energy, str):
                assert got["reason"] == energy, (path, value)
            else:
                assert float(got["energy"]) == pytest.approx(energy, rel=1e-12), (path, value)


def swept(files, base, path, options):
    """The rows of a sweep over a field: those of its last option, a method each."""
    fields = {
        "version": 1, "name": "s", "title": "S", "network": files["network"],
        "method": tuple(files.get(method, method) for method in METHODS),
        "hardware": files["hardware"], "accounting": files.get(base, base),
        "axes": ({path: tuple(options)},),
    }  # fmt: skip
    made = plan(SweepFile.model_validate(fields))
    rows = csv.reader(io.StringIO(run_part(made, made.points())))
    found = [dict(zip(columns(made), row, strict=True)) for row in rows]
    last = [row for row in found if row[path] == found[-1][path]]
    assert [row["method"] for row in last] == list(METHODS)
    return last
