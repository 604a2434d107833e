"""Results for people: words, changed cells, pages and pictures."""
