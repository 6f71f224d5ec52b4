"""The site: `make docs` writes it to docs/_build/html, all examples executed."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for what builds pages from the code (command_pages.py)
os.environ.setdefault("MPLBACKEND", "agg")

project, author = "piefs", "The piefs developers"
copyright = author
release = version = version_of("piefs-learn")
extensions = [
    "command_pages",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**/*.py", "gallery/**/*.ipynb", "gallery/**/*.md5"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the order of the gallery is an object

html_theme = "furo"
html_title = "piefs"
html_theme_options = {"source_edit_link": ""}
copybutton_prompt_text = "$ "

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the descriptions of parameters say it
autodoc_default_options = {"members": True, "inherited-members": False}
napoleon_google_docstring = False
napoleon_use_rtype = False
default_role = "literal"  # docstrings put code between single backticks


def plain_bars(app, what, name, obj, options, lines):
    """Let |x| in a docstring mean the absolute value."""
    lines[:] = [line.replace("|", "\\|") for line in lines]


def skip_requests(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn adds for metadata routing."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("autodoc-skip-member", skip_requests)


def _runnable() -> str:
    """A pattern of the examples whose data are at hand; the others are shown and not run."""
    from piefs.data import load
    from piefs.errors import PiefsError

    needs = {"plot_pulsars": "htru2", "plot_image_embeddings": "cifar10-embedding"}
    missing = []
    for example, dataset in needs.items():
        try:
            load(dataset)
        except PiefsError as error:
            print(f"{example} is shown and not run: {error}")
            missing.append(example)
    return rf"/plot_(?!{'|'.join(name.removeprefix('plot_') for name in missing) or '$'})"


sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "subsection_order": ExplicitOrder(["../examples/real_uses"]),
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": _runnable(),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "reference_url": {},
    "copyfile_regex": "",
    "capture_repr": (),
}
