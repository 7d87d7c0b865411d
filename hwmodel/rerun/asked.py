"""The options of commands that make numbers: a model a command, a field an option.

From a model follow the command's options on the command line (`cli/options.py`), the line that a
table states, and how `verify` reads that line back. Fields stand in the order of that line.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from hwmodel.errors import DataError, HwmodelError, nearest, printable
from hwmodel.specs import usual
from hwmodel.specs.inputs import is_input

__all__ = ["LISTED", "PASSES", "Asked", "CompareAsked", "ExplainAsked", "MeasuredAsked", "Names"]
__all__ += ["Options", "ReadingsAsked", "ReportAsked", "ReproduceAsked", "Says", "SensitivityAsked"]
__all__ += ["SweepAsked", "checked"]
__all__ += ["command_line", "flag", "read_command", "repeated", "said_of", "split_names"]

PASSES = ("forward", "backward-input", "backward-weight", "update", "recompute")


class Says(NamedTuple):
    """The help of an option, and how it stands on the command line."""

    help: str
    names: str = ""  # the kind of file whose bundled names a shell offers
    usual: str = ""  # the default in words, where it is worked out
    short: str = ""  # a second flag, of one letter
    argument: bool = False  # given by its place, without a flag
    metavar: str = ""
    repeats: bool = False  # whether names may be given one by one, too


def split_names(listed: str) -> list[str]:
    """Split names at commas; a file that is there may have commas in its name."""
    pieces, names = listed.split(","), []
    while pieces:
        lengths = range(len(pieces), 1, -1)
        taken = next((n for n in lengths if is_input(",".join(pieces[:n]).strip())), 1)
        names.append(",".join(pieces[:taken]).strip())
        del pieces[:taken]
    return names


def _listed(value: object) -> object:
    """Split names at commas, of an option that is given several times, too; each stands once."""
    words = [value] if isinstance(value, str) else value
    names: object = value
    if isinstance(words, (list, tuple)) and all(isinstance(word, str) for word in words):
        names = [name for word in words for name in split_names(word)]
    if isinstance(names, list) and not all(names):
        raise ValueError("names separated by commas, none of them empty")
    twice = [name for name in names if names.count(name) > 1] if isinstance(names, list) else []
    if twice:
        raise ValueError(f"{twice[0]} stands there twice")
    return names


LISTED = BeforeValidator(_listed)  # what tells one word of several names from several words
Names = Annotated[tuple[str, ...], LISTED]

Network = Annotated[
    str, Says("A bundled network, or a YAML or ONNX file.", names="network", argument=True)
]
Chip = Annotated[str, Says("The chip, by name or file.", names="hardware")]
Chips = Annotated[Names, Says("Chips, by name or file, separated by commas.", names="hardware")]
Method = Annotated[str, Says("The method, by name or file.", names="method")]
Methods = Annotated[Names, Says("Methods, by name or file, separated by commas.", names="method")]
Accounting = Annotated[
    str, Says("What is counted and how: a preset, or a YAML file.", names="accounting")
]
Accountings = Annotated[
    Names, Says("Presets or YAML files, separated by commas.", names="accounting")
]
Batch = Annotated[
    int | None, Says("Images in the iteration.", usual="1; the training's; the traces'")
]


def _alone(value: object) -> object:
    """One batch is a list of one."""
    return (value,) if isinstance(value, int) else value


Batches = Annotated[
    tuple[int, ...],
    LISTED,
    BeforeValidator(_alone),
    Says(
        "Images in the iteration; several, separated by commas.",
        usual="1; the training's; the traces'",
    ),
]
Mode = Annotated[str, Says("training (all passes) or inference (forward only).")]


def _no_or_nothing(value: str) -> str:
    """Yes is the default and has no word in a command."""
    if value not in ("", "yes", "no"):
        raise ValueError("yes or no")
    return "" if value == "yes" else value


OptimalTiles = Annotated[
    str,
    AfterValidator(_no_or_nothing),
    Says("Say what greedy tiles cost more than optimal ones: yes or no.", usual="yes"),
]
Run = Annotated[str, Says("A whole training run, too: a preset, or a YAML file.", names="training")]
TraceFiles = Annotated[
    Names,
    Says(
        "Traces of training runs: measured widths and flip rates in place of assumed ones. "
        "Separated by commas, or given several times.",
        repeats=True,
    ),
]
InputShape = Annotated[
    tuple[str, ...],
    Says("Of an ONNX file's input that leaves dimensions open: name=1,3,224,224."),
]


Move = Annotated[
    tuple[str, ...],
    Says(
        "Move a field of chips or accountings, for the methods and their baseline alike: "
        "hardware.levels.L3.access_energy=x0.5; repeatable."
    ),
]
Freeze = Annotated[
    tuple[str, ...],
    Says("Train nothing of the layers with such names: a pattern, as 'features.*'; repeatable."),
]
TrainOnly = Annotated[
    tuple[str, ...], Says("Train nothing but the layers with such names; repeatable.")
]


Checkpoint = Annotated[
    Names,
    Says(
        "Keep what layers with such names give, patterns separated by commas; between them layers "
        "go forward once more on the way back.",
        repeats=True,
    ),
]


Accumulate = Annotated[
    int | None,
    Says("Iterations of the batch for one update of the weights.", usual="the accounting's"),
]


class Options(BaseModel):
    """Base of options that are declared together."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Asked(Options):
    """Base of what a command is asked: all that changes its numbers, and nothing else."""

    NAME: ClassVar[str]  # of the command; its second word, if any, is a flag


