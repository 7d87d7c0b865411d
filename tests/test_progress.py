"""Signs of life: a line now and then with an estimate, where standard error is no terminal, too."""

import time

import pytest

from hwmodel.cli import signs
from hwmodel.cli.screen import progress


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


def test_a_bar_that_is_drawn_is_not_written_over(quick):
    with signs.pulse(), signs.drawn():
        time.sleep(0.12)
    assert quick() == ""


def test_the_rest_is_what_it_would_take_at_this_pace():
    assert signs.sentence("reading", 10, 40, 20) == "reading: 10 of 40 after 20 s, about 60 s left"
    assert signs.sentence("points", 0, 1000, 12) == "points: 0 of 1,000 after 12 s"
