"""Sweeps that are stopped, killed and shared out: the same table in the end, byte for byte."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from hwmodel import __version__
from hwmodel.errors import HwmodelError
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, read_yaml
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.provenance import input_of
from hwmodel.vary.sweep.file import SweepFile
from hwmodel.vary.sweep.flat import flat_memories
from hwmodel.vary.sweep.parts import GROUP, opened
from hwmodel.vary.sweep.plan import plan
from hwmodel.vary.sweep.results import read_results
from hwmodel.vary.sweep.run import cut, run
from hwmodel.vary.workers import AHEAD, Task, completed, workers
from hwmodel.views.schema import schema

SWEEP = """\
version: 1
name: sizes
title: How large should the buffers be?
network: mlp-784-512-512-10
hardware: [ascend, v100]
method: [fp, bold]
accounting: [paper, full]
axes:
  - {accounting.widths.boolean_signal_bits: [1, 8]}
  - {hardware.levels.L1.capacity: [2 KiB, 8 bit, 1 MiB]}
  - {hardware.arithmetic.mac.32: {times: [0.1, 0.5, 0.7, 0.9, 1, 2, 3, 4]}}
"""
COMMAND = "hwmodel sweep sizes.yaml"
PAPER = SWEEP.replace("[paper, full]", "paper")
POINTS = 384


def quiet(what, done, total):
    pass


def planned(tmp_path, text=SWEEP):
    path = tmp_path / "sizes.yaml"
    path.write_text(text)
    return plan(load(SweepFile, path))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The table as one process writes it, never stopped."""
    folder = tmp_path_factory.mktemp("unbroken")
    summary = run(planned(folder), folder / "t.csv", COMMAND, jobs=1, progress=quiet)
    assert (summary.points, summary.failed, summary.unproved) == (POINTS, POINTS // 3, 0)
    assert summary.first_reason.startswith("fc1, forward on ascend: no tile fits")
    assert not (folder / "t.csv.parts").exists()
    return (folder / "t.csv").read_bytes()


def test_parts_in_any_order_make_the_same_table(tmp_path, unbroken, monkeypatch):
    """The last part is computed first."""
    from hwmodel.vary.sweep import run as module

    def backwards(there, function, tasks):
        return completed(there, function, reversed(list(tasks)))

    monkeypatch.setattr(module, "completed", backwards)
    numbers = []
    run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=1,
        progress=lambda what, done, total: numbers.append((what, done, total)))  # fmt: skip
    assert (tmp_path / "t.csv").read_bytes() == unbroken
    assert numbers[-1] == ("points", POINTS, POINTS)
    assert numbers == sorted(numbers, key=lambda n: (n[0] == "points", n[1]))


def test_killed_at_three_moments_and_resumed_it_is_as_if_unbroken(hwmodel, tmp_path, unbroken):
    """Killed, with its workers, by a signal that no program can catch."""
    (tmp_path / "sizes.yaml").write_text(SWEEP)
    words = [
        sys.executable,
        "-m",
        "hwmodel",
        "sweep",
        "sizes.yaml",
        "--out",
        "t.csv",
        "--jobs",
        "2",
    ]
    parts = tmp_path / "t.csv.parts"
    for number in (1, 3, 20):
        process = subprocess.Popen([*words, "--resume"], cwd=tmp_path, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while len(list(parts.glob("part-*"))) < number and time.monotonic() < until:
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()
        process.wait()
        assert parts.exists() and not (tmp_path / "t.csv").exists()
    words = ("sweep", "sizes.yaml", "--out", "t.csv", "--jobs", "1")
    code, _, err = hwmodel(*words)
    assert code == 2 and "holds parts of a run that did not end; go on with --resume" in err
    code, _, err = hwmodel(*words, "--resume")
    assert code == 1 and "128 of 384 points have no energy; the first: fc1, forward" in err
    assert (tmp_path / "t.csv").read_bytes() == unbroken
    assert not parts.exists()


def test_stopped_by_a_person_it_says_how_to_go_on(tmp_path, unbroken):
    (tmp_path / "sizes.yaml").write_text(SWEEP)
    words = [
        sys.executable,
        "-m",
        "hwmodel",
        "sweep",
        "sizes.yaml",
        "--out",
        "t.csv",
        "--jobs",
        "2",
    ]
    parts = tmp_path / "t.csv.parts"
    for _ in range(20):  # on a busy machine the table may be whole before the signal is sent
        process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and len(list(parts.glob("part-*"))) < 2:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        if not said.startswith("wrote"):
            break
        (tmp_path / "t.csv").unlink()
    assert process.returncode == 130
    assert said == (
        "hwmodel: stopped; t.csv.parts holds what is done: go on with the same command and --resume\n"
    )
    run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=1, resume=True, progress=quiet)
    assert (tmp_path / "t.csv").read_bytes() == unbroken


