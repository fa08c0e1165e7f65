"""Hooks of MkDocs: pages that are generated from the code, pages of the root folder, and formulas as MathML.

`scripts/docs` runs them through mkdocs.yml. Nothing is written to docs/: the pages exist in the site only.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "src")]

import reference_pages  # noqa: E402

# Pages that stand in the root folder, where readers of a checkout expect them.
ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "MODEL_CARD.md": "model-card.md",
    "SECURITY.md": "security.md",
    "THIRD_PARTY.md": "third-party.md",
}
SHIM = re.compile(r'src="https://[^"]*/iframe-worker/shim"')  # of the plug-in "offline"
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, the pages of the root folder and the notebook."""
    pages = {target: (ROOT / source).read_text(encoding="utf-8") for source, target in ROOT_PAGES.items()}
    pages |= {f"reference/{name}.md": text for name, text in reference_pages.all_pages().items()}
    pages["gallery.md"] = reference_pages.gallery()
    pages["first-pulse.md"] = reference_pages.notebook()
    pages["first_pulse.ipynb"] = (ROOT / "examples" / "first_pulse.ipynb").read_text(encoding="utf-8")
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links to pages of the root folder at their place in the site; other files become plain text.

    A link whose text is the name of its page, as in a checkout, gets the title of the page in the navigation.
    """
    del files
    titles = _titles(config.nav)
    origin = page.file.src_uri
    from_root = origin in ROOT_PAGES.values()

    def resolved(match: re.Match[str]) -> str:
        target, _, anchor = match[2].partition("#")
        base = "" if from_root else posixpath.join("docs", posixpath.dirname(origin))
        path = posixpath.normpath(posixpath.join(base, target))  # below the root of the repository
        place = ROOT_PAGES.get(path, path.removeprefix("docs/"))
        if path.startswith("docs/") or path in ROOT_PAGES:
            if not posixpath.splitext(place)[1]:
                place = posixpath.join(place, "README.md")  # a folder
            relative = posixpath.relpath(place, posixpath.dirname(origin) or ".")
            text = titles.get(place, match[1]) if match[1].endswith(".md") else match[1]
            return f"[{text}]({relative}{'#' + anchor if anchor else ''})"
        return f"{match[1]} (`{path}`)"  # a file of the repository that is not a page

    return LINK.sub(resolved, markdown)


def _titles(nav: Any) -> dict[str, str]:
    """Return the title of each page in the navigation by its path."""
    if isinstance(nav, list):
        return {path: title for item in nav for path, title in _titles(item).items()}
    [(title, below)] = nav.items()
    return {below: title} if isinstance(below, str) else _titles(below)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Write formulas as MathML, which browsers show without a script."""
    del page, config, files

    def mathml(match: re.Match[str]) -> str:
        source = match[3].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        return str(convert(source, display="block" if match[2] == "[" else "inline"))

    return FORMULA.sub(mathml, html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load the script that makes search work in a folder from the site, not from another host."""
    del config
    depth = page.file.dest_uri.count("/")
    return SHIM.sub(f'src="{"../" * depth}assets/iframe-worker.js"', output)


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """Do the same in pages without a source, such as 404.html."""
    del template_name, config
    return SHIM.sub('src="assets/iframe-worker.js"', output_content)
