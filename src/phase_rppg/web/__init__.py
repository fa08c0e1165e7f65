"""The server of `phase live`; the measurement itself runs in the browser.

assets.py   the files of the page and the networks that it shares with Python
server.py   an HTTP server on the loopback address that serves only these files
lan.py      certificate, token and QR code for a server in the local network
"""

from .assets import PAGE, Asset, build_if_missing, catalogue, export
from .lan import LanAccess, open_lan, qr_code
from .server import PageServer

__all__ = [
    "PAGE",
    "Asset",
    "LanAccess",
    "PageServer",
    "build_if_missing",
    "catalogue",
    "export",
    "open_lan",
    "qr_code",
]
