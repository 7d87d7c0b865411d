"""Pages of the site that nobody writes by hand: the commands from their own help, the changelog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHANGES = Path(__file__).parent.parent / "CHANGELOG.md"


def on_files(files: Any, config: Any) -> Any:
    """Add `commands.md` and `changelog.md` to the files below `docs/`; mkdocs calls this."""
    from mkdocs.structure.files import File

    changelog = CHANGES.read_text(encoding="utf-8").replace("](docs/", "](")
    for name, content in (("commands.md", command_reference()), ("changelog.md", changelog)):
        files.append(File.generated(config, name, content=content))
    return files


def command_reference() -> str:
    """Every command of `hwmodel` with what it prints after `--help`, as one Markdown page."""
    import typer
    from typer.testing import CliRunner

    from hwmodel.cli import app

    page = "# Commands\n\nWhat each command prints after `--help`.\n"
    for words in _commands(typer.main.get_command(app)):
        screen = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"})
        if screen.exit_code:
            raise RuntimeError(f"hwmodel {' '.join(words)} --help: exit code {screen.exit_code}")
        lines = "\n".join(line.rstrip() for line in screen.output.strip().splitlines())
        page += f"\n## {' '.join(('hwmodel', *words))}\n\n```text\n{lines}\n```\n"
    return page


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    children = getattr(command, "commands", {})
    if not children:
        yield path
    for name in children:
        yield from _commands(children[name], (*path, name))
