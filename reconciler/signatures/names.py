"""Which names may be a signer's.

Called by this room's readers of `signers/`. A signer's name is a user's, so it is exactly one, and nobody becomes one
of the server's own by a line in a file.
"""

from __future__ import annotations

_PATTERN, _SEPARATORS = "*?!", ',"\\'
_SYSTEM = "system:"
_LONGEST = 256


def unfit(name: str) -> str:
    """Why a name can be nobody's; "" if it can be somebody's. The name itself is not repeated."""
    if not name or name != name.strip():
        return "the name is empty, or has blanks around it"
    if len(name) > _LONGEST:
        return f"the name is longer than {_LONGEST} characters"
    if not name.isprintable():
        return "the name holds characters that cannot be seen"
    if any(c in name for c in _PATTERN):
        return "the name is a pattern (*, ?, !), which names no user: write one line for each"
    if any(c in name for c in _SEPARATORS):
        return "the name holds a comma, quotation mark or backslash"
    if name.startswith(_SYSTEM):
        return "names that begin with system: are the server's own"
    return ""
