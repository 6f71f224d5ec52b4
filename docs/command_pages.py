"""A page of the command line, made from the commands' own help when the site is built."""

from pathlib import Path

import typer
from sphinx.application import Sphinx

HEAD = """# Command line

Exit codes: 0 done, 1 the run failed (a one-line reason), 2 bad usage or bad input. `--json` prints
what scripts need, `--quiet` nothing but errors, `--debug` the traceback of an error.
"""


def commands(group: object, prefix: str) -> list[tuple[str, object]]:
    """All commands below a group, with their full names."""
    found = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        full = f"{prefix} {name}"
        found += commands(command, full) if hasattr(command, "commands") else [(full, command)]
    return found


def page() -> str:
    """The help of every command as one page."""
    from piefs.app.commands import app

    parts = [HEAD]
    for name, command in commands(typer.main.get_command(app), "piefs"):
        parts.append(f"## `{name}`\n\n{' '.join((command.help or '').split())}\n")
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
        usage = " ".join([name, *(p.name.upper() for p in arguments)])
        parts.append(f"```text\n{usage} [OPTIONS]\n```\n")
        rows = [f"| `{p.name.upper()}` | {_help(p)} |" for p in arguments]
        rows += [f"| `{', '.join(p.opts)}` | {_help(p)} |" for p in options]
        if rows:
            parts.append("\n".join(["| | |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _help(parameter: object) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split())
    default = getattr(parameter, "default", None)
    shown = isinstance(default, str | int | float) and not isinstance(default, bool)
    return text.replace("|", "\\|") + (f" Default: `{default}`." if shown else "")


def write(app: Sphinx) -> None:
    """Write the page among the sources, before they are read."""
    target, text = Path(app.srcdir) / "commands.md", page()
    if not target.is_file() or target.read_text() != text:
        target.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
