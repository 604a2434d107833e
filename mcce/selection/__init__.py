"""Choosing among candidates: how far they are from the factual, in which order they come, which of them win."""
