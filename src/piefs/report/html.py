"""HTML of pages that stand alone: no request leaves them. Whatever comes from data is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any


def document(title: str, body: str, *, style: str, head: str = "") -> str:
    """A whole page."""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"{head}<title>{escape(title)}</title><style>{style}</style><body>{body}</body>"
        "</html>\n"
    )


def allow_only(script: str) -> str:
    """A policy that lets a page run this script and no other, and load nothing from anywhere."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def embedded_json(name: str, value: Any) -> str:
    """JSON in a page: without a `<` nothing in it can end its element or begin another."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{name}">{text}</script>'


def marked(text: str) -> str:
    """Escaped, with `code` and *emphasis*."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def heading(names: Iterable[str], span: int = 1) -> str:
    """A row of headings, the first over one column and the others over `span` of them."""
    first, *others = names
    over = f" colspan={span}" if span > 1 else ""
    cells = "".join(f"<th{over}>{escape(name)}</th>" for name in others)
    return f"<tr><th>{escape(first)}</th>{cells}</tr>"


def table(*rows: str) -> str:
    """A table of `<tr>` elements that scrolls by itself where it is wider than the page."""
    return f"<div class=scroll><table>{''.join(rows)}</table></div>"


def png(content: bytes, caption: str) -> str:
    """A picture as an `<img>` that holds its own bytes."""
    image = base64.b64encode(content).decode()
    return f"<img alt='{escape(caption)}' src='data:image/png;base64,{image}'>"


def figure(content: str, caption: str, *, name: str) -> str:
    """A picture and, under it, what it shows."""
    under = f"<figcaption>{marked(caption)}</figcaption>" if caption else ""
    return f"<figure id='figure-{escape(name)}'>{content}{under}</figure>"
