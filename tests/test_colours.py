"""Methods look the same in every figure, and are told apart by any eyes, in grey, too."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from hwmodel.model.ledger import PLACES
from hwmodel.specs.files import bundled, load
from hwmodel.specs.method import Method
from hwmodel.specs.published import published_tables
from hwmodel.views.colours import (
    depth_looks,
    ink_on,
    lightness,
    look,
    looks,
    part_looks,
    shade_on,
)

MAIN = ("fp", "binaryconnect", "xnor-net", "binarynet", "bold", "bold-bn")

# What dichromats see of linear RGB. Source: Machado, Oliveira, Fernandes, IEEE TVCG 15 (2009)
# 1291, table 1, severity 1.0. Rows sum to 1: greys stay greys.
EYES = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def linear(colour):
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(colour, eyes="usual"):
    """CIE L*a*b* under D65 of what such eyes see of a colour."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ np.clip(EYES[eyes] @ linear(colour), 0, 1)
    t = xyz / np.sum(to_xyz, axis=1)
    x, y, z = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(first, second, eyes):
    return float(np.linalg.norm(lab(first, eyes) - lab(second, eyes)))


def test_the_measure_of_distance_knows_what_is_far_and_what_deuteranopes_confuse():
    assert lab("#ffffff") == pytest.approx([100, 0, 0], abs=0.01)
    assert lab("#ff0000") == pytest.approx([53.2, 80.1, 67.2], abs=0.1)  # CIE, tabulated
    assert all(eye.sum(axis=1) == pytest.approx(1, abs=1e-5) for eye in EYES.values())
    assert (
        apart("#2ca02c", "#d62728", "usual")
        > 100
        > 10
        > apart("#2ca02c", "#d62728", "deuteranopia")
    )


@pytest.mark.parametrize("eyes", EYES)
def test_the_main_methods_are_told_apart_by_any_eyes(eyes):
    for first, second in combinations(MAIN, 2):
        assert apart(look(first).colour, look(second).colour, eyes) > 25, (first, second)


def test_the_main_methods_are_told_apart_in_grey():
    for first, second in combinations(map(look, MAIN), 2):
        grey = abs(lightness(first.colour) - lightness(second.colour))
        assert grey > 10 or first.hatch != second.hatch
        assert first.marker != second.marker


def test_methods_published_side_by_side_differ_in_more_than_colour():
    for table in published_tables().values():
        for first, second in combinations(sorted({method for _, method in table.modelled}), 2):
            a, b = look(first), look(second)
            near = min(apart(a.colour, b.colour, eyes) for eyes in EYES) < 20
            assert not near or a.marker != b.marker, (first, second)
            grey = abs(lightness(a.colour) - lightness(b.colour))
            assert grey > 8 or a.hatch != b.hatch, (first, second)


def test_no_two_bundled_methods_look_alike():
    every = looks(bundled(Method))
    assert len(set(every.values())) == len(every)
    assert all(load(Method, name).marker for name in every)


def test_a_method_looks_the_same_in_any_company():
    assert looks(["fp", "mine"])["mine"] == looks(["mine", "yours", "bold"])["mine"] == look("mine")
    assert len({look(f"method-{i}") for i in range(40)}) > 30
    assert look("mine").colour not in {look(name).colour for name in MAIN}


@pytest.mark.parametrize("grey", range(0, 256, 15))
def test_lightness_is_that_of_the_colour_space(grey):
    colour = f"#{grey:02x}{grey:02x}{grey:02x}"
    assert lightness(colour) == pytest.approx(lab(colour)[0], abs=0.01)


def test_ink_can_be_read():
    """Contrast of at least 4.5, as WCAG 2.2 (1.4.3) asks of small text."""
    for colour in {look(name).colour for name in bundled(Method)}:
        on, ink = (linear(c) @ [0.2126, 0.7152, 0.0722] for c in (colour, ink_on(colour)))
        light, dark = max(on, ink), min(on, ink)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour


PASSES = ("forward", "backward_input", "backward_weight", "update")
TENSORS = ("I", "F", "O", "dI", "dF", "dO", "mac", "saved I")


@pytest.mark.parametrize("stack", [PASSES, TENSORS], ids=["passes", "tensors"])
def test_parts_of_a_stack_are_told_apart_by_any_eyes_and_in_grey(stack):
    for first, second in combinations(part_looks(stack).values(), 2):
        assert all(apart(first.colour, second.colour, eyes) > 9 for eyes in EYES), (first, second)
        grey = abs(lightness(first.colour) - lightness(second.colour))
        assert grey > 10 or first.hatch != second.hatch, (first, second)


def test_a_part_has_its_look_whatever_stands_beside_it():
    assert part_looks(["update", "forward"])["forward"] == part_looks(["forward"])["forward"]
    spare = part_looks(["latent F", "I", "kept sum"])
    assert spare["latent F"] != spare["kept sum"]


def test_levels_go_from_dark_to_light_and_operations_are_apart():
    drawn = depth_looks(["DRAM", "L2", "compute", "L1", "L0-A", "L0-B"], ["compute"])
    operations = drawn.pop("compute")
    shades = [lightness(drawn_as.colour) for drawn_as in drawn.values()]
    assert shades == sorted(shades)
    assert len(set(drawn.values())) == len(drawn)
    for memory in drawn.values():
        assert all(apart(memory.colour, operations.colour, eyes) > 25 for eyes in EYES)


@pytest.mark.parametrize("colour", ["#000000", "#ffffff", "#17becf", "#d62728"])
def test_a_hatch_shows_on_its_colour(colour):
    assert abs(lightness(shade_on(colour)) - lightness(colour)) > 20


def test_levels_beside_each_other_are_told_apart_by_any_eyes():
    """In a stack a level touches the next; shades differ as greys do, or by their hatch."""
    drawn = list(depth_looks(["DRAM", "L2", "L1", "L0-A", "L0-B", *PLACES], PLACES).values())
    for first, second in pairwise(drawn):
        near = min(apart(first.colour, second.colour, eyes) for eyes in EYES)
        assert near > 9 or first.hatch != second.hatch, (first, second)
