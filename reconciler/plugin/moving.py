"""Going to another workspace: `kubectl ws use`, and what a place may be called.

Contexts (`workspace.kcp.io/current`, `workspace.kcp.io/previous`) are those of kcp's plugin.
"""

from __future__ import annotations

from pathlib import Path

from reconciler.plugin.claims import warnings
from reconciler.plugin.client import Answer
from reconciler.plugin.errors import NOT_READY, USAGE, MissingWorkspace, PluginError
from reconciler.plugin.places import meant_instead
from reconciler.plugin.saying import warn
from reconciler.plugin.session import CLUSTERS, WORKSPACES, ServerPlace, Session, ShownWorkspace, from_root
from reconciler.plugin.waiting import until

CURRENT = "workspace.kcp.io/current"
PREVIOUS = "workspace.kcp.io/previous"
_HOME_SECONDS = 60.0


def use(session: Session, target: str) -> ShownWorkspace:
    """Make `target` the current workspace: a path from the root, a name below here, `..`, `~`, or `-` for the one
    before. What its bindings wait for is told."""
    place = _back(session) if target == "-" else _go(session, target)
    for line in warnings(session, place.path):
        warn(line)
    return place


def use_at(session: Session, rev: str, target: str) -> ShownWorkspace:
    """Make `target` ("": the current one) the current workspace, as the commit that `rev` names has it; "": as it is
    served. From there on others are reached at that commit, too."""
    path = _resolve(session, target) if target else session.path()
    other = Session(session.config, session.commit(rev, path) if rev else "")
    place = other.look_up(path)
    if (place.path, place.at) != (session.here, session.at):
        session.config.remember(PREVIOUS, CURRENT, other.url(place.path))
    return place


def _go(session: Session, target: str) -> ShownWorkspace:
    path = _resolve(session, target)
    try:
        place = session.look_up(path)
    except MissingWorkspace as error:
        raise MissingWorkspace(f"{error}{meant_instead(session, path)}") from None
    if place.path != session.here:
        session.config.remember(PREVIOUS, CURRENT, session.url(place.path))
    return place


def _back(session: Session) -> ShownWorkspace:
    server = session.config.server(PREVIOUS)
    if server is None:
        raise PluginError("no previous workspace found in kubeconfig")
    before = ServerPlace.of(server)
    if before.base != session.base or not before.path:
        raise PluginError(f'previous URL "{server}" does not point to a workspace of this server')
    place = Session(session.config, before.at).look_up(before.path)
    session.config.exchange(PREVIOUS, CURRENT)
    return place


def _resolve(session: Session, target: str) -> str:
    """A path from the root. `root…` and `:…` begin there, `~` at home, anything else here."""
    # A shell has made the user's directory of ~.
    first, _, rest = target.partition(":")
    if first in ("~", str(Path.home())):
        start, target = _home(session), rest or "."
    elif target.startswith(":") or from_root(target):
        start, target = "", target.removeprefix(":") or "root"
    else:
        start = session.path()
    return _walked(start.split(":") if start else [], target)


def _walked(parts: list[str], target: str) -> str:
    for part in target.split(":"):
        if part == "..":
            # A home stands in no workspace: user:ann is a path of one.
            if len(parts) < (3 if parts[:1] == ["user"] else 2):
                raise PluginError(f'current workspace is "{":".join(parts)}": it has no parent')
            parts.pop()
        elif part != ".":
            if not part:
                raise PluginError(f'invalid workspace path "{target}"', USAGE)
            parts.append(part)
    return ":".join(parts)


def _home(session: Session) -> str:
    """The user's own workspace, which a server that has such makes when it is asked for; meanwhile it says 429."""

    def look() -> Answer | None:
        answer = session.client.get(f"{CLUSTERS}root{WORKSPACES}/~")
        return None if answer.status == 429 else answer

    answer = until(look, _HOME_SECONDS)
    if answer is None:
        raise PluginError(f"the home workspace is not ready after {_HOME_SECONDS:g} s; try again", NOT_READY)
    if answer.status == 404:
        raise PluginError("this server has no home workspaces; a workspace is made with: kubectl ws create NAME")
    if answer.status != 200:
        raise answer.refusal()
    home = ServerPlace.of((answer.object.get("spec") or {}).get("URL"))
    if not home.path:
        raise PluginError("the home workspace has no URL yet; try again", NOT_READY)
    return session.look_up(home.path).path
