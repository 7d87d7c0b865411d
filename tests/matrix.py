"""By hand: `python tests/matrix.py`. Wheel and sdist, interpreters, and versions of what we stand on.

From a clean clone it builds both archives and sees that they hold the same data. Every Python from
3.11 to 3.13 that is there gets the wheel without extras, with the newest and with the lowest versions
that pyproject names; in each, all that is bundled is checked, features without their extra say which one,
and the tables and one HTML file of a few commands are compared byte for byte across all of them.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
FP = ("--hardware", "ascend", "--methods", "fp,binaryconnect,xnor-net,binarynet,bold,bold-bn")
JOBS = {
    "compare.csv": ("compare", "vgg-small", *FP, "--csv", "-"),
    "full.csv": ("report", "resnet18", "--hardware", "v100", "--method", "bold", "--accounting", "full", "--csv", "-"),
    "show.csv": ("network", "show", "bert-base", "--csv", "-"),
    "tile.json": ("tile", "--hardware", "ascend", "--conv", "N=16,M=512,C=512,H=7,W=7,K=3,pad=1", "--bits",
                  "16,16,16", "--json"),
}  # fmt: skip
WITHOUT = {
    ("network", "check", "x.onnx"): "hwmodel[onnx]",
    ("compare", "vgg-small", *FP, "--format", "excel", "-o", "x.xlsx"): "hwmodel[excel]",
    ("compare", "vgg-small", *FP, "--format", "parquet", "-o", "x.parquet"): "hwmodel[parquet]",
    ("train", "--epochs", "1"): "hwmodel[data]",
}


def main() -> int:
    """Exit code 1 where anything differs or fails."""
    work = Path(tempfile.mkdtemp(prefix="matrix"))
    wheel = archives(work)
    hashes: dict[str, dict[str, str]] = {name: {} for name in JOBS}
    for python in filter(found, PYTHONS):
        for lowest in (False, True):
            label = f"Python {python}, {'lowest' if lowest else 'newest'} versions"
            home = environment(work / f"{python}-{lowest}", found(python), wheel, lowest)
            if home is None:
                print(f"{label}: cannot be installed here")
                continue
            tried(home, label, hashes)
    shutil.rmtree(work)
    bad = [name for name, of in hashes.items() if len(set(of.values())) != 1]
    for name, of in hashes.items():
        print(f"{name}: {len(set(of.values()))} different in {len(of)} environments")
    return bool(bad)


def archives(work: Path) -> Path:
    """Build both from a clean clone; the wheel from the sdist and that from the tree are alike."""
    clone = work / "clone"
    run("git", "clone", "--quiet", str(ROOT), str(clone))
    run(sys.executable, "-m", "venv", str(work / "build"))
    pip = work / "build/bin/pip"
    run(pip, "install", "--quiet", "build")
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


def environment(home: Path, python: str, wheel: Path, lowest: bool) -> Path | None:
    """A virtual environment with the wheel and nothing of its extras."""
    run(python, "-m", "venv", str(home))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = [re.sub(">=", "~=", need) if need.count(".") > 1 else need.replace(">=", "==") + ".*"
            for need in project["dependencies"]] if lowest else []  # fmt: skip
    command = [home / "bin/pip", "install", "--quiet", "--only-binary", ":all:", wheel, *pins]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1])
        return None
    return home


def tried(home: Path, label: str, hashes: dict[str, dict[str, str]]) -> None:
    """Check the installation, and hash what it makes."""
    hwmodel, folder = home / "bin/hwmodel", home / "work"
    folder.mkdir()
    (folder / "x.onnx").write_bytes(b"")
    print(f"{label}: {run(home / 'bin/pip', 'check').strip()}")
    print("  " + "  ".join(line.strip() for line in run(hwmodel, "doctor").splitlines()[1:9]))
    for word in ("hardware", "network", "method", "accounting", "training"):
        for line in run(hwmodel, word, "list").splitlines():
            run(hwmodel, word, "check", line.split()[0])
    for arguments, extra in WITHOUT.items():
        done = subprocess.run([hwmodel, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 2 and extra in done.stderr, (arguments, done.stderr)
    for name, arguments in JOBS.items():
        done = subprocess.run([hwmodel, *arguments], cwd=folder, capture_output=True, check=True)
        hashes[name][label] = hashlib.sha256(done.stdout).hexdigest()
    page = folder / "page.html"
    run(
        hwmodel,
        "compare",
        "vgg-small",
        "--hardware",
        "ascend",
        "--methods",
        "fp,bold",
        "--csv",
        "x.csv",
        "--html",
        page,
    )
    hashes.setdefault("page.html", {})[label] = hashlib.sha256(page.read_bytes()).hexdigest()


def run(*words: object) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, cwd=tempfile.gettempdir()
    )
    assert done.returncode == 0, (words, done.stdout[-500:], done.stderr[-2000:])
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
