"""Words that must not appear on pages for customers and caseworkers."""

import re
from html import unescape

INTERNAL = re.compile(r"\bfactuals?\b|gower_sum|rows_queried|\baccused\b|\bfloor\b", re.IGNORECASE)


def assert_plain(page: str) -> None:
    """Check the visible text of a page, HTML or not."""
    text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)
    spoken = [*re.findall(r'(?:alt|title|aria-label|data-name)="([^"]*)"', page), unescape(text)]
    found = [match.group() for each in spoken for match in INTERNAL.finditer(each)]
    assert not found, sorted(set(found))
