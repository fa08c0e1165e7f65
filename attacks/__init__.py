"""Runnable attacks on phase-rppg; each of them must fail. Run `python -m attacks`."""

from . import outputs, parsers, web_page

ATTACKS = parsers.ATTACKS | outputs.ATTACKS | web_page.ATTACKS
