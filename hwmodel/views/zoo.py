"""The page of bundled networks: products, parameters, source and the command of each."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodel.graph.network import family_member, zoo

__all__ = ["zoo_page"]

HEAD = """# The bundled networks

Made by `hwmodel.views.zoo.zoo_page` of `hwmodel/graph/families/zoo.yaml`; `tests/test_zoo_page.py`
sees that it is true. MACs are multiply-accumulates of the products of one pass over one image or
one sequence, attention among them and masks not taken off; parameters are those that are stored,
shared ones once. `tests/data/published_networks.csv` and `tests/data/today/` set them beside
published counts. A family takes other arguments in Python:
`hwmodel.graph.network.family_member("llama-3.1-8b", {"tokens": 4096})`; of images another size by
name: `resnet18@192`.

Every network runs by its name, as `hwmodel report NAME --hardware ascend --method fp`.
"""


def zoo_page() -> str:
    """Return the page, a table for each family."""
    families: dict[str, list[str]] = {}
    for name, line in zoo().items():
        families.setdefault(line.family, []).append(name)
    return HEAD + "".join(f"\n{text}" for text in map(_table, families, families.values()))


def _table(family: str, names: list[str]) -> str:
    rows = "\n".join(_rows(names))
    return (
        f"## {family}\n\n| name | network | input | MACs | parameters | source |\n"
        f"|---|---|---|---|---|---|\n{rows}\n\n"
        f"```\nhwmodel network show {names[0]}\n```\n"
    )


def _rows(names: list[str]) -> Iterator[str]:
    for name in names:
        network = family_member(name)
        nodes = network.nodes()
        macs = sum(node.macs for node in nodes)
        parameters = sum(node.weights + node.other_parameters for node in nodes)
        size = " x ".join(f"{n:,}" for n in network.input)
        source = network.sources["definition"]
        yield f"| `{name}` | {network.title} | {size} | {macs:,} | {parameters:,} | {source} |"
