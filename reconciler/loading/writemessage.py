"""What the commit of writes through the API says: what was done to which objects, and who did it.

Called by the committer. A commit of one user's writes has him for its author; one of several users' has Treeplane, and
says of each write whose it is (repository/writtenby). Names are strangers' texts: none of them begins a line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from apiserver.model.counts import counted
from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.plan.deletions import ALLOW
from reconciler.repository.desired import signature
from reconciler.repository.messages import one_line, with_trailers
from reconciler.repository.writtenby import WRITTEN_BY, WrittenBy

CO_AUTHOR = "Co-authored-by"
_LISTED = 50
_USER = 400
"""Characters of a user's name. Those of ServiceAccounts have up to 339."""


def authors(writes: Iterable[Intent]) -> list[str]:
    """Who asked for some writes, in their order."""
    return [*dict.fromkeys(intent.author for intent in writes)]


def message(writes: Collection[Intent], path_of: Callable[[str], str], allowed: Collection[str]) -> str:
    """`path_of`: the path of a logical cluster; `allowed`: which losses the commit allows (plan/deletions)."""
    trailers: dict[str, str | list[str]] = {ALLOW: " ".join(sorted(allowed))} if allowed else {}
    who = authors(writes)
    if len(who) > 1:
        trailers[WRITTEN_BY] = [str(_written(intent, path_of)) for intent in writes]
        trailers[CO_AUTHOR] = [_co_author(user) for user in who]
    lines = [(i.verb, _resource(i.key), _name(i.key), path_of(i.key.cluster)) for i in writes]
    verb, resource, name, path = lines[0]
    if len(lines) == 1:
        return with_trailers(f"{verb.capitalize()} {resource} {name} in {path}", [], trailers)
    workspaces = sorted({line[3] for line in lines})
    where = workspaces[0] if len(workspaces) == 1 else counted(len(workspaces), "workspace")
    many = len(workspaces) > 1
    listed = [f"{verb} {resource} {name}" + (f" in {path}" if many else "") for verb, resource, name, path in lines]
    rest = [f"and {len(listed) - _LISTED} more"] if len(listed) > _LISTED else []
    whose = f" for {len(who)} users" if len(who) > 1 else ""
    subject = f"Write {counted(len(lines), 'object')}{whose} in {where}"
    return with_trailers(subject, [*listed[:_LISTED], *rest], trailers)


def _written(intent: Intent, path_of: Callable[[str], str]) -> WrittenBy:
    key = intent.key
    return WrittenBy(path_of(key.cluster), _resource(key), key.namespace, key.name, intent.author)


def _co_author(user: str) -> str:
    name, mail = signature(one_line(user, _USER))
    return f"{name} <{mail}>"


def _resource(key: Key) -> str:
    """Without the identity of what it is bound from."""
    return key.resource.partition(":")[0]


def _name(key: Key) -> str:
    """One word of a line: a name with line breaks must not say what stands in a message by itself."""
    return one_line(f"{key.namespace}/{key.name}" if key.namespace else key.name)