def test_stopped_while_the_table_is_put_together_nothing_is_lost(tmp_path, unbroken, monkeypatch):
    from hwmodel.vary.sweep import parts

    def stopped(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(parts._WRITERS, ".csv", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=1, progress=quiet)
    with monkeypatch.context() as patched:  # nothing is computed again
        patched.setattr("hwmodel.vary.sweep.run.run_part", stopped)
        run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=1, resume=True, progress=quiet)
    assert (tmp_path / "t.csv").read_bytes() == unbroken


def test_two_processes_write_the_same_table_though_one_is_killed(tmp_path, unbroken):
    from multiprocessing import active_children

    killed = []

    def kill(what, done, total):
        if done and not killed:
            killed.append(next(c for c in active_children() if c.name.startswith("SpawnProcess")))
            killed[0].kill()

    run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=2, progress=kill)
    assert killed
    assert (tmp_path / "t.csv").read_bytes() == unbroken


def test_workers_that_die_again_and_again_end_the_run():
    with workers(2, None) as there, pytest.raises(HwmodelError, match="3 workers died"):
        list(completed(there, os._exit, (Task(n, (1,)) for n in range(6))))


def test_no_more_is_asked_for_than_a_few_tasks_ahead():
    taken = []

    def tasks():
        for n in range(100):
            taken.append(n)
            yield Task(n, (n,))

    with workers(1, None) as there:
        for number, result in completed(there, abs, tasks()):
            assert number == result
            assert len(taken) <= number + 2 * AHEAD
    assert len(taken) == 100


@pytest.mark.filterwarnings("ignore")  # the cluster's own
def test_a_cluster_writes_the_same_table_though_a_worker_is_killed(tmp_path, unbroken):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        killed = []

        def kill(what, done, total):
            if what == "points" and done and not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=1, scheduler=cluster.scheduler_address,
            progress=kill)  # fmt: skip
    assert killed
    assert (tmp_path / "t.csv").read_bytes() == unbroken


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_is_lost_is_named_and_what_is_done_is_kept(tmp_path, unbroken):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    )
    address = cluster.scheduler_address
    with cluster:

        def close(what, done, total):
            if what == "points" and done:
                cluster.close()

        with pytest.raises(HwmodelError, match=r"was lost: .*; what is done is kept: .*--resume$"):
            run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=1, scheduler=address,
                progress=close)  # fmt: skip
    run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=1, resume=True, progress=quiet)
    assert (tmp_path / "t.csv").read_bytes() == unbroken


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_not_there_is_named(hwmodel, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(
        distributed, "Client", lambda *a, **k: (_ for _ in ()).throw(OSError("timed out"))
    )
    (tmp_path / "sizes.yaml").write_text(SWEEP)
    code, _, err = hwmodel("sweep", "sizes.yaml", "--scheduler", "tcp://127.0.0.1:1")
    assert (code, err) == (
        2,
        "hwmodel: --scheduler tcp://127.0.0.1:1: cannot be reached: timed out\n",
    )
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:1", "tcp://host", "tcp://a b:1"])
def test_half_an_address_of_a_scheduler_is_refused_at_once(address, hwmodel, tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "sizes.yaml").write_text(SWEEP)
    code, _, err = hwmodel("sweep", "sizes.yaml", "--scheduler", address)
    rule = "is no address as tcp://host:8786"
    assert (code, err) == (2, f"hwmodel: --scheduler {address!r}: {rule}\n")
    assert not list(tmp_path.glob("*.parts"))


def test_parquet_has_the_values_of_the_csv(hwmodel, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "sizes.yaml").write_text(PAPER)
    for name in ("t.csv", "a.parquet", "b.parquet"):
        assert hwmodel("sweep", "sizes.yaml", "--out", name, "--jobs", "1")[0] == 1
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert read_results(tmp_path / "a.parquet") == read_results(tmp_path / "t.csv")


def test_parts_share_groups_of_rows_in_parquet(hwmodel, tmp_path):
    """What a file says of its groups is held while it is written: few, whatever the parts."""
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "sizes.yaml").write_text(PAPER)
    hwmodel("sweep", "sizes.yaml", "--out", "t.parquet", "--jobs", "1")
    about = parquet.read_metadata(tmp_path / "t.parquet")
    assert (about.num_rows, about.num_row_groups) == (192, 64 // GROUP)  # 64 parts of three


def test_every_row_says_where_it_comes_from(unbroken):
    header, row = (line.split(",") for line in unbroken.decode().splitlines()[:2])
    made = dict(zip(header[-3:], row[-3:], strict=True))
    assert made["version"] == __version__
    assert made["command"] == "hwmodel sweep sizes.yaml"
    names = [input_of(load(kind, name)).sha256[:8] for kind, name in (
        (Hardware, "ascend"), (Hardware, "v100"), (Accounting, "paper"), (Method, "bold"))]  # fmt: skip
    assert all(name in made["inputs_sha256"].split("-") for name in names)


def test_parts_of_another_sweep_are_refused(tmp_path):
    first = planned(tmp_path)
    with opened(tmp_path / "t.csv", first.digest, resume=False) as folder:
        folder.store(0, "0,\n")
    other = planned(tmp_path, SWEEP.replace("2 KiB, 8 bit", "3 KiB, 8 bit"))
    assert other.digest != first.digest
    with pytest.raises(HwmodelError, match="holds parts of another sweep"):
        run(other, tmp_path / "t.csv", COMMAND, jobs=1, resume=True, progress=quiet)
    with pytest.raises(HwmodelError, match="go on with --resume"):
        run(first, tmp_path / "t.csv", COMMAND, jobs=1, progress=quiet)


def test_the_hash_is_of_the_files_that_the_sweep_names(tmp_path, hwmodel):
    chip = tmp_path / "mine.yaml"
    chip.write_text(hwmodel("hardware", "show", "ascend")[1])
    text = SWEEP.replace("hardware: [ascend, v100]", f"hardware: {chip}")
    before = planned(tmp_path, text).digest
    chip.write_text(chip.read_text() + "# a comment changes nothing\n")
    assert planned(tmp_path, text).digest == before
    chip.write_text(chip.read_text().replace("1.7 TOPS/W", "1.8 TOPS/W"))
    assert planned(tmp_path, text).digest != before


def test_a_folder_in_the_way_is_left_alone(tmp_path):
    (tmp_path / "t.csv.parts").mkdir()
    (tmp_path / "t.csv.parts" / "mine.txt").write_text("mine")
    with pytest.raises(HwmodelError, match="is in the way"):
        run(planned(tmp_path), tmp_path / "t.csv", COMMAND, jobs=1, progress=quiet)
    assert (tmp_path / "t.csv.parts" / "mine.txt").read_text() == "mine"


def test_parts_are_cut_by_the_number_of_points_alone():
    assert [len(part) for part in cut(range(3))] == [1, 1, 1]
    assert {len(part) for part in cut(range(640))} == {10}
    assert {len(part) for part in cut(range(100_000))} == {1000}
    assert [point for part in cut(range(1, 999)) for point in part] == [*range(1, 999)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "t.txt"), "t.txt: a table of results ends in .csv or .parquet"),
        (("--jobs", "0"), "--jobs 0: 1 to 256 processes"),
        (("--jobs", "2", "--scheduler", "tcp://a:1"), "--jobs 2: none with --scheduler"),
    ],
)
def test_words_that_do_not_fit_are_refused(hwmodel, tmp_path, words, message):
    (tmp_path / "sizes.yaml").write_text(SWEEP)
    code, _, err = hwmodel("sweep", "sizes.yaml", *words)
    assert code == 2 and message in err
    assert [path.name for path in tmp_path.iterdir()] == ["sizes.yaml"]


