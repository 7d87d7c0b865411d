"""doctor: whether this installation is sound, and what it can do."""

from __future__ import annotations

import typer

from hwmodel.cli.screen import REPORTS, say

__all__ = ["doctor"]


def doctor() -> None:
    """Whether this installation is sound: versions, extras, bundled data. Exit code 1 if not."""
    from hwmodel.views.doctor import findings

    found = list(findings(REPORTS))
    width = max(len(finding.what) for finding in found)
    for finding in found:
        mark = "  " if finding.right else "! "
        typer.echo(f"{mark}{finding.what:{width}}  {finding.found}")
    wrong = [finding.what for finding in found if not finding.right]
    if wrong:
        say(f"hwmodel: wrong: {', '.join(wrong)}")
        raise typer.Exit(1)
