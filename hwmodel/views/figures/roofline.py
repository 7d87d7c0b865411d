"""An energy roofline: energy per MAC against MACs per byte of the outermost level.

A chip whose MAC costs e_mac and whose outermost level costs e_byte a byte cannot do a MAC for
less than e_mac + e_byte / intensity, with the intensity in MACs for each byte that crosses that
level; the inner levels come on top. Left of the balance e_byte / e_mac the outermost memory is
the larger part, right of it arithmetic. Source: Choi, Bedard, Fowler, Vuduc, A Roofline Model of
Energy, IPDPS 2013, its model of energy without the constant power.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from hwmodel.errors import DataError
from hwmodel.graph.network import Network, zoo
from hwmodel.importers.load import load_network
from hwmodel.model.ledger import Component
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.provenance import SHORT, input_of
from hwmodel.views.colours import called, looks, told
from hwmodel.views.figures.canvas import GREY, Style, caption, heading, legend, panels, plain_ticks
from hwmodel.views.figures.points import Point, name_points, scatter
from hwmodel.views.figures.records import Page, Record, headline, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Roof", "roof", "roofline_figure", "roofline_points"]

NAMED = 6  # points with a name, over all methods of a panel
FEW = 3  # layers without a point that are named


class Roof(NamedTuple):
    """The least energy of a chip's MAC and of a byte at its outermost level, in its own unit."""

    mac: float  # energy of a MAC of `bits`
    bits: int
    byte: float  # energy of a byte read or written, the cheaper, at the outermost level
    level: str
    names: frozenset[str]  # memories of that level
    unit: str

    def energy(self, intensity: float) -> float:
        """Return the least energy of a MAC at so many MACs a byte."""
        return self.mac + self.byte / intensity


def roof(chip: Hardware) -> Roof:
    """Return the roof of a chip, for its widest MAC."""
    mac = max((p for p in chip.arithmetic if p.operation == "mac"), key=lambda p: p.bits)
    outermost = chip.levels[0]
    bit = min(
        min(memory.read_energy_per_bit, memory.write_energy_per_bit) for memory in outermost.buffers
    )
    names = frozenset(memory.name for memory in outermost.buffers)
    energy = mac.energy_per_operation * chip.scale
    return Roof(energy, mac.bits, 8 * bit, outermost.name, names, chip.unit)


def roofline_figure(page: Page) -> Figure:
    """Draw energy per MAC against MACs per byte: a panel a chip, a point a layer."""
    groups = _by_chip(page)
    _see_files(page, [group[0]["hardware"] for group in groups])
    macs = _macs(page)
    roofs = [roof(_chip(group[0], page)) for group in groups]
    every = [roofline_points(group, top, macs) for group, top in zip(groups, roofs, strict=True)]
    series = [_named(points) for points in every]
    style = page.style
    figure, axes = panels(style, len(groups), 1.1 * style.height, columns=style.columns - 1)
    lines = []
    for one, group, top, points in zip(axes, groups, roofs, series, strict=True):
        scatter(one, points, style)
        lines.append(_lines(one, points, top, style))
        several = len(unique(page.records, "accounting")) > 1
        name = called(group[0]["hardware"], "hardware")
        heading(one, style, f"{name}, {group[0]['accounting']}" if several else name)
    bare = any(not point.text for points in series for point in points)
    some = ", the costliest and those dearest a MAC named" if bare else ""
    of = f"; a point a layer{some}: products of {_passes(page)}"
    caption(figure, style, headline(page.records) + of + _left_out(groups, every))
    legend(figure, style, looks(unique(page.records, "method")), marks=True)
    named = [[*points, *more] for points, more in zip(series, lines, strict=True)]
    name_points(figure, axes, named, style)
    return figure


def roofline_points(group: Sequence[Record], top: Roof, macs: Mapping[str, int]) -> list[Point]:
    """Return a point for each layer with products, over its passes: MACs per byte, energy per MAC.

    None for layers that move nothing at the outermost level, which have no end of MACs per byte.

    Args:
        macs: of each layer in one pass over the batch.

    Raises: DataError where the table has layers that the network has not.
    """
    layers: dict[tuple[str, str], list[Record]] = {}
    for record in group:
        if record["component"] == Component.PRODUCT:
            layers.setdefault((record["method"], record["layer"]), []).append(record)
    points = []
    for (method, layer), records in layers.items():
        count = len(unique(records, "pass")) * macs.get(layer, 0)
        moved = fsum(float(r["count"]) for r in records if r["memory"] in top.names) / 8
        if not count:
            raise DataError(
                f"layer {layer} of the table is none of the network's: it was made of other files"
            )
        if moved:
            energy = fsum(float(record["energy"]) for record in records)
            points.append(Point(count / moved, energy / count, layer, method, energy))
    if layers and not points:
        raise DataError(f"no layer of the table moves anything at {top.level}: nothing to draw")
    return points


def _left_out(groups: Sequence[Sequence[Record]], series: Sequence[Sequence[Point]]) -> str:
    """Say which layers have no point; "" for none."""
    left: dict[str, None] = {}
    methods = {record["method"] for group in groups for record in group}
    for group, points in zip(groups, series, strict=True):
        drawn = {(point.method, point.text) for point in points}
        for record in group:
            own = record["method"], record["layer"]
            if record["component"] == Component.PRODUCT and own not in drawn:
                of = f" of {called(own[0])}" if len(methods) > 1 else ""
                left[f"{own[1]}{of}"] = None
    names = [*left]
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"; left out, without traffic there: {', '.join(names[:FEW])}{more}" if names else ""


def _passes(page: Page) -> str:
    """Name the passes whose products are drawn: an update has none."""
    products = [r for r in page.records if r["component"] == Component.PRODUCT]
    return ", ".join(pass_.replace("_", " ") for pass_ in unique(products, "pass"))