class ReportAsked(Asked):
    """What `report` is asked."""

    NAME = "report"
    network: Network
    hardware: Chip
    method: Method
    accounting: Accounting = usual.ACCOUNTING
    batch: Batch = None
    mode: Mode = "training"
    training: Run = ""
    trace: TraceFiles = ()
    input_shape: InputShape = ()
    freeze: Freeze = ()
    train_only: TrainOnly = ()
    checkpoint: Checkpoint = ()
    accumulate: Accumulate = None
    move: Move = ()


class CompareAsked(Asked):
    """What `compare` is asked."""

    NAME = "compare"
    network: Network
    hardware: Chips = usual.CHIPS
    methods: Methods = usual.METHODS
    baseline: Annotated[
        str, Says("Method that is 100 %.", names="method", usual="the accounting's")
    ] = ""
    baseline_network: Annotated[
        str,
        Says(
            "Network that is 100 % under it, with a line of its own.",
            names="network",
            usual="the same",
        ),
    ] = ""
    accounting: Accountings = (usual.ACCOUNTING,)
    batch: Batches = ()
    mode: Mode = "training"
    training: Run = ""
    trace: TraceFiles = ()
    accuracy: Annotated[
        float | None, Says("Validation accuracy to reach, 0 to 1.", usual="none")
    ] = None
    optimal_tiles: OptimalTiles = ""  # yes, which needs no word in the command
    sustain: Annotated[
        int | None,
        Says("Evaluations in a row at or above it; the first of them counts.", usual="3"),
    ] = None
    input_shape: InputShape = ()
    freeze: Freeze = ()
    train_only: TrainOnly = ()
    checkpoint: Checkpoint = ()
    accumulate: Accumulate = None
    move: Move = ()

    @field_validator("sustain")
    @classmethod
    def _several(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and not (info.data.get("trace") and 1 <= value <= 1000):
            raise ValueError("a whole number from 1 to 1,000, with --trace")
        return value

    @field_validator("accuracy")
    @classmethod
    def _share(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and not (info.data.get("trace") and 0 < value <= 1):
            raise ValueError("a share above 0, at most 1, with --trace")
        return value


class ExplainAsked(Asked):
    """What `explain` is asked."""

    NAME = "explain"
    network: Network
    layer: Annotated[str, Says("The layer, by its name in the network.")]
    hardware: Chip
    method: Method
    accounting: Accounting = usual.ACCOUNTING
    batch: Batch = None
    mode: Mode = "training"
    pass_: Annotated[str, Says(f"One pass only: {', '.join(PASSES)}.")] = ""
    trace: TraceFiles = ()
    input_shape: InputShape = ()
    freeze: Freeze = ()
    train_only: TrainOnly = ()
    checkpoint: Checkpoint = ()

    @field_validator("pass_")
    @classmethod
    def _known(cls, value: str) -> str:
        found = value.replace("_", "-")  # as tables call them
        if value and found not in PASSES:
            raise ValueError(nearest(value, PASSES))
        return found


class GenerateAsked(Asked):
    """What `generate` is asked."""

    NAME = "generate"
    network: Network
    hardware: Chip
    method: Method
    prefill: Annotated[int, Says("Tokens of the prompt of each sequence.")]
    decode: Annotated[int, Says("Steps of decoding; each gives a token of each sequence.")]
    batch: Annotated[Names, Says("Sequences side by side; several, separated by commas.")] = ("1",)
    cache_bits: Annotated[
        str,
        Says(
            "Bits of an element in the cache of keys and values, as 8, or 8/128 with a scale of 16 "
            "bit for 128 elements.",
            usual="as products read it",
        ),
    ] = ""
    accounting: Accounting = usual.ACCOUNTING
    input_shape: InputShape = ()


class ReproduceAsked(Asked):
    """What `reproduce` is asked."""

    NAME = "reproduce"
    table: Annotated[str, Says("A published table.", usual="all of them", argument=True)] = ""
    accounting: Accountings = ("paper", "full")
    batch: Batch = None
    optimal_tiles: OptimalTiles = ""


class ReadingsAsked(Asked):
    """What `reproduce --readings` is asked: nothing, it takes all there is."""

    NAME = "reproduce --readings"


class MeasuredAsked(Asked):
    """What `reproduce --measured` is asked: one table of measurements, or all."""

    NAME = "reproduce --measured"
    table: Annotated[str, Says("A table.", usual="all of them", argument=True)] = ""


class SensitivityAsked(Asked):
    """What `sensitivity` is asked."""

    NAME = "sensitivity"
    network: Network
    hardware: Chips
    methods: Methods
    accounting: Accounting = usual.OF_MANY
    batch: Batch = None
    mode: Mode = "training"
    input_shape: InputShape = ()
    freeze: Freeze = ()
    train_only: TrainOnly = ()
    checkpoint: Checkpoint = ()
    samples: Annotated[
        int,
        Says(
            "Points at which all energies, prices and capacities are drawn at once; 0 for none. "
            "Each may ask for all tilings anew: 100 take longer than all moves."
        ),
    ] = 100
    seed: Annotated[int, Says("Of the draws.")] = 0
    ranges: Annotated[
        Path | None,
        Says(
            "YAML file of what is drawn: 'dotted.path: [low, high]'.",
            usual="every energy, price and capacity, x 1/2 to x 2",
        ),
    ] = None


class SweepAsked(Asked):
    """What `sweep` is asked: its file says all."""

    NAME = "sweep"
    file: Annotated[Path, Says("What is varied.", argument=True, metavar="SWEEP.yaml")]


Model = TypeVar("Model", bound=Options)
_RULES = {"int_parsing": "must be a whole number", "float_parsing": "must be a number"}


def checked(kind: type[Model], values: Mapping[str, object]) -> Model:
    """Make the options of one kind from values by their fields, or from texts that stand for them.

    Raises: HwmodelError, with the first that breaks a rule.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        rule = _RULES.get(first["type"]) or first["msg"].removeprefix("Value error, ")
        given = first["input"]
        given = ",".join(map(str, given)) if isinstance(given, list) else given
        raise HwmodelError(f"{flag(str(first['loc'][0]))} {given!r}: {rule}") from None


def flag(field: str) -> str:
    """Return the flag of a field.

    >>> flag("input_shape"), flag("pass_")
    ('--input-shape', '--pass')
    """
    return f"--{field.rstrip('_').replace('_', '-')}"


def said_of(field: FieldInfo) -> Says:
    """Return what a field states for the command line."""
    return next(more for more in field.metadata if isinstance(more, Says))


def repeated(field: FieldInfo) -> bool:
    """Tell whether an option may be given several times, with a value each."""
    several = get_origin(field.annotation) is tuple
    return several and (LISTED not in field.metadata or said_of(field).repeats)


def command_line(asked: Asked) -> str:
    """Write the command that asks the same, quoted for a POSIX shell.

    Defaults are written out; what cannot be printed is, too.
    """
    words = ["hwmodel", *asked.NAME.split()]
    for name, field in type(asked).model_fields.items():
        value: Any = getattr(asked, name)
        if value in (None, "", ()):
            continue
        if LISTED in field.metadata:
            value = ",".join(map(str, value))
        before = [] if said_of(field).argument else [flag(name)]
        for one in value if isinstance(value, tuple) else [value]:
            words += [*before, str(one)]
    return shlex.join(map(printable, words))


def read_command(text: str, kinds: Sequence[type[Asked]]) -> Asked:
    """Read the options of a command that a table states. Nothing is run, and no shell sees it.

    Args:
        kinds: of commands that may stand there.

    Raises: DataError for what is none of them or lacks an option, HwmodelError for a value that
        breaks a rule.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise DataError(f"command {text!r}: cannot be read: {error}") from None
    named = {kind: ["hwmodel", *kind.NAME.split()] for kind in kinds}
    fitting = [kind for kind, name in named.items() if words[: len(name)] == name]
    kind = max(fitting, key=lambda kind: len(named[kind]), default=None)
    if kind is None:
        of = ", ".join(f"hwmodel {kind.NAME}" for kind in kinds)
        raise DataError(f"command {text!r}: is none of {of}")
    try:
        values = _values(kind, words[len(named[kind]) :])
    except DataError as error:
        raise DataError(f"command {text!r}: {error}") from None
    return checked(kind, values)


def _values(kind: type[Asked], words: list[str]) -> dict[str, Any]:
    """Assign texts to the fields of a command. Raises: DataError."""
    fields = kind.model_fields
    place = next((name for name, field in fields.items() if said_of(field).argument), "")
    by_flag = {flag(name): name for name in fields if name != place}
    values: dict[str, Any] = {}
    if words and not words[0].startswith("-"):
        values[place] = words.pop(0)
    options = words[::2]
    unknown = next((option for option in options if option not in by_flag), None)
    if unknown is not None:
        hint = nearest(unknown, by_flag)
        raise DataError(f"hwmodel {kind.NAME} has no option {unknown} here; {hint}")
    if len(words) % 2:
        raise DataError(f"{words[-1]} has no value")
    for option, value in zip(options, words[1::2], strict=True):
        name = by_flag[option]
        values[name] = (*values.get(name, ()), value) if repeated(fields[name]) else value
    for name, field in fields.items():
        if field.is_required() and name not in values:
            raise DataError(f"lacks {name if name == place else flag(name)}")
    return values
