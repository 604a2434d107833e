"""From which share of the rows a number is a point mass, and Silverman's bandwidth for the numbers that are none.

The shares differ because the mistakes cost differently:

- `DRAWN_AS_IT_IS`: smoothing a draw hides a donor, so only what very many rows share (no gain, a top code) is spared.
- `COUNTED`: the donors' density counts such a number instead of smoothing it. Fewer rows than one in a hundred are too
  few to estimate a probability in a leaf.
- `LATENT_INTERVAL`: the copula's latent variable has an interval for such a number instead of a point; a point in place
  of a wide interval biases its correlations, an interval in place of a narrow one costs only time.
"""

from __future__ import annotations

DRAWN_AS_IT_IS = 0.05
COUNTED = 0.01
LATENT_INTERVAL = 0.005


def silverman(sd: float, quartile_range: float, n: int) -> float:
    """Return 0.9 min(sd, IQR / 1.34) n^(-1/5), without the one that is zero; 0 if both are."""
    spread = quartile_range / 1.34
    if spread <= 0.0 or 0.0 < sd < spread:
        spread = sd
    return float(0.9 * spread * float(n) ** -0.2)
