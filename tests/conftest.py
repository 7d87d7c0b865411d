"""The command line as a test calls it: in a folder of its own, in this process."""

import os

import pytest
from hypothesis import settings

from hwmodel.cli import main


@pytest.fixture
def hwmodel(tmp_path, monkeypatch, capsys):
    """A function that runs `hwmodel ARGUMENTS` and gives (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["hwmodel", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return run


# The same cases in every run: a failure is of the change at hand. HWMODEL_TESTS=thorough draws anew.
settings.register_profile("same", derandomize=True)
settings.register_profile("anew", derandomize=False)
settings.load_profile("anew" if os.environ.get("HWMODEL_TESTS") == "thorough" else "same")
