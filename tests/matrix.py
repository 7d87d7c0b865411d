"""By hand: `python tests/matrix.py`. Wheel and sdist, interpreters, and versions of what we stand on.

From a clean clone it builds both archives and sees that they hold the same data. Every Python from
3.11 to 3.13 that is there gets the wheel without extras, with the newest and with exactly the lowest
versions that pyproject names; in each, all that is bundled is checked, features without their extra say
which one, and what every command writes is compared byte for byte across all of them: no expected value
stands here. Then the extras come in, but for the large one, and what needs them is compared, too.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
FP = ("--hardware", "ascend", "--methods", "fp,binaryconnect,xnor-net,binarynet,bold,bold-bn")
MLP = ("mlp-784-512-512-10", "--hardware", "ascend")
MLP_COMPARED = ("compare", *MLP, "--methods", "fp,bold")
REPORT = ("report", *MLP, "--method", "bold")
TILE = (
    "tile",
    "--hardware",
    "ascend",
    "--conv",
    "N=16,M=512,C=512,H=7,W=7,K=3,pad=1",
    "--bits",
    "16,16,16",
)
LIBRARIES = ("matplotlib", "numpy", "onnx", "pyarrow", "pydantic", "xlsxwriter")
# A file and the command that makes it: under its own name, or on standard output where it does not name
# it. Commands run in this order, so that later ones read what earlier ones made.
JOBS = {
    "compare.csv": ("compare", "vgg-small", *FP, "--csv", "-"),
    "compare.html": ("compare", "vgg-small", *FP, "--html", "compare.html"),
    "full.csv": ("report", "resnet18", "--hardware", "v100", "--method", "bold", "--accounting", "full", "--csv", "-"),
    "report.csv": (*REPORT, "--csv", "report.csv"),
    "report.md": (*REPORT, "--format", "markdown"),
    "report.tex": (*REPORT, "--format", "latex"),
    "report.json": (*REPORT, "-o", "report.json"),
    "report.html": (*REPORT, "--html", "report.html"),
    "run.csv": (*REPORT, "--training", "imagenet-300", "--tensors", "--csv", "run.csv"),
    "explain.md": ("explain", "vgg-small", "--layer", "conv2", "--hardware", "ascend", "--method", "bold"),
    "sensitivity.csv": ("sensitivity", *MLP, "--methods", "fp,bold", "--samples", "5", "--csv", "-"),
    "sweep.csv": ("sweep", "buffers.yaml", "--out", "sweep.csv"),
    "best.csv": ("best", "sweep.csv", "--where", "hardware == ascend", "--top", "20", "--csv", "-"),
    "tile.txt": TILE,
    "tile.json": (*TILE, "--json"),
    "show.csv": ("network", "show", "bert-base", "--csv", "-"),
    "show.yaml": ("network", "show", "resnet18", "--yaml"),
    "verify.txt": ("verify", "compare.csv"),
    "reproduce.csv": ("reproduce", "--csv", "-"),
    "schema.json": ("schema", "network"),
    "methods.svg": ("plot", "compare.csv", "-o", "methods.svg"),
    "layers.svg": ("plot", "report.csv", "-o", "layers.svg", "--kind", "layers"),
    "sweep.svg": ("plot", "sweep.csv", "-o", "sweep.svg", "--x", "hardware.levels.L1.capacity", "--y", "energy",
                  "--by", "method", "--where", "hardware == ascend and batch == 1"),
}  # fmt: skip
REFUSED = (
    ("compare", "vgg-small", "--hardware", "asend", "--methods", "fp"),
    (*MLP_COMPARED, "--batch", "y"),
    (*MLP_COMPARED, "--acuracy", "1"),
    (*MLP_COMPARED, "--accuracy", "y"),
)
WITHOUT = {
    ("network", "check", "x.onnx"): "onnx",
    (*MLP_COMPARED, "-o", "x.xlsx"): "excel",
    (*MLP_COMPARED, "-o", "x.parquet"): "parquet",
    ("verify", "x.parquet"): "parquet",
    ("best", "x.parquet"): "parquet",
    ("sweep", "buffers.yaml", "--out", "y.parquet"): "parquet",
    ("sweep", "buffers.yaml", "--out", "y.csv", "--scheduler", "tcp://127.0.0.1:1"): "cluster",
    ("train", "--epochs", "1"): "data",
    ("train", "--dataset", "mnist-5k", "--network", "conv-mnist", "--epochs", "1"): "data",
}
EXTRAS = ("cluster", "data", "excel", "onnx", "parquet")  # not torch, which is gigabytes
JOBS_OF_EXTRAS = {
    "compare.parquet": (*MLP_COMPARED, "-o", "compare.parquet"),
    "compare.xlsx": (*MLP_COMPARED, "-o", "compare.xlsx"),
    "verified.txt": ("verify", "compare.parquet"),
    "sweep.parquet": ("sweep", "buffers.yaml", "--out", "sweep.parquet"),
    "best-of-parquet.csv": ("best", "sweep.parquet", "--where", "hardware == ascend", "--csv", "-"),
    "model.yaml": ("network", "import", "model.onnx", "-o", "-"),
    "model.csv": ("report", "model.yaml", "--hardware", "ascend", "--method", "bold", "--csv", "-"),
    "trace.json": ("train", "--epochs", "2", "--trace", "trace.json"),
    "traced.csv": ("report", "deep-mlp", "--hardware", "ascend", "--method", "bold", "--trace", "trace.json", "--csv", "-"),
}  # fmt: skip
# A format is its library's, and sums of real numbers NumPy's: equal only under one version of it.
GIVEN = {".svg": "matplotlib", ".parquet": "pyarrow", ".xlsx": "xlsxwriter", "schema.json": "pydantic", "trace.json": "numpy", "traced.csv": "numpy"}  # fmt: skip
MODEL = """
from onnx import TensorProto as T, helper as h
value = h.make_tensor_value_info
nodes = [h.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), h.make_node("Relu", ["c"], ["y"])]
graph = h.make_graph(nodes, "g", [value("x", T.FLOAT, [1, 3, 8, 8])], [value("y", T.FLOAT, None)],
                     [h.make_tensor("w", T.FLOAT, [5, 3, 3, 3], [1.0] * 135)])
