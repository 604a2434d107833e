"""Results as HTML: a table for a notebook, a page for a browser. Nothing in them needs another file or a script."""

from mcce.html.page import Page, Picture, as_png, html_page
from mcce.html.result import result_page
from mcce.html.table import Shown, html_table

__all__ = ["Page", "Picture", "Shown", "as_png", "html_page", "html_table", "result_page"]
