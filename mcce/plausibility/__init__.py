"""Plausibility of rows: a calibrated score, and relations between columns."""