open("model.onnx", "wb").write(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)],
                                            ir_version=8).SerializeToString())
"""
COMPLETED = (("hwmodel", "comp"), ("hwmodel", "compare", "--ha"), ("hwmodel", "hardware", "sh"))


def main() -> int:
    """Exit code 1 where anything differs or fails."""
    made: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="matrix") as folder:
        work = Path(folder)
        wheel = archives(work)
        for python in filter(found, PYTHONS):
            for lowest in (False, True):
                label = f"Python {python}, {'lowest' if lowest else 'newest'} versions"
                home = work / f"{python}-{lowest}"
                if installed(home, found(python), wheel, lowest):
                    tried(home, label, lowest, made)
                else:
                    print(f"{label}: cannot be installed here")
    for name, hashes in made.items():
        print(f"{name}: {len(set(hashes.values()))} different in {len(hashes)} environments")
    return any(len(set(hashes.values())) > 1 for hashes in made.values())


def archives(work: Path) -> Path:
    """Build both from a clean clone; the wheel from the sdist and that from the tree are alike."""
    clone = work / "clone"
    run("git", "clone", "--quiet", str(ROOT), str(clone))
    run(sys.executable, "-m", "venv", str(work / "build"))
    pip = work / "build/bin/pip"
    run(pip, "install", "--quiet", "build", "uv")
    run(work / "build/bin/python", "-m", "build", "--outdir", str(work / "dist"), str(clone))
    (wheel,), (sdist,) = (work / "dist").glob("*.whl"), (work / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked", filter="data")
    run(
        pip,
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        work / "again",
        *(work / "unpacked").iterdir(),
    )
    (again,) = (work / "again").glob("*.whl")
    names = [{i.filename for i in zipfile.ZipFile(path).infolist()} for path in (wheel, again)]
    assert names[0] == names[1], names[0] ^ names[1]
    tracked = run("git", "-C", str(clone), "ls-files", "hwmodel", "hardware_specs").splitlines()
    wanted = {re.sub("^hardware_specs", "hwmodel/hardware_specs", name) for name in tracked} - {
        "hwmodel/docs"
    }
    assert wanted <= names[0], wanted - names[0]
    print(f"{wheel.name} and {sdist.name} hold all {len(wanted)} files")
    return wheel


def found(python: str) -> str:
    """The interpreter of a version; "" if there is none that runs."""
    roots = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in (*sorted(roots.glob(f"{python}*/bin/python")), shutil.which(f"python{python}")):
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return str(path)
    return ""


def installed(home: Path, python: str, wheel: Path, lowest: bool) -> bool:
    """Whether a virtual environment with the wheel and nothing of its extras could be made."""
    run(python, "-m", "venv", home)
    return install(home, lowest, project()["dependencies"], wheel)


def install(home: Path, lowest: bool, needs: list[str], *more: object) -> bool:
    """Install the newest versions, or the lowest of those that this Python has a wheel of."""
    if lowest:
        command = [home.parent / "build/bin/uv", "pip", "install", "--python", home / "bin/python",
                   "--resolution", "lowest-direct"]  # fmt: skip
    else:
        command = [home / "bin/pip", "install"]
    command += ["--quiet", "--only-binary", ":all:", *more, *needs]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip()[-1000:])
    return done.returncode == 0


def project() -> dict:
    """What pyproject says of the project."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def tried(home: Path, label: str, lowest: bool, made: dict[str, dict[str, str]]) -> None:
    """Check the installation, and note what it makes: first without, then with the extras."""
    folder = home / "work"
    folder.mkdir()
    shutil.copy(ROOT / "docs/examples/buffers.yaml", folder)
    for name in ("x.onnx", "x.parquet"):
        (folder / name).write_bytes(b"")
    print(f"{label}: {run(home / 'bin/pip', 'check').strip()}")
    bundled(home)
    for arguments, extra in WITHOUT.items():
        done = hwmodel(home, arguments)
        assert done.returncode == 2 and f"hwmodel[{extra}]" in done.stderr, (arguments, done.stderr)
    jobs(home, label, JOBS, made)
    said = [hwmodel(home, arguments) for arguments in REFUSED]
    noted("refusals", label, "".join(f"{done.returncode} {done.stderr}" for done in said), made)
    noted("completions", label, "".join(completed(home, words) for words in COMPLETED), made)

    needs = [need for extra in EXTRAS for need in project()["optional-dependencies"][extra]]
    assert install(home, lowest, project()["dependencies"] + needs), label
    print(f"{label}, with extras: {run(home / 'bin/pip', 'check').strip()}")
    run(home / "bin/python", "-c", MODEL, cwd=folder)
    jobs(home, label, JOBS_OF_EXTRAS, made)
    print("  " + ", ".join(f"{name} {version}" for name, version in versions(home).items()))


