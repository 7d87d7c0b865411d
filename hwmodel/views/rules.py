"""What a method does to a network, in a sentence: the rules that hold for some of its layers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.model.widths import Applied, layer_rules, matches, tensor_rule
from hwmodel.specs.method import LayerRule, Method, Where
from hwmodel.views.colours import called
from hwmodel.work.problem import PASSES

__all__ = ["method_sentences"]

_WIDTHS = {
    "weights": "weights", "inputs": "inputs", "weight_signal": "gradients of weights",
    "signal": "signals back", "weights_backward": "weights on the way back",
    "inputs_backward": "inputs on the way back", "latent": "latent weights",
}  # fmt: skip
Used = Collection[tuple[str, str, int]]  # method, part and number of rules that hold for a layer


def method_sentences(methods: Sequence[Method], network: Network) -> Iterator[str]:
    """Say what each method does to a network, and then what those do whose rules are taken over.

    It is said rule by rule: the first that fits a layer holds, and one that is the first for no
    layer of the network is left out. Names of widths, such as full precision, are fields of the
    accounting.

    Raises: SpecError where no rule holds for a layer.
    """
    used = {
        (rule.method, rule.part, rule.number)
        for method in methods
        for rule in _used(method, network)
    }
    yield from (_sentence(method, network, used) for method in methods)
    taken = {one.name: one for method in methods for one in method.references()}
    compared = {method.name for method in methods}
    for name, method in taken.items():
        words = _words(network.nodes(frozenset(method.omits)))
        if name not in compared and (products := _products(method, used, words)):
            yield f"{called(name)} ({method.title}), where a method names it: {products}."


def _used(method: Method, network: Network) -> Iterator[Applied[Any]]:
    """Yield the rules that hold for some layer of a network."""
    for node in network.nodes(frozenset(method.omits)):
        yield tensor_rule(method, node)
        if node.macs:
            yield from layer_rules(method, node)


def _sentence(method: Method, network: Network, used: Used) -> str:
    """Say what a method does to a network."""
    nodes = network.nodes(frozenset(method.omits))
    words = _words(nodes)
    rules = [_products(method, used, words)]
    rules += [
        f"outputs of {_where(one.where, words)}: {_bits(one.bits)}, signals {_bits(one.signal)}"
        for number, one in enumerate(method.tensors, start=1)
        if (method.name, "tensors", number) in used
    ]
    kept = (one for one in method.kept if any(matches(one.where, node) for node in nodes))
    rules += [f"sums of {_where(one.where, words)} kept in {_bits(one.bits)}" for one in kept]
    more = (one for one in method.extra_work if any(matches(one.where, node) for node in nodes))
    rules += [f"{one.what} behind {_where(one.where, words)}" for one in more]
    rules += [f"without {', '.join(method.omits)}"] if method.omits else []
    rules += [f"optimizer {method.optimizer}"] if method.optimizer else []
    if method.teacher:
        rules.append(f"beside a teacher, {method.teacher.network} under {method.teacher.method}")
    said = "; ".join(filter(None, rules))
    return f"{called(method.name)} ({method.title}): {said}."


def _products(method: Method, used: Used, words: Collection[str]) -> str:
    """Say what a method's products are, by the rules that are used; "" for none."""
    return "; ".join(
        f"products of {_where(one.where, words)}: {', '.join(_rule(one))}"
        for number, one in enumerate(method.layers, start=1)
        if (method.name, "layers", number) in used
    )


def _words(nodes: Sequence[Node]) -> set[str]:
    """The kinds, positions, roles and functions that layers have."""
    found = {str(getattr(node.layer, "function", "")) for node in nodes}
    return found | {w for x in nodes for w in (x.layer.kind, x.position, x.layer.role or "")}


def _rule(rule: LayerRule) -> Iterator[str]:
    if rule.precision:
        yield f"as {called(rule.precision)}"
    for field, words in _WIDTHS.items():
        if (width := getattr(rule, field)) is not None:
            yield f"{words} {_bits(width)}"
    kinds = {pass_: kind for pass_, kind in rule.arithmetic.items()}
    if len(set(kinds.values())) == 1 and len(kinds) == len(PASSES):
        yield f"{next(iter(kinds.values()))} in every pass"
    else:
        yield from (f"{kind} {pass_.replace('_', ' ')}" for pass_, kind in kinds.items())
    if rule.update:
        yield "flipped by votes" if rule.update == "boolean" else "stepped by an optimizer"
    if rule.optimizer:
        yield f"optimizer {rule.optimizer}"


def _bits(width: float | str) -> str:
    return width.replace("_", " ") if isinstance(width, str) else f"{width:g} bit"


def _where(where: Where, words: Collection[str]) -> str:
    """Name the layers of a rule, all that no rule before it has, by the words that some has."""
    stated = where.model_dump(exclude_none=True)
    found = [f"{name.replace('_', ' ')} {_listed(value, words)}" for name, value in stated.items()]
    return f"layers of {', '.join(found)}" if found else "all layers"


def _listed(value: bool | str | tuple[str, ...], words: Collection[str]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("no", "yes")[value]
    return " or ".join([word for word in value if word in words] or value)