def test_the_example_is_the_one_of_the_page_and_right_under_its_schema():
    docs = Path(__file__).parent.parent / "docs"
    text = (docs / "examples" / "buffers.yaml").read_text()
    first, _, rest = text.partition("\n")
    assert f"```yaml\n{rest}```" in (docs / "sweeps.md").read_text()
    assert (docs / "examples" / first.split("=")[1]).resolve() == docs / "schemas" / "sweep.json"
    values = json.loads(json.dumps(read_yaml(docs / "examples" / "buffers.yaml")))
    jsonschema.validate(values, schema("sweep"))
    swept = plan(load(SweepFile, docs / "examples" / "buffers.yaml"))
    # 2 methods, 2 batches, 3 energies, and sizes of L1 and L2 less those that do not fit:
    # Ascend 256 KiB and 1 MiB with 2 and 8 MiB, 4 MiB with 8; V100 with 1.5 and 6 MiB likewise;
    # horowitz45 256 KiB with 256 KiB and 1 MiB, 1 MiB with 1
    assert len(swept.points()) == 2 * 2 * 3 * (5 + 5 + 3)
    assert flat_memories(swept) == (
        "L2 of ascend and v100, L1 of ascend and v100 cost the same at every capacity: the largest "
        "will win (docs/sweeps.md)"
    )


def test_a_dry_run_says_how_much_there_is_and_writes_nothing(hwmodel, tmp_path):
    (tmp_path / "sizes.yaml").write_text(SWEEP)
    code, out, _ = hwmodel("sweep", "sizes.yaml", "--dry-run")
    assert code == 0
    assert "384 points in 64 parts; " in out
    assert "hardware.levels.L1.capacity: 3\n" in out
    assert [path.name for path in tmp_path.iterdir()] == ["sizes.yaml"]


