"""The errors and warnings of the bridge."""

from __future__ import annotations

from mcce.exceptions import MCCEError, MCCEWarning


class RBridgeError(MCCEError):
    """R, rpy2 or a package of R is missing, or a call of R failed."""


class RWarning(MCCEWarning):
    """A call of R succeeded with a warning."""
