"""Sphinx configuration: `make docs` builds the documentation site in build/site.

Pages are Markdown and readable without the site. They load nothing from other servers.
"""

import os
import sys
from pathlib import Path

from docutils import nodes
from jupyter_cache import get_cache
from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from papi import __version__  # noqa: E402

project = "PaPi"
author = "the PaPi developers"
release = version = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "cyclopts.ext.sphinx",
]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
# Tutorials run when the site is built; an error in one stops the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "tutorials")
nb_execution_timeout = 1200
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_text_lexer = "none"  # command output is not code
# Hide the kernel's warning about unencrypted connections: they are local to this machine.
_PROFILE = ROOT / "build" / "ipython" / "profile_default"
_PROFILE.mkdir(parents=True, exist_ok=True)
(_PROFILE / "ipython_kernel_config.py").write_text(
    f"""\
config = get_config()
config.IPKernelApp.log_level = "ERROR"
config.InteractiveShellApp.exec_files = [{str(ROOT / "docs" / "_commands.py")!r}]
"""
)
os.environ["IPYTHONDIR"] = str(_PROFILE.parent)

default_role = "literal"  # for `names` in docstrings, as in Markdown
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the signature shows them
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_math_renderer = "mathml"  # built into browsers; MathJax would be loaded from another server

html_theme = "pydata_sphinx_theme"
html_title = "PaPi"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["footer-version"],
    "footer_end": ["sphinx-version"],
    "show_prev_next": True,
}
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system has it
html_sidebars = {"index": [], "start": [], "contributing": [], "changelog": []}  # these pages have no section
copybutton_prompt_text = "$ "

# Pages outside docs/, and the pages in docs/ that include them. Links to the former are rewritten.
_OUTSIDE = {
    "../README.md": "index.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
    "../SECURITY.md": "security.md",
}


def _lead_inside(app: object, name: str, source: list[str]) -> None:
    """Turn links to pages outside docs/ into links to the pages that include them."""
    up = "../" * name.count("/")
    for outside, inside in _OUTSIDE.items():
        source[0] = source[0].replace(f"]({up}{outside}", f"]({up}{inside}")


def _plain_cells(app: object, page: nodes.document) -> None:
    """Remove the Jupyter magic line from code cells of tutorials."""
    for block in page.findall(nodes.literal_block):
        magic, _, rest = block.astext().partition("\n")
        if magic.startswith("%%"):
            block.children = [nodes.Text(rest)]
            block.rawsource = rest
            block["language"] = "bash" if magic == "%%bash" else "python"


def _markdown_alone(app: object, page: nodes.document) -> None:
    """Remove reStructuredText markup in the command reference, which Markdown would show as text."""
    for paragraph in list(page.findall(nodes.paragraph)):
        if paragraph.astext() == "::" or paragraph.astext().startswith(".. _cyclopts"):
            paragraph.parent.remove(paragraph)


def _inline_formula(writer: object, node: object) -> None:
    writer.body.append(convert(node.astext()))  # type: ignore[attr-defined]
    raise nodes.SkipNode


def _formula(writer: object, node: object) -> None:
    writer.body.append(convert(node.astext(), display="block"))  # type: ignore[attr-defined]
    raise nodes.SkipNode


def _spread_tutorials(app: object, environment: object, names: list[str]) -> None:
    """Put equal numbers of other pages between the tutorials.

    Each process reads neighbouring pages, and tutorials take most of the time because they train models.
    """
    tutorials = [name for name in names if name.startswith("tutorials/")]
    names[:] = [name for name in names if name not in tutorials]
    distance = len(names) // max(1, len(tutorials)) + 1
    for number, name in enumerate(tutorials):
        names.insert(number * distance, name)
    get_cache(nb_execution_cache_path).list_cache_records()  # creates the cache before processes share it


def setup(app: object) -> None:
    """Register the hooks above with Sphinx."""
    app.connect("env-before-read-docs", _spread_tutorials)  # type: ignore[attr-defined]
    app.connect("source-read", _lead_inside)  # type: ignore[attr-defined]
    app.connect("doctree-read", _plain_cells)  # type: ignore[attr-defined]
    app.connect("doctree-read", _markdown_alone)  # type: ignore[attr-defined]
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_formula, None))  # type: ignore[attr-defined]
