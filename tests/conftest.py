"""The command line as a test calls it: in a folder of its own, in this process."""

import pytest

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
