"""Sphinx: the site of vignettes and API reference. Every cell is run when it is built; an error fails the build."""

from docutils import nodes
from latex2mathml.converter import convert

import mcce

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
nb_output_stderr = "remove"  # warnings of the loans' past event; tests let no page warn of anything else

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. "  # what is copied can be run: no prompts, no output
copybutton_prompt_is_regexp = True
copybutton_selector = "div.cell_input pre, div.highlight-default pre, div.highlight-toml pre, div.highlight-shell pre"


def _write_math(translator, node, display):
    """Write a formula as MathML, which browsers show without a script from elsewhere."""
    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app):
    """Register the renderer of formulas."""
    app.add_html_math_renderer(
        "mathml",
        (lambda translator, node: _write_math(translator, node, "inline"), None),
        (lambda translator, node: _write_math(translator, node, "block"), None),
    )
