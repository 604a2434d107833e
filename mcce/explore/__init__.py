"""The explorer: one person on one screen, with plans that can be adapted.

`ExplorerSession` answers messages about people as plain values. `static/explorer.js` is the front end. `MCCE.explore`
shows it in a notebook (`widget`), `mcce explore` in a browser (`server`).
"""

from mcce.explore.session import ExplorerSession

__all__ = ["ExplorerSession"]
