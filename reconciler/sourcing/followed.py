"""What is followed of tenants' repositories, and what is known of each: the shapes that loading and the follower share.

Whoever knows the workspaces says what is to be followed (`SourceFollowing.follow`), and reads what was found; the
commits themselves are read from `repository/repositories.Repositories.of`, by the source's name. What is served of
them is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from reconciler.repository.sourcerefs import NO_CREDENTIALS, SourceAddress, SourceCredentials

_ID = re.compile(r"[0-9a-f]{40}")

REASONS = {
    "AddressRefused": "it is not on the public internet, and not trusted",
    "BranchNotFound": "the repository has no such branch",
    "Broken": "something on this machine: the disk, git",
    "CertificateRefused": "nobody that counts vouches for who answers",
    "Failing": "the server has errors of its own",
    "NotARepository": "what answers is no git server, or one of a kind that is not followed",
    "NotFound": "there is no such repository, or not for these credentials",
    "Refused": "the repository does not take what is written to it",
    "TooLarge": "more than one source, or all together, may have",
    "TooSlow": "it takes longer than one look may",
    "Unauthorized": "credentials are missing or wrong",
    "Unreachable": "nobody answers, or not to the end",
    "Unusable": "what came is damaged, or not what was said to come",
}
"""All reasons of faults, of `Found` and of `Excerpted` (excerpts.py), with what they mean."""


@dataclass(frozen=True, slots=True)
class FollowedSource:
    """`address`: judged (`sourcerefs.address`). `trusted`: whether it may be at any address, those of this machine and
    its network included. `remedy`: what an administrator may do where it may not, for the fault's hint. `keep`: ids of
    commits whose objects stay, wherever the branch goes: those that are served, and those that a judgement under way
    is about. One that is not here is asked for by its id, once; no fault tells that it was not given."""

    address: SourceAddress
    credentials: SourceCredentials = field(default=NO_CREDENTIALS, repr=False)
    trusted: bool = False
    remedy: str = ""
    keep: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for commit in self.keep:
            if _ID.fullmatch(commit) is None:
                raise ValueError(f"{commit!r} is no id of a commit")


class Found(NamedTuple):
    """What is known of a source. Nothing of it is a secret, and no text of the remote's is in it.

    `commit`: the branch's head when it was last looked at, whole and checked here, as it was before a restart too; ""
    if there never was one. `fault`, `hint`: why it could not be looked at the last time; "" if it could. `reason`: the
    same as one word for a condition, see REASONS. `since`: seconds since 1970 since when there are faults, whatever
    they are; 0.0 if there is none. `looked`: the same of the last look, with whatever result; 0.0 if there was none
    since the start. `began`: the same of when that look began.
    """

    commit: str = ""
    reason: str = ""
    fault: str = ""
    hint: str = ""
    since: float = 0.0
    looked: float = 0.0
    began: float = 0.0


class SourceFollowing(Protocol):
    """The follower, as loading sees it (`sourcing/follower` makes it; a test may have another). Safe from every thread.

    What is new is told through the `news` that it was made with: names of which `found` says something else than
    before, `looked` aside, and those that were looked at for the first time; from a thread of its own, which waits
    meanwhile.
    """

    def follow(self, wanted: Mapping[str, FollowedSource], kept: Collection[str] = frozenset()) -> None:
        """The whole set, by name (`sourcerefs.source_name`). Cheap, and free where nothing changed. Those not in it any
        more are not looked at, and what came of them goes after an hour, but for the `kept`: sources of which something
        is still served. What is new, or is said to be elsewhere or with other credentials, is looked at, at once."""

    def found(self, name: str) -> Found:
        """Nothing, of one that is not followed."""

    def look_now(self, names: Iterable[str]) -> None:
        """Before their time: somebody pushed, or asks. Each is looked at once every few seconds at most."""

    def close(self, seconds: float) -> None:
        """No further looks; what is under way is given up, and after that time not waited for."""
