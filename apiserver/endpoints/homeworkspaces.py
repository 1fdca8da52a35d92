"""GET of the Workspace `~` in root: the home of whoever asks, made when it is first asked for.

Called by kube.py. A home stands in no workspace and is otherwise as any that is made through the API where writes go to
the store: the reconciler makes it (reconciler/controllers/homes) when a request has left word of it. Until it is Ready
the answer is 429, after which clients of Kubernetes ask again. In kcp's words.
"""

from __future__ import annotations

import asyncio

import orjson

from apiserver.auth.user import ANONYMOUS, Attributes
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.forms import YAML, as_yaml, form_of
from apiserver.endpoints.negotiation import negotiate
from apiserver.endpoints.realms import fleet
from apiserver.model import paths
from apiserver.model.errors import StatusError, forbidden
from apiserver.model.identity import home_cluster_name
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import codec
from apiserver.registry.holding import check_holder
from apiserver.registry.tree import WorkspaceRecord, workspace_at
from apiserver.storage.protocol import NEVER, Conflict, Put

NAME = "~"
_COMING = frozenset({"Scheduling", "Initializing"})
_DENIED = (
    'User "{}" cannot create resource "workspaces" in API group "tenancy.kcp.io" at the cluster scope: '
    "workspace access not permitted"
)


def is_asked_for(asking: Asking, verb: str) -> bool:
    """Whether this is the GET that gives a home."""
    place = asking.place
    named = place.name == NAME and not place.subresource and asking.kind.storage == WORKSPACES
    return named and verb == "get" and asking.world.path == paths.ROOT


async def get(asking: Asking) -> None:
    """Raises StatusError 403, and 429 until it is Ready."""
    user, store = asking.user, asking.world.realm.store
    if user.name == ANONYMOUS or user.name != asking.bearer.name:
        raise _denied(asking)  # somebody from elsewhere shares this name with others
    record = workspace_at(store, paths.home(user.name))
    if record is None:
        await _leave_word(asking)
        raise StatusError(429, "TooManyRequests", "Creating the home workspace", retry_after=1)
    exchange = asking.exchange
    media = negotiate(exchange.header(b"accept"), many=False)
    key, value, revision = _workspace(asking, record)
    body = form_of(asking.view, media, exchange).one(key, value, revision)
    await exchange.answer(200, as_yaml(body) if media.yaml else body, YAML if media.yaml else b"application/json")


async def _leave_word(asking: Asking) -> None:
    user, world = asking.user, asking.world
    asked = Attributes("create", "tenancy.kcp.io", "v1alpha1", "workspaces", name=NAME)
    if not world.realm.authorizer.authorize(world.name, user, asked).allowed:
        raise _denied(asking)
    check_holder(world.realm.store)
    word = Key(Internal.HOME, home_cluster_name(user.name), "", "")
    try:
        await asyncio.wrap_future(world.realm.store.write(Put(word, orjson.dumps(user.as_json()), NEVER)))
    except Conflict:
        return  # it was left before


def _workspace(asking: Asking, record: WorkspaceRecord) -> tuple[Key, bytes, int]:
    """The home as a Workspace of root, which it is not: what is known of it stands in its LogicalCluster."""
    store = asking.world.realm.store
    found = store.get(Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster"))
    cluster = orjson.loads(found.value) if found is not None else {}
    if found is None or (cluster.get("status") or {}).get("phase") in _COMING:
        raise StatusError(429, "TooManyRequests", "Creating the home workspace", retry_after=1)
    metadata = {"name": NAME, "creationTimestamp": cluster["metadata"]["creationTimestamp"]}
    where, _, name = record.type.rpartition(":")
    url = f"{fleet(asking.world.realm).url}/clusters/{record.path}"
    spec = {"type": {"name": name, "path": where}, "cluster": record.cluster, "URL": url}
    made = {
        "kind": "Workspace",
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "metadata": metadata,
        "spec": spec,
        "status": cluster.get("status") or {},
    }
    return Key(WORKSPACES, "", "", NAME), codec.encode(made), found.revision


def _denied(asking: Asking) -> StatusError:
    return forbidden("workspaces", "tenancy.kcp.io", NAME, _DENIED.format(asking.user.name))
