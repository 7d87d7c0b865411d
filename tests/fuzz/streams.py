"""Every command with its streams closed, or ending in a pipe that nobody reads.

A case is a line of words: the number of a command, then for each stream what it is.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.mutations import text_case

STREAMS = ("stdin", "stdout", "stderr")
STATES = ("open", "closed", "broken")  # broken: a pipe without its other end
SECONDS = 120
CLOSED_PIPE = 141
ASKED = ["tiny.yaml", "--hardware", "ascend"]
COMMANDS = [
    ["--version"],
    ["--help"],
    [],
    ["nonsense"],
    ["compare", *ASKED, "--methods", "fp,bold"],
    ["compare", *ASKED, "--methods", "fp,bold", "--csv", "-"],
    ["compare", *ASKED, "--methods", "fp,none"],
    ["report", *ASKED, "--method", "bold", "-o", "made.json"],
    ["report", *ASKED, "--method", "bold", "--format", "json"],
    ["explain", *ASKED, "--method", "bold", "--layer", "conv1"],
    ["sensitivity", *ASKED, "--methods", "fp,bold", "--samples", "0", "--jobs", "1", "--csv", "-"],
    ["reproduce", "cifar10_vgg_small", "--accounting", "paper", "--format", "markdown"],
    ["tile", "--hardware", "ascend", "--conv", "N=1,M=4,C=3,H=6,W=6,K=3", "--bits", "16,16,16"],
    ["sweep", "sweep.yaml", "--jobs", "1", "--out", "made.csv"],
    ["sweep", "sweep.yaml", "--jobs", "2", "--out", "made.csv"],
    ["sweep", "sweep.yaml", "--dry-run"],
    ["best", "right.csv"],
    ["plot", "t.csv", "-o", "made.svg"],
    ["schema", "sweep"],
    ["verify", "t.csv"],
    ["verify", "s.zip"],
    ["bundle", "t.csv", "-o", "made.zip"],
    ["train", "--epochs", "1", "--trace", "made.json", "--overwrite"],
    ["hardware", "list"],
    ["method", "show", "bold"],
    ["accounting", "check", "tiny.yaml"],
    ["training", "list"],
    ["network", "list"],
    ["network", "show", "tiny.yaml", "--csv", "-"],
    ["network", "check", "tiny.yaml"],
]  # fmt: skip


def stream_case(random: Random, samples: list[str]) -> bytes:
    """A command, and what becomes of each of its streams; now and then a spoiled line."""
    if random.random() < 0.02:
        return text_case(random, samples)
    states = (random.choice(STATES) for _ in STREAMS)
    return " ".join([str(random.randrange(len(COMMANDS))), *states]).encode()


def laws_of_streams(folder: Path) -> list[str]:
    """Run the command of a case; what goes wrong of it but would not with open streams."""
    number, states = _read((folder / "case.txt").read_text("utf-8", "replace"))
    words = COMMANDS[number]
    code, said = _run(words, states, folder)
    usual, _ = _usual(number, folder)
    allowed = {usual}
    if states[1] == "closed":
        allowed.add(2)
    if "broken" in states[1:]:
        allowed.add(CLOSED_PIPE)
    wrong = [] if code in allowed else [f"exit code {code}, not {sorted(allowed)}: {said[:300]!r}"]
    if "Traceback" in said or "Exception ignored" in said:
        wrong.append(f"says {said[-500:]!r}")
    wrong += [f"leaves {path.name}" for path in folder.iterdir() if path.name.startswith(".")]
    return [f"{' '.join(words)} with {' '.join(states)}: {problem}" for problem in wrong]


def _read(text: str) -> tuple[int, list[str]]:
    first, *states = [*text.split(), "", "", "", ""][:4]
    number = (
        int(first) % len(COMMANDS)
        if first.isascii() and first.isdecimal() and len(first) < 9
        else 0
    )
    return number, [state if state in STATES else "open" for state in states]


_KNOWN: dict[int, tuple[int, str]] = {}


def _usual(number: int, folder: Path) -> tuple[int, str]:
    """The exit code of a command whose streams are open."""
    if number not in _KNOWN:
        _KNOWN[number] = _run(COMMANDS[number], ["open"] * 3, folder)
    return _KNOWN[number]


def _run(words: list[str], states: list[str], folder: Path) -> tuple[int, str]:
    """Run a command; its exit code, and what it says on standard error where that is open."""
    ends: list[int] = []
    given: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.PIPE,
    }
    for stream, state in zip(STREAMS, states, strict=True):
        if state == "broken":
            reads, writes = os.pipe()
            kept, dropped = (reads, writes) if stream == "stdin" else (writes, reads)
            os.close(dropped)
            ends.append(kept)
            given[stream] = kept
        elif state == "closed":
            given[stream] = subprocess.DEVNULL

    closed = [number for number, state in enumerate(states) if state == "closed"]

    def close() -> None:
        for number in closed:
            os.close(number)

    process = subprocess.Popen(
        [sys.executable, "-m", "hwmodel", *words],
        cwd=folder,
        env=_environment(),
        preexec_fn=close,
        **given,
    )
    try:
        _, said = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return -1, f"took more than {SECONDS} s"
    finally:
        for end in ends:
            os.close(end)
    return process.returncode, (said or b"").decode("utf-8", "replace")


@cache
def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "PYTHONPATH": path, "HWMODEL_CACHE": "off"}
