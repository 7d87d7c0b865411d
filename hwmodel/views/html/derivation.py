"""The derivation of one layer's energy as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from hwmodel.model.report import Report
from hwmodel.views.explain.explanation import explanation

if TYPE_CHECKING:
    from markdown_it.token import Token
    from markupsafe import Markup

__all__ = ["derivation"]

DEEPER = 2  # levels by which its headings stand below those of the page


def derivation(report: Report, layer: str) -> Markup:
    """Write the explanation of a layer; a name in it that looks like HTML stays text."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(explanation(report, layer))
    placed = [*_placed(tokens[3:])]  # its title, three tokens, is said by what it is folded into
    return Markup(parser.renderer.render(placed, parser.options, {}))


def _placed(tokens: list[Token]) -> Iterator[Token]:
    """Move headings deeper; put tables into a container that scrolls, named by its section."""
    from markdown_it.token import Token

    section = ""
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + DEEPER, 6)}"
        if token.type == "heading_open" and following:
            section = following.content
        if token.type == "th_open":
            token.attrSet("scope", "col")
        if token.type == "table_open":
            yield Token("html_block", "", 0, content='<div class="scroll">')
        yield token
        if token.type == "table_open":
            caption = f"<caption><span>{escape(section)}</span></caption>"
            yield Token("html_block", "", 0, content=caption)
        if token.type == "table_close":
            yield Token("html_block", "", 0, content="</div>")
