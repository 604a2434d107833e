"""The errors and warnings of the bridge: what is missing, and what R said."""

from __future__ import annotations

from mcce.exceptions import MCCEError, MCCEWarning


class RBridgeError(MCCEError):
    """R, rpy2 or a package of R is missing, or R refused what it was asked."""


class RWarning(MCCEWarning):
    """R did what it was asked, and warned."""
