"""Checks a built site: every link within it leads somewhere, anchors too; no page loads anything
from another host; every page is in the menu.

    docs_links.py SITE

It prints what is wrong, and then fails.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose address the browser loads by itself.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The anchors and links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = {""}
        self.links: list[tuple[str, str, str]] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        for name in ("id", "name"):
            if given.get(name):
                self.anchors.add(given[name] or "")
        is_canonical = tag == "link" and given.get("rel") == "canonical"
        for name in ("href", "src"):
            value = given.get(name)
            if value is not None and not is_canonical:
                self.links.append((tag, name, value))


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    wrong: list[str] = []
    checked = 0
    for path, page in pages.items():
        name = path.relative_to(site)
        for tag, attribute, value in page.links:
            parts = urlsplit(value)
            if parts.scheme in ("mailto", "data", "javascript"):
                continue
            if parts.netloc:
                if (tag, attribute) in LOADED:
                    wrong.append(f"{name}: loads {value} from another host")
                continue
            checked += 1
            # The page that is shown for addresses that do not exist is at no fixed place.
            if name.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if target == site.parent / "index.html":
                continue  # the list of versions, written later
            if not target.exists():
                wrong.append(f"{name}: {value} does not exist")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{name}: {value}: the page has no such anchor")
    for path in site.rglob("*.css"):
        for address in re.findall(
            r"(?:url\(|@import )[\"']?(https?:)?//[^)\"']+", path.read_text()
        ):
            wrong.append(f"{path.relative_to(site)}: loads {address}")
    index = pages[site / "index.html"]
    listed = {unquote(urlsplit(value).path).removeprefix("./") for _, _, value in index.links}
    for path in pages:
        page_name = path.relative_to(site).as_posix()
        if page_name not in listed | {"404.html", "index.html"}:
            wrong.append(f"{page_name} is not in the menu: add it to nav in zensical.toml")
    print("".join(f"{line}\n" for line in sorted(set(wrong))), end="", file=sys.stderr)
    if wrong:
        sys.exit(f"{len(set(wrong))} mistakes in {site}")
    print(f"{len(pages)} pages, {checked} links within the site: all lead somewhere")


if __name__ == "__main__":
    main()
