"""What explanations and generated rows give away: counts on keys, attacks beside a control, membership, extraction."""