def bundled(home: Path) -> None:
    """All files that come with it are right, and so says its diagnosis."""
    run(home / "bin/hwmodel", "doctor")
    with ThreadPoolExecutor() as pool:
        for word in ("hardware", "network", "method", "accounting", "training"):
            names = [line.split()[0] for line in hwmodel(home, (word, "list")).stdout.splitlines()]
            assert names, word
            list(pool.map(lambda name: run(home / "bin/hwmodel", word, "check", name), names))  # noqa: B023


def jobs(home: Path, label: str, of: dict[str, tuple], made: dict[str, dict[str, str]]) -> None:
    """Run commands, and note what each wrote."""
    there = versions(home)
    for name, arguments in of.items():
        done = hwmodel(home, arguments)
        assert done.returncode == 0, (label, arguments, done.stderr[-2000:])
        path = home / "work" / name
        if name not in arguments:
            path.write_text(done.stdout)
        library = next((there[GIVEN[end]] for end in GIVEN if name.endswith(end)), "")
        noted(f"{name} {library}".strip(), label, path.read_bytes(), made)


def noted(name: str, label: str, content: str | bytes, made: dict[str, dict[str, str]]) -> None:
    """Keep the hash of what was made, which is not empty."""
    assert content, (name, label)
    raw = content.encode() if isinstance(content, str) else content
    made.setdefault(name, {})[label] = hashlib.sha256(raw).hexdigest()


def completed(home: Path, words: tuple[str, ...]) -> str:
    """What a shell is offered for the last of some words."""
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = hwmodel(home, (), _HWMODEL_COMPLETE="complete_bash", **asked)
    assert not done.stderr and done.stdout, (words, done.stderr)
    return done.stdout.strip() + "\n"


def versions(home: Path) -> dict[str, str]:
    """Of the libraries that are there and that bytes may depend on."""
    listed = json.loads(run(home / "bin/pip", "list", "--format", "json"))
    return {p["name"].lower(): p["version"] for p in listed if p["name"].lower() in LIBRARIES}


def hwmodel(home: Path, arguments: tuple[str, ...], **more: str) -> subprocess.CompletedProcess:
    """A command in the folder of its environment."""
    command = [home / "bin/hwmodel", *arguments]
    environment = os.environ | {"COLUMNS": "120"} | more
    return subprocess.run(
        command, cwd=home / "work", env=environment, capture_output=True, text=True
    )


def run(*words: object, cwd: object = tempfile.gettempdir()) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, (words, done.stdout[-500:], done.stderr[-2000:])
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
