"""A few spoiled inputs of every kind in each run; `python -m tests.fuzz.run` tries as many as one likes."""

import dataclasses
from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodel.errors import HwmodelError
from tests.fuzz import laws
from tests.fuzz.harness import _judged, answers
from tests.fuzz.states import same_table
from tests.fuzz.streams import laws_of_streams
from tests.fuzz.targets import TARGETS
from tests.strategies import examples


@cache
def samples(name):
    return TARGETS[name].samples()


@pytest.mark.parametrize("name", TARGETS)
def test_a_spoiled_input_ends_in_an_answer_or_in_one_line(name, tmp_path_factory):
    target = TARGETS[name]

    number = examples(6 if target.few else 100 if target.slow else 300)

    @settings(max_examples=number // 5 + 1, deadline=None,
              suppress_health_check=list(HealthCheck), database=None)  # fmt: skip
    @given(st.integers(0, 2**32 - 1))
    def check(seed):
        content = target.case(Random(seed), samples(name))
        assert not answers(target, content, tmp_path_factory.mktemp("case"))

    check()


# The judge is judged


@pytest.mark.parametrize(
    ("code", "out", "err", "wrong"),
    [
        (2, "", "hwmodel: a.yaml:1: x is missing\n", []),
        (2, "", "hwmodel: warning: w\nhwmodel: x\n", []),
        (0, "1.0,2\n", "Not counted\n", []),
        (0, "", "hwmodel: x\n", []),
        (1, "", "hwmodel: x\n", ["exit code 1"]),
        (2, "half", "hwmodel: x\n", ["refuses, but prints on standard output, too"]),
        (2, "", "Traceback\nhwmodel: x\n", ["refuses in 2 lines: 'Traceback\\nhwmodel: x\\n'"]),
        (2, "", "x\n", ["refuses in 1 lines: 'x\\n'"]),
        (2, "", f"hwmodel: {'a' * 3000}\n", [f"refuses in a line of 3009 characters: 'hwmodel: {'a' * 91}'"]),
        (2, "", "hwmodel: \x1b[2J\n", ["refuses in a line of 13 characters: 'hwmodel: \\x1b[2J'"]),
        (0, "a,nan,b\n", "", ["says 'nan'"]),
        (0, "a,-inf\n", "", ["says '-inf'"]),
        (0, '{"energy": Infinity, }', "", ["says 'Infinity'"]),
        (0, "finance,nan-o,infinite\n", "", []),
        (0, "network,hardware,energy\nnan,inf,1.0\n", "", []),
        (0, "network,hardware,energy\nnan,inf,inf\n", "", ["says 'inf'"]),
    ],
)  # fmt: skip
def test_the_judge_sees_what_is_wrong(code, out, err, wrong):
    assert _judged(code, out, err) == wrong


def test_the_harness_sees_tracebacks_hangs_and_half_files(tmp_path_factory, monkeypatch):
    """By a command that fails in each of these ways."""
    from tests.fuzz import harness

    target = TARGETS["training"]._replace(commands=[["training", "check", "FILE"]])

    def result(main, seconds=20):
        monkeypatch.setattr(harness, "main", main)
        monkeypatch.setattr(harness, "SECONDS", seconds)
        return harness.answers(target, b"x", tmp_path_factory.mktemp("case"))

    def leaves():
        with open(".half", "w") as stream:
            stream.write("x")
        raise SystemExit(0)

    def hangs():
        while True:
            pass

    def fails():
        raise HwmodelError("not caught")

    assert result(fails)[0].startswith("training check FILE: HwmodelError: not caught at ")
    assert result(leaves) == ["training check FILE: leaves .half"]
    assert result(hangs, 0.2) == ["training check FILE: took more than 0.2 s"]


@pytest.fixture
def priced(tmp_path):
    """Reports of the small network by four searches, on a chip where they differ."""
    (tmp_path / "case.yaml").write_bytes(laws.price_case(Random(2), samples("prices")))
    return laws.reports_of(tmp_path / "case.yaml", tmp_path, laws.accountings_of())


def test_the_laws_see_a_search_that_finds_less_than_one_with_fewer_choices(priced):
    assert laws._in_order(priced) == []
    best, *_, worst = priced
    costs = [sum(laws._products(priced[name]).values()) for name in (best, worst)]
    assert costs[0] < costs[1]
    swapped = priced | {best: priced[worst], worst: priced[best]}
    assert any(problem.startswith("best costs ") for problem in laws._in_order(swapped))


def test_the_laws_see_traffic_below_what_must_move(priced):
    found = priced["best"]
    assert laws._floors(found) == [] and laws._sums("best", found) == []
    entries = [
        dataclasses.replace(entry, elements=0)
        if (entry.layer, entry.pass_, entry.tensor) == ("conv1", "forward", "F")
        else entry
        for entry in found.ledger.entries
    ]
    less = dataclasses.replace(found, ledger=dataclasses.replace(found.ledger, entries=(*entries,)))
    assert laws._floors(less) == ["conv1 forward F read: 0 elements, 72 at least"]


def test_the_laws_see_another_table_and_another_exit_code(tmp_path, monkeypatch):
    (tmp_path / "made.csv").write_bytes(b"1")
    assert same_table("made.csv", b"1")(tmp_path) == []
    assert same_table("made.csv", b"2")(tmp_path) == [
        "made.csv is not what the undamaged run writes"
    ]
    (tmp_path / "case.txt").write_text("0 open closed open")
    from tests.fuzz import streams

    monkeypatch.setattr(streams, "_KNOWN", {0: (0, "")})
    monkeypatch.setattr(streams, "_run", lambda *_: (1, "Traceback (most recent call last):"))
    wrong = laws_of_streams(tmp_path)
    assert [problem.split(": ", 1)[1].removesuffix(": 'Traceback (most recent call last):'") for problem in wrong] == [
        "exit code 1, not [0, 2]", "says 'Traceback (most recent call last):'",
    ]  # fmt: skip
