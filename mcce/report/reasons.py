"""The reasons for which a factual has no counterfactual, as tables hold them and pages and letters read them."""

from __future__ import annotations

ALREADY = "already has the wanted decision"
NOBODY_ALIKE = "no training row has its fixed values"
NONE_ALIKE_WANTED = "no training row with its fixed values"
NO_ROOM = "nothing can meet its constraints"
UNREADABLE = "it could not be read"
