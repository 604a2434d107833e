"""Sphinx: the site of pages and API reference. Every cell is run when it is built; an error or a warning fails it."""

import os

from docutils import nodes
from latex2mathml.converter import convert

import mcce

os.environ.pop("MPLBACKEND", None)  # the pages draw inline

project = "mcce"
author = "the mcce developers"
project_copyright = "2026, the mcce developers"
release = mcce.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["build", "jupyter_execute"]
html_theme = "furo"
html_title = "mcce"
html_static_path = ["_static"]
html_css_files = ["mcce.css"]
html_math_renderer = "mathml"
default_role = "code"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_output_stderr = "remove-warn"  # pages show no warnings; with -W one fails the build

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False


def _write_math(translator, node, display):
    """Write a formula as MathML, which browsers show without a script from elsewhere."""
    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app):
    """Register the renderer of formulas."""
    inline, block = (
        (lambda *place, display=display: _write_math(*place, display), None) for display in ("inline", "block")
    )
    app.add_html_math_renderer("mathml", inline, block)
