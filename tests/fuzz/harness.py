"""One case through the command line, and what must hold of every answer."""

import contextlib
import csv
import io
import os
import re
import resource
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from hwmodel.cli import main
from tests.fuzz.states import switched
from tests.fuzz.targets import TINY, Target

SECONDS = 20  # no command may take longer
BYTES = 2**30  # nor more memory
NAMES = ("network", "hardware", "method", "baseline", "accounting", "layer")
NAMED = ("network,", "layer,", "point,")  # how tables begin


class Hang(BaseException):
    """A command took longer than it may."""


def answers(target: Target, content: bytes, folder: Path) -> list[str]:
    """Run the target's commands on a case in `folder`, which is empty; what was wrong with them."""
    case = folder / (target.place or f"case{target.ending}")
    text = content.decode("utf-8", "replace").replace("\0", " ")
    wrong = []
    for command in target.commands or [[]]:
        _laid(target, folder)
        case.write_bytes(content)
        stands = {"FILE": case.name, "TINY": "tiny.yaml", "TEXT": text}
        words = [stands.get(word, word.replace("TEXT", text)) for word in command]
        with switched(folder / "cache") if target.caches else contextlib.nullcontext():
            found = _answer(words, folder) if words else []
            found += target.law(folder) if target.law else []
        wrong += [f"{' '.join(command)}: {problem}" for problem in found]
        for made in folder.glob("made.*"):
            shutil.rmtree(made) if made.is_dir() else made.unlink()
    return wrong


def _laid(target: Target, folder: Path) -> None:
    """Lay the files around a case into its folder."""
    (folder / "tiny.yaml").write_text(TINY)
    for name, content in target.around().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _answer(words: list[str], folder: Path) -> list[str]:
    before = _listed(folder)
    out, err = io.StringIO(), io.StringIO()
    code: Any = "no exit"
    signal.signal(signal.SIGPROF, _hang)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor: others work here, too
    here, argv = os.getcwd(), sys.argv
    os.chdir(folder)
    try:
        sys.argv = ["hwmodel", *words]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stopped:
        code = stopped.code or 0
    except Hang:
        return [f"took more than {SECONDS} s"]
    except MemoryError:
        return ["ran out of memory"]
    except BaseException as error:  # what users would see a traceback of
        return [_traceback(error)]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.chdir(here)
        sys.argv = argv
    # points without an energy while the others are written; rows that moved
    partial = code == 1 and words[0] in ("sweep", "verify")
    code = 0 if partial else code
    table = out.getvalue() if code or {"--csv", "--json"} & {*words} else ""
    return [*_judged(code, table, err.getvalue()), *_left(folder, before, code)]


def _hang(number: int, frame: object) -> None:
    raise Hang


def _traceback(error: BaseException) -> str:
    frames = []
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "hwmodel" in name:
            frames.append(f"{Path(name).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {str(error)[:200]} at {' '.join(frames[-4:])}"


def _judged(code: Any, out: str, err: str) -> list[str]:
    """A refusal is one short line and nothing else; an answer holds no infinity and no NaN."""
    before = ("hwmodel: warning: ", "computing anew: ")  # of verify: what it is about to do
    said = [line for line in err.split("\n") if not line.startswith(before)]
    if code == 0:
        bad = re.search(r"(?:^|[\s,:])(nan|-?inf|NaN|-?Infinity)(?:[\s,]|$)", _without_names(out))
        return [f"says {bad[1]!r}"] if bad else []
    wrong = [] if code == 2 else [f"exit code {code!r}"]
    if out:
        wrong.append("refuses, but prints on standard output, too")
    if len(said) != 2 or said[1] or not said[0].startswith("hwmodel: ") or "\r" in said[0]:
        wrong.append(f"refuses in {len(said) - 1} lines: {err[:200]!r}")
    elif len(said[0]) > 2000 or re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", said[0]):
        wrong.append(f"refuses in a line of {len(said[0])} characters: {said[0][:100]!r}")
    return wrong


def _without_names(out: str) -> str:
    """A CSV without the columns of names: a chip may be called inf."""
    rows = list(csv.reader(io.StringIO(out))) if out.startswith(NAMED) else []
    header = rows[0] if rows else []
    kept = [i for i, name in enumerate(header) if name not in NAMES]
    return "\n".join(",".join(row[i] for i in kept) for row in rows) if rows else out


def _left(folder: Path, before: set[str], code: Any) -> list[str]:
    new = _listed(folder) - before
    partial = new if code != 0 else {name for name in new if name.startswith(".")}
    return [f"leaves {', '.join(sorted(partial))}"] if partial else []


def _listed(folder: Path) -> set[str]:
    kept = ("cache", "made.csv.parts", "made.csv.parts.lock")  # between runs, as they should be
    return {path.name for path in folder.iterdir() if path.name not in kept}


def peak_bytes() -> int:
    """Memory that this process has held at most [B]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
