"""network show, check, import and save, and schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.catalogue import catalogue
from hwmodel.cli.options import bundled_names, command
from hwmodel.cli.screen import handed, say, show
from hwmodel.cli.usage import Plain
from hwmodel.errors import HwmodelError, printable
from hwmodel.rerun.asked import Freeze, InputShape, Options, Says, TrainOnly
from hwmodel.rerun.asked import Network as Name
from hwmodel.specs import usual

if TYPE_CHECKING:
    from hwmodel.graph.network import Network

__all__ = ["network", "schema"]


class Chosen(Options):
    """The network that is asked for."""

    name: Name
    input_shape: InputShape = ()


class Imported(Options):
    """What is imported, and where to."""

    file: Annotated[Path, Says("An ONNX file.", argument=True)]
    output: Annotated[Path, Says("The network file to write; '-': standard output.", short="-o")]
    input_shape: InputShape = ()


class Shown(Chosen):
    """The network that is shown, some layers of it frozen."""

    freeze: Freeze = ()
    train_only: TrainOnly = ()


network = catalogue("network", "networks: layers and shapes", plain=False)


def _network(chosen: Chosen) -> Network:
    """The network behind a name or file."""
    from hwmodel.importers.load import load_network
    from hwmodel.importers.onnx import input_shapes

    return load_network(chosen.name, input_shapes(chosen.input_shape))


@network.command("show", cls=Plain)
@command
def show_(
    chosen: Shown,
    method: Annotated[
        str,
        typer.Option(
            help="Widths under this method.",
            show_default="the accounting's baseline",
            autocompletion=bundled_names("method"),
        ),
    ] = "",
    accounting: Annotated[
        str,
        typer.Option(
            help="What is a matter of counting.", autocompletion=bundled_names("accounting")
        ),
    ] = usual.ACCOUNTING,
    yaml: Annotated[bool, typer.Option("--yaml", help="As a network file instead.")] = False,
    csv: Annotated[
        str, typer.Option("--csv", help="As CSV instead, to this file; '-' is standard output.")
    ] = "",
) -> None:
    """Every layer: shape, parameters, MACs, widths and memory; totals; MACs by width."""
    from hwmodel.graph.freezing import frozen
    from hwmodel.graph.yaml import network_yaml
    from hwmodel.specs.accounting import Accounting
    from hwmodel.specs.files import load
    from hwmodel.specs.method import Method
    from hwmodel.views.summary import summary, summary_csv, summary_tables

    found = frozen(_network(chosen), chosen.freeze, chosen.train_only)
    if yaml:
        typer.echo(network_yaml(found), nl=False)
        return
    choices = load(Accounting, accounting)
    rules = load(Method, method or choices.baseline)
    lines = summary(found, rules, choices)
    if csv:
        handed(summary_csv(lines), csv)
    else:
        show(summary_tables(found, rules, lines))


@network.command(cls=Plain)
@command
def check(chosen: Chosen) -> None:
    """Whether a network file is right; if not, where it is wrong."""
    typer.echo(f"{printable(chosen.name)}: network {_network(chosen).name} is right")


@network.command("import", cls=Plain)
@command
def import_(asked: Imported) -> None:
    """Write an ONNX file's network as YAML that can be read and changed."""
    from hwmodel.graph.yaml import network_yaml
    from hwmodel.importers.onnx import from_onnx, input_shapes
    from hwmodel.specs.files import is_path

    output = asked.output
    if str(output) != "-" and not is_path(str(output)):
        raise HwmodelError(
            f"{output}: would not be read as a network file; end its name in .yaml or .yml"
        )
    found = from_onnx(asked.file, input_shapes(asked.input_shape))
    unknown = sum(layer.kind == "uncounted" for layer in found.layers)
    without = f", {unknown} of them operators without a model" if unknown else ""
    handed(network_yaml(found), output, f": {len(found.layers)} layers{without}")


class Saved(Chosen):
    """A network to be written, some layers of it frozen."""

    output: Annotated[Path, Says("The network file to write; '-': standard output.", short="-o")]
    freeze: Freeze = ()
    train_only: TrainOnly = ()


@network.command(cls=Plain)
@command
def save(asked: Saved) -> None:
    """Write any network as a file that can be read and changed: bundled, of ONNX, of YAML."""
    from hwmodel.graph.freezing import frozen
    from hwmodel.graph.yaml import network_yaml

    found = frozen(_network(asked), asked.freeze, asked.train_only)
    if str(asked.output) == "-":
        typer.echo(network_yaml(found), nl=False)
        return
    found.save(asked.output)
    say(printable(f"wrote {asked.output}: {len(found.layers)} layers"))


def schema(
    kind: Annotated[
        str, typer.Argument(help="hardware, network, method, accounting, training or sweep.")
    ],
) -> None:
    """The JSON Schema of one kind of file, for editors."""
    from hwmodel.views.schema import schema_text

    typer.echo(schema_text(kind), nl=False)
