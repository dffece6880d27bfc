"""How the documentation becomes a site: `make docs` builds it in build/site.

Pages are Markdown that reads well on its own. Nothing is fetched while a page is read.
"""

import os
import sys
from pathlib import Path

from docutils import nodes
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
    "cyclopts.sphinx_ext",
]
exclude_patterns = ["results/*.md"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
# Tutorials run when the site is built; an error in one of them stops the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "tutorials")
nb_execution_timeout = 1200
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_text_lexer = "none"  # what commands print is no code
os.environ["COLUMNS"] = "100"  # how wide commands print
# The kernel warns that it talks to this process unencrypted, which stays on this machine.
_PROFILE = ROOT / "build" / "ipython" / "profile_default"
_PROFILE.mkdir(parents=True, exist_ok=True)
(_PROFILE / "ipython_kernel_config.py").write_text('get_config().IPKernelApp.log_level = "ERROR"\n')
os.environ["IPYTHONDIR"] = str(_PROFILE.parent)

autodoc_typehints = "none"  # the signature has them
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_math_renderer = "mathml"  # browsers show it by themselves; MathJax would be fetched from elsewhere

html_theme = "pydata_sphinx_theme"
html_title = "PaPi"
templates_path = ["_templates"]
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
html_sidebars = {"index": []}
copybutton_prompt_text = "$ "

# Pages outside docs/ are included in pages of their own here. Links to them lead there.
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


def _inline_formula(writer: object, node: object) -> None:
    writer.body.append(convert(node.astext()))  # type: ignore[attr-defined]
    raise nodes.SkipNode


def _formula(writer: object, node: object) -> None:
    writer.body.append(convert(node.astext(), display="block"))  # type: ignore[attr-defined]
    raise nodes.SkipNode


def setup(app: object) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _lead_inside)  # type: ignore[attr-defined]
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_formula, None))  # type: ignore[attr-defined]
