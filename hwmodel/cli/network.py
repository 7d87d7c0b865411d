"""network show, check and import, and schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.catalogue import catalogue
from hwmodel.cli.offered import bundled_names
from hwmodel.cli.options import Network as Name
from hwmodel.cli.screen import handed, show
from hwmodel.errors import HwmodelError, printable

if TYPE_CHECKING:
    from hwmodel.graph.network import Network

__all__ = ["InputShape", "network", "schema"]

InputShape = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        help="Of an ONNX file's input that leaves dimensions open: name=1,3,224,224.",
        show_default=False,
    ),
]

network = catalogue("network", "networks: layers and shapes", plain=False)


def _chosen(name: str, input_shape: list[str] | None) -> Network:
    """The network behind a name or file."""
    from hwmodel.importers.load import load_network
    from hwmodel.importers.onnx import input_shapes

    return load_network(name, input_shapes(input_shape or []))


@network.command("show")
def show_(
    name: Name,
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
    ] = "paper",
    yaml: Annotated[bool, typer.Option("--yaml", help="As a network file instead.")] = False,
    csv: Annotated[
        str, typer.Option("--csv", help="As CSV instead, to this file; '-' is standard output.")
    ] = "",
    input_shape: InputShape = None,
) -> None:
    """Every layer: shape, parameters, MACs, widths and memory; totals; MACs by width."""
    from hwmodel.graph.yaml import network_yaml
    from hwmodel.specs.accounting import Accounting
    from hwmodel.specs.files import load
    from hwmodel.specs.method import Method
    from hwmodel.views.summary import summary, summary_csv, summary_tables

    chosen = _chosen(name, input_shape)
    if yaml:
        typer.echo(network_yaml(chosen), nl=False)
        return
    choices = load(Accounting, accounting)
    rules = load(Method, method or choices.baseline)
    lines = summary(chosen, rules, choices)
    if csv:
        handed(summary_csv(lines), csv)
    else:
        show(summary_tables(chosen, rules, lines))


@network.command()
def check(name: Name, input_shape: InputShape = None) -> None:
    """Whether a network file is right; if not, where it is wrong."""
    typer.echo(f"{printable(name)}: network {_chosen(name, input_shape).name} is right")


@network.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="An ONNX file.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The network file to write; '-': standard output."),
    ],
    input_shape: InputShape = None,
) -> None:
    """Write an ONNX file's network as YAML that can be read and changed."""
    from hwmodel.graph.yaml import network_yaml
    from hwmodel.importers.onnx import from_onnx, input_shapes
    from hwmodel.specs.files import is_path

    if str(output) != "-" and not is_path(str(output)):
        raise HwmodelError(
            f"{output}: would not be read as a network file; end its name in .yaml or .yml"
        )
    found = from_onnx(file, input_shapes(input_shape or []))
    unknown = sum(layer.kind == "uncounted" for layer in found.layers)
    without = f", {unknown} of them operators without a model" if unknown else ""
    handed(network_yaml(found), output, f": {len(found.layers)} layers{without}")


def schema(
    kind: Annotated[
        str, typer.Argument(help="hardware, network, method, accounting, training or sweep.")
    ],
) -> None:
    """The JSON Schema of one kind of file, for editors."""
    from hwmodel.views.schema import schema_text

    typer.echo(schema_text(kind), nl=False)
