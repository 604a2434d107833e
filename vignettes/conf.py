"""Sphinx: the site of vignettes and API reference. Every cell is run when the site is built; an error fails the build."""

import mcce

project = "mcce"
author = "the mcce authors"
release = mcce.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["build", "jupyter_execute"]
html_theme = "furo"
html_title = "mcce"
html_static_path = []
default_role = "code"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
