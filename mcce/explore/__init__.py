"""The explorer: one person on one screen, with plans that she, or whoever advises her, can shape.

1. `ExplorerSession` answers messages about some people, as plain values: `mcce.explore.session` lists them. It knows
   nothing of notebooks and browsers.
2. `static/explorer.js` is the whole front end, one module that needs nothing else and no network.
3. `MCCE.explore` shows it in a notebook (`mcce.explore.widget`), `mcce explore` in a browser (`mcce.explore.server`).
   Both hand its messages to a session.
"""

from mcce.explore.session import ExplorerSession

__all__ = ["ExplorerSession"]
