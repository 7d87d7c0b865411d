"""The diagnosis of an installation."""

import re
import tomllib
from importlib import metadata

import pytest

from hwmodel.views import doctor
from tests.test_architecture import PACKAGE


def test_a_sound_installation_is_told_line_by_line(hwmodel, afresh):
    code, out, err = hwmodel("doctor")
    assert (code, err) == (0, "")
    lines = {words[0]: " ".join(words[1:]) for words in map(str.split, out.splitlines())}
    assert lines["numpy"].startswith(metadata.version("numpy"))
    chips = PACKAGE.parent / "hardware_specs"
    assert lines["hardware"] == f"files {len(list(chips.glob('*.yaml')))} in {chips}"
    assert re.match(r"\d+ in ", lines["networks"])
    assert lines["cache"] == "off: tilings found before (HWMODEL_CACHE)"
    assert lines["outputs"].startswith("reports/ in ") and lines["outputs"].endswith(
        " can be written"
    )


def test_every_extra_of_the_project_is_told_with_what_it_is_for():
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    extras = {*project["optional-dependencies"]} - {"dev", "docs"}
    assert set(doctor.EXTRAS) == extras


def test_an_extra_that_is_missing_is_no_fault_and_names_the_command(hwmodel, monkeypatch):
    real = metadata.version

    def version(package):
        if package in ("onnx", "torch"):
            raise metadata.PackageNotFoundError
        return real(package)

    monkeypatch.setattr(doctor.metadata, "version", version)
    code, out, _ = hwmodel("doctor")
    assert code == 0
    assert "not installed: networks from ONNX files (pip install 'hwmodel[onnx]')" in out


@pytest.mark.parametrize(
    ("version", "found"),
    [("1.26.4", "1.26.4 (needs 2.0 or later)"), (None, "missing (needs 2.0 or later)")],
)
def test_a_package_that_is_old_or_missing_is_a_fault(hwmodel, monkeypatch, version, found):
    real = doctor._version
    monkeypatch.setattr(
        doctor, "_version", lambda package: version if package == "numpy" else real(package)
    )
    code, out, err = hwmodel("doctor")
    assert (code, err) == (1, "hwmodel: wrong: numpy\n")
    (line,) = [line for line in out.splitlines() if " numpy " in line]
    assert line.startswith("! ") and line.endswith(found)


def test_data_that_is_missing_and_a_place_that_cannot_be_written_are_faults(
    hwmodel, tmp_path, monkeypatch
):
    (tmp_path / "reports").write_text("a file")
    monkeypatch.setattr(doctor, "bundled", lambda kind: {})
    code, _, err = hwmodel("doctor")
    assert code == 1
    assert err == (
        "hwmodel: wrong: hardware files, method files, accounting files, training files, outputs\n"
    )


def test_the_version_is_that_of_the_package(hwmodel):
    assert re.fullmatch(r"hwmodel \S+\n", hwmodel("--version")[1])
    assert hwmodel("--version")[1].split()[1] == metadata.version("hwmodel")
