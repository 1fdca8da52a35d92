"""Where a pull request is opened for a branch: the page of a forge that compares it with another one.

Called by whoever tells a user of a branch. Nothing is asked of anybody: it follows from the repository's URL, as far as
that is a forge's, with whatever was said of the forge besides. Credentials of that URL are left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from reconciler.forges.surroundings import GITEA, GITHUB, GITLAB

_SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?!//)/?(?P<path>[^\s]+)")
_PATH = re.compile(r"[A-Za-z0-9_.~-]+(/[A-Za-z0-9_.~-]+)+")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?")
_KNOWN = {"github": GITHUB, "gitlab": GITLAB, "gitea": GITEA, "forgejo": GITEA, "codeberg": GITEA}
"""Words of a host's name that say what it is."""
_FORMS = {
    GITHUB: "{at}/compare/{base}...{branch}?expand=1",
    GITLAB: "{at}/-/compare/{base}...{branch}",
    GITEA: "{at}/compare/{base}...{branch}",
}


class ForgeHint(NamedTuple):
    """What was said of the forge, "" for what was not. `url`: of the forge, `repository`: owner/name."""

    forge: str = ""
    url: str = ""
    repository: str = ""


NO_HINT = ForgeHint()


def compare_url(source: str, base: str, branch: str, hint: ForgeHint = NO_HINT) -> str:
    """For the repository at the URL `source`; "" where it is not known to be a forge's."""
    at, forge = _place(source, hint)
    if not at or forge not in _FORMS:
        return ""
    return _FORMS[forge].format(at=at, base=quote(base, safe="/"), branch=quote(branch, safe="/"))


def _place(source: str, hint: ForgeHint) -> tuple[str, str]:
    """The repository's page, and which forge's it is."""
    scheme, host, path = _parts(source)
    if hint.forge and hint.repository:
        path = hint.repository
        if hint.url:
            scheme, host, above = _parts(f"{re.sub('/api(/v[0-9]+)?/?$', '', hint.url)}/")
            path = f"{above}/{path}" if above else path
        elif hint.forge in (GITHUB, GITLAB):
            scheme, host = "https", f"{hint.forge}.com"
    host = "github.com" if host == "api.github.com" else host
    forge = hint.forge or next((kind for word, kind in _KNOWN.items() if word in host.split(":")[0].split(".")), "")
    known = _HOST.fullmatch(host) and _PATH.fullmatch(path) and ".." not in path
    return (f"{scheme}://{host}/{path}", forge) if known else ("", forge)


def _parts(source: str) -> tuple[str, str, str]:
    """Scheme, host and path of its pages, as far as they follow from its URL."""
    if "://" not in source:
        found = _SCP.fullmatch(source)
        return ("https", found["host"], _trimmed(found["path"])) if found is not None else ("", "", "")
    try:
        parts = urlsplit(source)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", "", ""
    if parts.scheme not in ("http", "https", "ssh", "git+ssh"):
        return "", "", ""
    web = parts.scheme in ("http", "https")
    return parts.scheme if web else "https", f"{host}:{port}" if port and web else host, _trimmed(parts.path)


def _trimmed(path: str) -> str:
    return path.strip("/").removesuffix(".git")
