"""Disclosure by explanations and generated rows: counts on keys, attacks beside a control, membership."""
