"""Results as HTML: a table for a notebook, a page for a browser. Nothing in them needs another file or a script."""

from mcce.report.pages.page import Page, Picture, as_png, html_page
from mcce.report.pages.result import result_page
from mcce.report.pages.table import Shown, html_table

__all__ = ["Page", "Picture", "Shown", "as_png", "html_page", "html_table", "result_page"]
