"""`phase live`: serves the page to this computer only; the page itself does the measuring, in the browser.

assets.py   which files the page consists of, and the networks it shares with Python
server.py   a small server on the loopback address that gives out those files and nothing else
"""

from .assets import PAGE, Asset, catalogue, export
from .server import PageServer

__all__ = ["PAGE", "Asset", "PageServer", "catalogue", "export"]
