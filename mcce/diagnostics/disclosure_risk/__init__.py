"""Disclosure risk of explanations and generated rows: counts on keys, attacks with a control, membership."""
