"""Fuzz by hand: `python -m tests.fuzz.run --minutes 20 [--target network] [--workers 2]`.

Cases are drawn from seeds in worker processes of limited memory and time; what is wrong is told
once for each kind, with the case saved beside `--out`. Where atheris is installed, `--engine
atheris` lets it guide the bytes of one target by coverage instead.
"""

import argparse
import math
import multiprocessing
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parent.parent.parent


def main() -> int:
    """Exit code 1 if anything was found."""
    asked = _asked()
    sys.path.insert(0, str(ROOT))
    asked.out.mkdir(parents=True, exist_ok=True)
    from tests.fuzz.targets import TARGETS

    _compile()
    names = [asked.target] if asked.target else list(TARGETS)
    if not set(names) <= set(TARGETS):
        sys.exit(f"no target {asked.target!r}; known: {', '.join(TARGETS)}")
    if asked.engine == "atheris":
        return _guided(names[0], asked)
    found: dict[str, str] = {}
    ran = 0
    end = time.monotonic() + 60 * asked.minutes
    seed = asked.seed
    while time.monotonic() < end:
        for name in names:
            seed += 1
            share = min(end - time.monotonic(), asked.slice)
            if share > 0:
                ran += _worked(name, seed, share, asked.out, found)
        print(f"{ran} cases, {len(found)} kinds found", flush=True)
    for kind, case in found.items():
        print(f"{kind}\n    {case}")
    return bool(found)


def _compile() -> None:
    """Fill numba's cache, where it is installed: no case's time is that of the compiler."""
    from hwmodel.model.evaluate import evaluate
    from tests.fuzz.targets import TINY

    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder, "tiny.yaml")
        tiny.write_text(TINY, encoding="utf-8")
        for network, method in (("deep-mlp", "fp"), (tiny, "bold")):
            for chip in ("ascend", "eyeriss-isca"):
                evaluate(network, chip, method, accounting="full")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--target", default="")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--slice", type=float, default=30, help="seconds a worker lives")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--engine", choices=["random", "atheris"], default="random")
    return parser.parse_args()


def _worked(name: str, seed: int, seconds: float, out: Path, found: dict[str, str]) -> int:
    """Let one process work on a target; note new kinds of findings. How many cases it ran."""
    context = multiprocessing.get_context("spawn")
    told: Any = context.Queue()
    process = context.Process(target=_work, args=(name, seed, seconds, str(out), told), daemon=True)
    process.start()
    ran = 0
    last: tuple[str, str] = ("", "")
    began = time.monotonic()
    while process.is_alive() or not told.empty():
        try:
            word, *rest = told.get(timeout=1)
        except Exception:
            waited, busy = time.monotonic() - began - seconds, _processor(process.pid)
            if waited > 90 and (busy > seconds + 90 or waited > 900):  # others work here, too
                process.kill()
                _note(f"{name}: hangs so that no signal reaches it", last[1], found)
                break
            continue
        if word == "case":
            last = (rest[0], rest[1])
        elif word == "ran":
            ran = rest[0]
        else:
            _note(rest[0], rest[1], found)
    process.join()
    if process.exitcode not in (0, -9):
        _note(f"{name}: its process ended with {process.exitcode}", last[1], found)
    return ran


def _processor(pid: int | None) -> float:
    """Seconds of the processor that a process has had; endless where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return math.inf


def _note(problem: str, case: str, found: dict[str, str]) -> None:
    kind = re.sub(r"[0-9]+(?![0-9]*[ :]at )|'[^']*'|\"[^\"]*\"", "_", problem.split(" at ")[0])
    kind += problem[len(problem.split(" at ")[0]) :]
    if kind not in found:
        found[kind] = case
        print(f"FOUND {problem}\n    {case}", flush=True)


def _work(name: str, seed: int, seconds: float, out: str, told: Any) -> None:
    """Run cases of one target until the time is up."""
    sys.path.insert(0, str(ROOT))
    from tests.fuzz.harness import BYTES, answers, peak_bytes
    from tests.fuzz.targets import TARGETS

    resource.setrlimit(resource.RLIMIT_AS, (4 * BYTES, 4 * BYTES))  # as a net under the measuring
    target, random = TARGETS[name], Random(seed)
    samples = target.samples()
    end = time.monotonic() + seconds
    ran = 0
    while time.monotonic() < end:
        content = target.case(random, samples)
        case = Path(out) / f"{name}-{seed}-{ran}{target.ending}"
        case.write_bytes(content)
        told.put(("case", name, str(case)))
        folder = Path(tempfile.mkdtemp())
        began = time.process_time()  # of the processor: others work here, too
        wrong = answers(target, content, folder)
        if not target.slow and time.process_time() - began > 5:
            wrong.append(f"takes {time.process_time() - began:.0f} s")
        shutil.rmtree(folder)
        if peak_bytes() > BYTES:
            wrong.append(f"held {peak_bytes() / 2**20:.0f} MiB")
        for problem in wrong:
            told.put(("found", f"{name}: {problem}", str(case)))
        if not wrong:
            case.unlink()
        ran += 1
        told.put(("ran", ran))
        if peak_bytes() > BYTES:  # the peak never falls: go on in a new process
            break


def _guided(name: str, asked: argparse.Namespace) -> int:
    """Let atheris change the bytes of the samples, guided by what code they reach."""
    import atheris

    with atheris.instrument_imports(include=["hwmodel", "ruamel", "onnx"]):
        from tests.fuzz.harness import answers
        from tests.fuzz.targets import TARGETS
    target = TARGETS[name]
    corpus = Path(tempfile.mkdtemp())
    for number, sample in enumerate(target.samples()):
        content = sample if isinstance(sample, bytes) else sample.encode()
        (corpus / str(number)).write_bytes(content)

    def one(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            wrong = answers(target, content, Path(folder))
        if wrong:
            raise RuntimeError("; ".join(wrong))

    limits = [f"-max_total_time={60 * asked.minutes:.0f}", "-rss_limit_mb=2048", "-timeout=60"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={asked.out}/", str(corpus)], one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
