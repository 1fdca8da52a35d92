"""How docs/ becomes a site: `make docs` writes it to build/site, and fails where a link leads nowhere.

Sphinx reads this file. The pages are the repository's own Markdown files, as people read them on a forge: links among
them and to their headings are the same there and here. What a page links to and is no page (a list, a test, a licence)
is copied beside it.
"""

from __future__ import annotations

project = "Treeplane"
author = "The Treeplane authors"
html_title = "Treeplane"

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "repo-layout/README.md",
    "examples/**/README.md",
    "bench/README.md",
    "tests/*/README.md",
]

# Anchors of headings are made as forges make them, so that one link is right in both.
myst_heading_anchors = 4
myst_links_external_new_tab = True

# The site shows nothing of the machine that built it, and asks no other host for anything.
html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False

# HAProxy's configuration has no lexer; it is shown as it stands.
suppress_warnings = ["misc.highlighting_failure"]
