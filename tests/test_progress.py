"""Signs of life: a line now and then with an estimate, where standard error is no terminal, too."""

import re
import time

import pytest

from hwmodel.cli import signs
from hwmodel.cli.screen import progress
from hwmodel.model import entered, evaluate
from hwmodel.model.progress import counted, place
from hwmodel.tiling.effort import effort


@pytest.fixture
def quick(monkeypatch, capsys):
    """Lines every 0.05 s; a function that gives what was written since it was last asked."""
    monkeypatch.setenv("HWMODEL_PROGRESS", "on")
    monkeypatch.setattr(signs, "EVERY", 0.05)
    return lambda: capsys.readouterr().err


def slow(steps):
    for step in range(steps):
        time.sleep(0.08)
        yield step


def test_many_steps_say_how_many_are_done_and_how_long_the_rest_takes(quick):
    with signs.pulse():
        assert progress(slow(4), 4, "comparing") == [0, 1, 2, 3]
    said = quick().splitlines()
    assert said and all(line.startswith("hwmodel: comparing: ") for line in said)
    assert any(" of 4 after " in line and line.endswith("s left") for line in said)


def test_one_long_step_says_how_long_it_has_taken_and_silence_is_kept_where_asked(
    quick, monkeypatch
):
    with signs.pulse():
        time.sleep(0.12)
    assert quick().splitlines()[0] == "hwmodel: computing: 0 s"
    monkeypatch.setenv("HWMODEL_PROGRESS", "off")
    with signs.pulse():
        time.sleep(0.12)
    assert quick() == ""


def test_products_are_counted_where_nothing_else_is(quick):
    with signs.pulse():
        for _ in counted("products", slow(4), 4):
            pass
        time.sleep(0.08)
        for _ in progress(counted("products", slow(2), 2), 2, "comparing"):
            pass
    said = quick().splitlines()
    assert any(line.startswith("hwmodel: products: 2 of 4 after ") for line in said)
    assert any(line.startswith("hwmodel: computing: ") for line in said)
    later = [line for line in said if line.startswith("hwmodel: comparing: ")]
    assert later and all("; products " in line for line in later)
    assert not any(line.startswith("hwmodel: products") for line in later)


def test_a_long_first_step_moves_with_what_is_within_it(quick):
    """Of 15 lines none is done yet: products, and tilings looked at, move meanwhile."""
    with signs.pulse():
        for _ in progress(counted("products", slow(4), 4), 15, "comparing"):
            effort.looked += 1000
    said = [line for line in quick().splitlines() if " 0 of 15 " in line]
    assert said == list(dict.fromkeys(said))  # no two alike
    with signs.pulse():
        for number in counted("products", slow(4), 4):
            effort.looked += 1000
            signs.at("comparing", 0, 15)
            effort.compiling = number == 1
    effort.compiling = False
    said = quick().splitlines()
    inner = [re.search(r"products (\d) of 4, tilings looked at ([\d,]+)", line) for line in said]
    looked = [int(match[2].replace(",", "")) for match in inner if match]
    assert len(looked) > 2 and looked == sorted(looked) and looked[-1] > looked[0]
    assert not any(" s left" in line for line in said)  # nothing is known of a pace yet
    assert any(
        line.endswith("compiling the search, which is kept for the next time") for line in said
    )


def test_searches_say_how_far_they_are(afresh):
    looked, found = effort.looked, effort.found
    evaluate.evaluate("mlp-784-512-512-10", "ascend", "fp", accounting="full", batch=11)
    assert effort.found > found and effort.looked > looked and not effort.compiling


@pytest.mark.parametrize("accounting", ["paper", "chip"])
def test_a_report_counts_its_products_as_they_are_tiled(monkeypatch, accounting):
    seen = []

    def watched(what, items, total):
        for item in counted(what, items, total):
            seen.append((what, place.done, place.total))
            yield item

    monkeypatch.setattr(entered, "counted", watched)
    net = "mlp-784-512-512-10"
    report = evaluate.evaluate(net, "ascend", "fp", accounting=accounting, batch=3)
    products = len(report.tilings)
    assert seen == [("products", done, products) for done in range(products)] and products == 8
    assert place.total == 0


def test_a_bar_that_is_drawn_is_not_written_over(quick):
    with signs.pulse(), signs.drawn():
        time.sleep(0.12)
    assert quick() == ""


def test_the_rest_is_what_it_would_take_at_this_pace():
    assert signs.left(10, 40, 2.0) == "about 60 s left"
    assert signs.left(10, 40, 2.0, since=1.0) == "about 59 s left"
    assert signs.left(10, 40, 2.0, since=9.0) == "about 58 s left"  # this step takes longer
    assert signs.sentence("points", 0, 1000, 12, signs.left(0, 1000, 0)) == (
        "points: 0 of 1,000 after 12 s"
    )


def test_steps_that_are_known_from_before_say_nothing_of_those_to_come(monkeypatch):
    """Eighty steps at once, then ten that take two seconds each: ten more take twenty."""
    clock = iter([0.0, *[0.0] * 80, *(2.0 * n for n in range(1, 11))])
    monkeypatch.setattr(signs.time, "monotonic", lambda: next(clock))
    for done in range(91):
        signs.at("points", done, 100)
    monkeypatch.setattr(signs.time, "monotonic", lambda: 20.0)
    assert signs.remaining() == "about 20 s left"


def test_the_pace_of_one_chip_says_nothing_of_the_next(quick):
    """Two quick steps and two that take ten times as long: no estimate crosses to these."""

    def steps():
        for seconds in (0.06, 0.06, 0.6, 0.6):
            time.sleep(seconds)
            yield seconds

    with signs.pulse():
        assert len(progress(steps(), 4, "comparing", 2)) == 4
    said = quick().splitlines()
    assert all(" left" not in line for line in said if ": 0 of 4" in line or ": 2 of 4" in line)
    first = [line for line in said if ": 1 of 4" in line]
    behind = "and 2 behind them of which nothing is known"
    assert all(line.endswith(f"about 0 s for the next 1, {behind}") for line in first)
    assert any(re.search(r": 3 of 4 after \d s, about [01] s left$", line) for line in said)
    assert signs.left(11, 15, 20, alike=5) == "about 80 s left"
