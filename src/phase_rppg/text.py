r"""Make names and messages safe to show: on a terminal, in JSON, in CSV and in HTML.

A file name may hold any bytes. Control characters would reach the terminal as commands, bidirectional
overrides would reorder a line, and bytes that are not UTF-8 cannot be encoded. `printable` replaces them
with Python escapes such as `\x1b`. A backslash itself stays, so that Windows paths remain readable.
"""

from __future__ import annotations

import html
import re

# C1 controls and DEL, bidirectional marks and overrides, invisible separators, tags and lone surrogates.
# The two joiners U+200C and U+200D stay: several scripts and emoji need them.
_HIDDEN = (
    "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(f"[\x00-\x1f{_HIDDEN}]")
_UNSAFE_IN_JSON = re.compile(f"[{_HIDDEN}]")  # JSON itself escapes the controls below U+0020
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# A report loads nothing: its styles are inside, its pictures are SVG or data addresses, it has no scripts.
REPORT_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'\">"
)
_FORMULA_STARTS = ("=", "+", "-", "@")


def printable(value: object) -> str:
    r"""Return the text of a value with every control or invisible character escaped.

    A byte of a file name that is not UTF-8 becomes `\xff`. The result is always valid UTF-8 on one line.
    """
    return _UNSAFE.sub(lambda found: _escape(found[0]), str(value))


def html_text(value: object) -> str:
    """Return the printable text of a value, escaped for the content or an attribute of an HTML element."""
    return html.escape(printable(value))


def counted(number: int, noun: str) -> str:
    """Return a number and its noun: `1 video`, `2 videos`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def csv_cell(value: object) -> str:
    """Return the printable text of a value; a spreadsheet does not read it as a formula.

    A text that begins with `=`, `+`, `-` or `@` gets an apostrophe in front. Numbers are not changed.
    """
    text = printable(value)
    is_number = isinstance(value, (int, float))
    return f"'{text}" if text.lstrip().startswith(_FORMULA_STARTS) and not is_number else text


def json_text(text: str) -> str:
    r"""Return JSON text with its hidden characters as JSON escapes, so that it is valid UTF-8.

    A reader gets the same strings. Only lone surrogates, which are bytes of a file name that are not UTF-8,
    are read as the text that `printable` gives, for example `\xff`.
    """
    return _UNSAFE_IN_JSON.sub(lambda found: _json_escape(found[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that `os.fsdecode` could not decode
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return "\\" + _escape(character)
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))
