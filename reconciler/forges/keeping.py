"""One comment on a pull request, whatever is said and however often: made, changed, or left as it is.

Called by commands/comment.py. It is found again by its first line (body.py) and by its author, who is the token's user:
anybody may write a comment with that line, and such a one is neither touched nor taken for ours. Nothing is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.forges.body import is_marked, is_same, written
from reconciler.forges.errors import ForgeError, MaybeDone
from reconciler.forges.forge import Comment, Forge, ForgeUser

_TRIES = 3


class KeptAs(StrEnum):
    """What became of it."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class KeptComment:
    """`others`: further ones of ours with this name, which stay as they are. `stranger`: who wrote it, as the forge
    says, where that is not who was looked for: then it will not be found again."""

    kept: KeptAs
    comment: Comment
    others: tuple[Comment, ...] = ()
    stranger: str = ""


def keep(forge: Forge, name: str, text: str, me: ForgeUser | None = None) -> KeptComment:
    """`me`: who the token is; None asks the forge. Raises ForgeError."""
    wanted = written(name, text)
    me = me or forge.me()
    if not me.id and not me.name:
        raise ForgeError("the forge does not say who the token is", "say it with --author")
    for left in reversed(range(_TRIES)):
        ours = [each for each in forge.comments() if each.author.is_same(me) and is_marked(each.body, name)]
        if ours:
            return _brought(forge, ours[0], wanted, tuple(ours[1:]))
        try:
            made = forge.create(wanted)
        except MaybeDone:  # it may be there: look again before there are two
            if not left:
                raise
        else:
            return KeptComment(KeptAs.CREATED, made, stranger="" if made.author.is_same(me) else made.author.name)
    raise AssertionError


def _brought(forge: Forge, first: Comment, wanted: str, others: tuple[Comment, ...]) -> KeptComment:
    if is_same(first.body, wanted):
        return KeptComment(KeptAs.UNCHANGED, first, others)
    return KeptComment(KeptAs.CONFIGURED, forge.update(first, wanted), others)