def _named(points: list[Point]) -> list[Point]:
    """Drop the names of all points but a few a method: those that cost most, and whose MACs do.

    Points of a method at one place share one name.
    """
    methods = dict.fromkeys(point.method for point in points)
    each = max(1, NAMED // max(1, len(methods)))
    told: dict[Point, str] = {}  # the first of each place, and its name
    for method in methods:
        places: dict[tuple[str, str], list[Point]] = {}
        for point in points:
            if point.method == method:
                places.setdefault((f"{point.x:.2g}", f"{point.y:.2g}"), []).append(point)
        dear = sorted(places.values(), key=lambda its: -fsum(p.weight for p in its))
        kept = dear[: (each + 1) // 2]
        rest = sorted((its for its in dear if its not in kept), key=lambda its: -its[0].y)
        told |= {its[0]: _together(its) for its in [*kept, *rest[: each - len(kept)]]}
    return [point._replace(text=told.get(point, "")) for point in points]


def _together(points: Sequence[Point]) -> str:
    """Name points at one place: the layers, or the first of many."""
    names = [point.text for point in points]
    return ", ".join(names) if len(names) < 4 else f"{names[0]} and {len(names) - 1} alike"


def _by_chip(page: Page) -> list[list[Record]]:
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in page.records:
        groups.setdefault((record["hardware"], record["accounting"]), []).append(record)
    return list(groups.values())


def _see_files(page: Page, chips: Sequence[str]) -> None:
    """See that every spec is bundled, given, or still where the table's command names it.

    Raises: DataError with all that are not.
    """
    network, missing = page.records[0]["network"], []
    if not page.network and network not in {*zoo(), *(one.name for one in told(Network))}:
        missing.append(f"no network is bundled as {network!r}: give its file, --network FILE")
    given = {load(Hardware, file).name for file in page.hardware}
    given |= {chip.name for chip in told(Hardware)}
    missing += [
        f"no hardware is bundled as {name!r}: give its file, --hardware FILE.yaml"
        for name in dict.fromkeys(chips)
        if name not in given and name not in bundled(Hardware)
    ]
    if missing:
        raise DataError("; ".join(missing))


def _chip(record: Record, page: Page) -> Hardware:
    """Return the chip of a table: of a file given, or the bundled one.

    Raises: DataError where the table was made of another one of its name.
    """
    name = record["hardware"]
    chips = (*(load(Hardware, file) for file in page.hardware), *told(Hardware))
    given = [chip for chip in chips if chip.name == name]
    chip = given[0] if given else load(Hardware, name)
    made_of = record.get("inputs_sha256")
    if made_of and input_of(chip).sha256[:SHORT] not in made_of.split("-"):
        if "--move" in record.get("command", ""):
            raise DataError(
                f"the table is of {name} with a field moved (--move); a roofline is of a chip's "
                "file: write the moved one, and make the table of it"
            )
        which = "the file that there is now" if given else "the bundled one"
        raise DataError(
            f"the table was made of another {name} than {which}: give its file, "
            "--hardware FILE.yaml"
        )
    return chip


def _macs(page: Page) -> dict[str, int]:
    """Return the MACs of each layer in one pass over the batch; a teacher's have long names."""
    name, batch = page.records[0]["network"], int(page.records[0]["batch"])
    named = [one for one in told(Network) if one.name == name and not page.network]
    network = named[0] if named else load_network(page.network or name)
    found = {node.layer.name: batch * node.macs for node in network.nodes()}
    teachers = {layer.split(":")[0] for layer in unique(page.records, "layer") if ":" in layer}
    for teacher in teachers & set(zoo()):
        for node in load_network(teacher).nodes():
            found[f"{teacher}:{node.layer.name}"] = batch * node.macs
    return found


def _lines(axes: Axes, points: Sequence[Point], top: Roof, style: Style) -> list[Point]:
    """Draw the floor, the slope and their sum; return the points to be named."""
    low, high = min(p.x for p in points) / 2.5, max(p.x for p in points) * 2.5
    span = [low * (high / low) ** (i / 100) for i in range(101)]
    least = min(*(p.y for p in points), top.mac) / 2
    most = max(*(p.y for p in points), top.energy(low)) * 1.3
    width = 0.1 * style.size
    axes.plot(span, [top.energy(x) for x in span], color="k", lw=1.5 * width, zorder=2)
    axes.plot(span, [top.byte / x for x in span], color=GREY, lw=width, ls="--", zorder=2)
    axes.axhline(top.mac, color=GREY, lw=width, ls=":", zorder=2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(least, most)
    plain_ticks(axes.xaxis, (1.0,) if high / low > 100 else (1.0, 2.0, 5.0))
    plain_ticks(axes.yaxis, (1.0,) if most / least > 100 else (1.0, 2.0, 5.0))
    axes.set_xlabel(f"MACs per byte of {top.level}")
    axes.set_ylabel(f"energy per MAC, {top.unit}")
    axes.grid()
    unit = top.unit.split(" ")[0]  # the axis says of which MAC
    start = min(most, top.byte / low)  # of the slope, where it comes into the panel
    foot = max(1.6 * least, 1.2 * top.byte / high)  # where it is about to leave it
    above = start * foot > top.mac**2  # more of it is above the floor
    named = ((start if above else foot) * top.mac) ** 0.5  # apart from the floor
    crossing = top.byte / top.mac
    far = low if crossing**2 > low * high else high
    return [
        Point(far, top.mac, f"{top.bits}-bit MAC {top.mac:.3g} {unit}", ""),
        Point(top.byte / named, named, f"{top.level} {top.byte:.3g} {unit}/byte", ""),
    ]
