"""A forge's refusal in words that say what to do. Called by forgeclient.py."""

from __future__ import annotations

from typing import Any

from reconciler.plugin.saying import shown

_LONGEST = 300


def refusal(status: int, said: str, rights: str) -> tuple[str, str]:
    """Text and hint. `rights`: what the token has to be allowed."""
    quoted = f": {said}" if said else ""
    match status:
        case 401:
            return f"the forge does not take the token (401){quoted}", "is it this forge's, and not over?"
        case 403:
            return f"the token may not do that (403){quoted}", f"it needs {rights}"
        case 404:
            why = "nothing is there, or the token may not see it (404)"
            return f"{why}{quoted}", f"check the repository and the number; the token needs {rights}"
        case 429 | 502 | 503 | 504:
            return f"the forge is busy ({status}){quoted}", "try again later"
        case _ if 300 <= status < 400:
            return f"it is elsewhere ({status}){quoted}", "no token is sent there: give the new name, or URL"
        case _:
            return f"the forge answers {status}{quoted}", "check the URL, the repository and the number"


def words(said: Any, token: str) -> str:
    """What somebody else wrote, on one line and without the token."""
    if not isinstance(said, str):
        said = repr(said)
    plain = shown(" ".join(said.replace(token, "***").split()))
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
