"""What to do about what git, ssh and forges say, by words of theirs that stay the same.

Called by remote.py. What is not known gets the usual hint.
"""

from __future__ import annotations

import re

AWAY = "check the URL, the network and your credentials; it is tried again"
_RULES = "read it again, and see the source's rules for pushes"
_LIMITS = (
    "the forge limits how often it is asked: it is asked less often while that lasts. A larger --poll with a webhook "
    "asks it least (docs/remotes.md)"
)
_WRITES = (
    "what is recorded waits in the data directory: let the server's user, token or deploy key write there "
    "(docs/remotes.md)"
)

_SAID = (
    (r"error: 429|too many requests|rate limit", _LIMITS),
    (
        r"marked as read only|not have write access|access to repository not granted|(was|is) archived|is read-only",
        _WRITES,
    ),
    (r"CONNECT tunnel failed|from proxy after CONNECT|proxy CONNECT aborted|resolve proxy", "check --git-proxy"),
    (
        r"No user exists for uid",
        "ssh runs for nobody without a name: install nss_wrapper (the image has it), or give the user's number an "
        "entry in /etc/passwd",
    ),
    (r"Permission denied \(", "give a key that it knows: --git-ssh-key-file, whose public half is a deploy key there"),
    (
        r"certificate verification failed|SSL certificate problem|unable to get local issuer",
        "give the CA that vouches for it: --git-ca-file",
    ),
    (
        r"could not read (Username|Password)|Authentication failed|error: 40[13]|HTTP Basic: Access denied",
        "give a token that may read and write there, and has not ended: --git-token-file, or git's credential helper",
    ),
)
_REFUSED = (
    (
        r"protected|GH006|GH013|not allowed to push|not allowed to force|pre-receive hook declined",
        f"a rule of the forge forbids it; {_WRITES}",
    ),
)


def away(said: str) -> str:
    """`said`: why a source did not answer."""
    return _first(_SAID, said) or AWAY


def refused(said: str) -> str:
    """`said`: why it takes no push."""
    return _first(_SAID + _REFUSED, said) or _RULES


def _first(known: tuple[tuple[str, str], ...], said: str) -> str:
    return next((hint for pattern, hint in known if re.search(pattern, said, re.IGNORECASE)), "")
