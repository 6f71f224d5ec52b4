"""HTML of the report: helpers that escape every string."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from html import escape


def document(title: str, body: str, *, style: str) -> str:
    """A whole page."""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{style}</style><body>{body}</body></html>\n"
    )


def marked(text: str) -> str:
    """Escaped, with `code` and *emphasis*."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def heading(names: Iterable[str]) -> str:
    """A row of headings."""
    return f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>"


def table(*rows: str) -> str:
    """A table of `<tr>` elements that scrolls by itself if it is wider than the page."""
    return f"<div class=scroll><table>{''.join(rows)}</table></div>"


def figure(content: bytes, caption: str, *, name: str) -> str:
    """A PNG that the page holds, and its caption."""
    image = base64.b64encode(content).decode()
    return (
        f"<figure id='figure-{escape(name)}'>"
        f"<img alt='{escape(caption)}' src='data:image/png;base64,{image}'>"
        f"<figcaption>{marked(caption)}</figcaption></figure>"
    )