def test_the_best_points_are_listed_and_written(hwmodel, tmp_path, unbroken):
    (tmp_path / "t.csv").write_bytes(unbroken)
    where = "hardware == ascend and hardware.levels.L1.capacity <= 64 KiB and accounting == full"
    code, out, _ = hwmodel("best", "t.csv", "--where", where, "--top", "3", "--csv", "-")
    assert code == 0
    rows = read_results(tmp_path / "t.csv").rows
    energies = sorted(
        (row["energy"], row["point"])
        for row in rows
        if row["hardware"] == "ascend" and row["accounting"] == "full"
        and (row["hardware.levels.L1.capacity"] <= 2**19) and row["energy"] is not None
    )  # fmt: skip
    found = [line.split(",") for line in out.splitlines()]
    energy = found[0].index("energy")
    assert [(float(line[energy]), int(line[0])) for line in found[1:]] == energies[:3]
    assert hwmodel("best", "t.csv", "--where", where)[0] == 0
    for words, message in (
        ((), "column energy has energies in MAC (fp32) and in pJ, which cannot be compared"),
        (("--by", "enrgy"), "no column 'enrgy': did you mean 'energy'?"),
        (("--by", "method"), "column method holds 'fp'; numbers are needed"),
        (("--where", "batch > 99"), "no row has an energy and keeps 'batch > 99'"),
        (("--top", "0"), "--top 0"),
    ):
        code, out, err = hwmodel("best", "t.csv", *words)
        assert (code, out) == (2, "") and message in err


def test_the_best_lines_of_a_comparison(hwmodel, tmp_path):
    """By energy as its rows are sorted; a column that some or all lack is told with a way out."""
    words = ("--hardware", "v100-pcie-board,ascend", "--methods", "fp,fp16,bold")
    made = ("compare", "mlp-784-512-512-10", *words, "--accounting", "full", "--mode", "inference")
    assert hwmodel(*made, "--csv", "c.csv")[0] == 0
    rows = list(csv.DictReader((tmp_path / "c.csv").read_text().splitlines()))
    timed = [(float(r["edp_js"]), r["method"]) for r in rows if r["edp_js"]]
    assert 0 < len(timed) < len(rows)
    code, out, _ = hwmodel("best", "c.csv", "--by", "edp", "--where", "edp_js > 0", "--csv", "-")
    assert code == 0
    found = list(csv.DictReader(io.StringIO(out)))
    assert [row["method"] for row in found] == [method for _, method in sorted(timed)]
    code, out, err = hwmodel("best", "c.csv", "--by", "edp", "--csv", "-")
    assert code == 0 and [*csv.DictReader(io.StringIO(out))] == found  # the same, and told
    lacking = [f"{r['method']}, {r['hardware']}" for r in rows if not r["edp_js"]]
    assert f"{len(lacking)} rows without edp_js left out: " in err
    assert lacking[0] in err
    for row in found:  # the energy beside an EDP has static energy in it
        watts, seconds = float(row["power_w"]), float(row["time_overlapped_s"])
        assert float(row["edp_js"]) == pytest.approx(watts * seconds**2, rel=1e-12)
    none = hwmodel("best", "c.csv", "--by", "edp", "--where", "hardware == ascend")[2]
    assert "no row has edp_js: ascend states no rates that a time needs" in none


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,b\n1,2\n", "has no column 'point'"),
        (
            "t.csv",
            "point,network,accounting,method,mode,batch,hardware,energy,unit,reason\n1\n",
            "t.csv:2: has not as many cells",
        ),
        ("t.csv", "", "has no column 'point': it is no table of a sweep"),
        ("t.csv", "\udcff", "is not a CSV file"),
        ("t.parquet", "PAR1", "is not a Parquet file"),
    ],
)
def test_tables_that_are_none_are_refused(hwmodel, tmp_path, name, content, message):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content.encode(errors="surrogateescape"))
    code, _, err = hwmodel("best", name)
    assert code == 2 and message in err


def test_two_runs_do_not_mix_their_parts(tmp_path):
    """Another process that has begun the same table: its parts would be taken for ours."""
    import subprocess
    import sys

    from hwmodel.vary.sweep.parts import opened

    begun = (
        "import sys; from pathlib import Path; from hwmodel.vary.sweep.parts import opened\n"
        "with opened(Path(sys.argv[1]), 'a', resume=False): print('begun', flush=True); input()"
    )
    out = tmp_path / "out.csv"
    other = subprocess.Popen(
        [sys.executable, "-c", begun, str(out)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )  # fmt: skip
    assert other.stdout.readline() == "begun\n"
    with (
        pytest.raises(HwmodelError, match="another run is at work on it"),
        opened(out, "b", resume=False),
    ):
        pass
    other.communicate("\n")
    with opened(out, "b", resume=False) as folder:
        assert folder.missing(2) == [0, 1]
