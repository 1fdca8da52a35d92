"""A provider and its consumers, behind the API alone.

root:db offers Widgets and claims ConfigMaps and Secrets; root:shop and root:b take Widgets, root:shop accepts that its
ConfigMaps are seen, and of its Secrets those labelled for it; root:c takes nothing. `pat` may use the view.
"""

from __future__ import annotations

from typing import Any

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.storage.protocol import Put

DB, B, C = "dbcluster0000000", "bcluster00000000", "ccluster00000000"
VIEW = f"/services/apiexport/{DB}/widgets/clusters"
WIDGETS = "/apis/example.io/v1/widgets"
CONFIGMAPS, SECRETS = "/api/v1/configmaps", "/api/v1/secrets"
V2 = "apis.kcp.io/v1alpha2"
HASH = "1dent1ty"
RBAC = "rbac.authorization.k8s.io/v1"
FIELDS = {"spec": {"size": {"type": "integer"}}, "status": {"seen": {"type": "boolean"}}}
SHAPE = {
    "type": "object",
    "properties": {part: {"type": "object", "properties": fields} for part, fields in FIELDS.items()},
}
PICKED = {"matchLabels": {"for": "db"}}
CONTENT = [{"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "verbs": ["*"]},
           {"nonResourceURLs": ["/"], "verbs": ["access"]}]  # fmt: skip
"""Rules: what a provider needs to look at consumers."""

Object = dict[str, Any]


def claim(resource: str, *verbs: str, **more: Any) -> Object:
    return {"group": "", "resource": resource, "identityHash": "", "verbs": list(verbs or ("*",)), **more}


def accepted(resource: str, *verbs: str, state: str = "Accepted", **more: Any) -> Object:
    return claim(resource, *verbs, **{"selector": {"matchAll": True}, **more}, state=state)


class ProviderFleet:
    """`api`, `run`: the fixtures of these names."""

    def __init__(self, api: Any, run: Any) -> None:
        self.api, self.run = api, run
        self.shop = api.SHOP
        api.delete(api.manifest("v1 ConfigMap", "s", "default", self.shop))
        for path, cluster in (("root:db", DB), ("root:shop", self.shop), ("root:b", B), ("root:c", C)):
            api.put_workspace(path, cluster, writes="Store", served=True)
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        version = {"name": "v1", "served": True, "storage": True, "schema": SHAPE, "subresources": {"status": {}}}
        spec = {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [version]}
        schema = api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.widgets.example.io", "", DB, spec=spec)
        api.put(schema)
        self.export(claim("configmaps"), claim("secrets"))
        self.bind(self.shop, accepted("configmaps"), accepted("secrets", selector=PICKED))
        self.bind(B)
        for cluster in (self.shop, B, C):
            self.put("v1 Namespace", "default", cluster, namespace="")
        self.grant(DB, "pat", CONTENT)

    def export(self, *claims: Object) -> int:
        resource = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}}
        spec, status = {"resources": [resource], "permissionClaims": list(claims)}, {"identityHash": HASH}
        return self.api.put(self.api.manifest(f"{V2} APIExport", "widgets", "", DB, spec=spec, status=status))

    def bind(self, cluster: str, *claims: Object, name: str = "widgets", **more: Any) -> Object:
        schema = {"name": "v1.widgets.example.io", "UID": "uid-v1.widgets.example.io", "identityHash": HASH}
        bound = [{"group": "example.io", "resource": "widgets", "schema": schema, "storageVersions": ["v1"]}]
        status = {"phase": "Bound", "apiExportClusterName": DB, "boundResources": bound, **more}
        spec = {"reference": {"export": {"path": "root:db", "name": "widgets"}}, "permissionClaims": list(claims)}
        made = self.api.manifest(f"{V2} APIBinding", name, "", cluster, spec=spec, status=status)
        self.api.put(made)
        return made

    def grant(self, cluster: str, user: str, rules: list[Object]) -> None:
        role = self.api.manifest(f"{RBAC} ClusterRole", user, "", cluster, rules=rules)
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"kind": "ClusterRole", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        self.api.put(role, self.api.manifest(f"{RBAC} ClusterRoleBinding", user, "", cluster, subjects=[subject],
                                             roleRef=reference))  # fmt: skip

    def put(self, kind: str, name: str, cluster: str, *, namespace: str = "default", **content: Any) -> Object:
        made = self.api.manifest(kind, name, namespace, cluster, **content)
        self.api.put(made)
        return made

    def widget(self, name: str, cluster: str, size: int = 1) -> Object:
        """Where the binding has its objects stored."""
        made = self.api.manifest("example.io/v1 Widget", name, "default", cluster, spec={"size": size})
        self.store(made)
        return made

    def store(self, widget: Object) -> None:
        metadata = widget["metadata"]
        key = Key(f"widgets.example.io:{HASH}", metadata["annotations"]["kcp.io/cluster"], "default", metadata["name"])
        self.api.store.write(Put(key, codec.encode(widget))).result(60)

    def call(self, method: str, path: str, body: Any = b"", *, user: str = "pat", **more: Any) -> Any:
        return self.run(self.api.call(method, path, body, user=user, **more))

    def get(self, path: str, *, user: str = "pat", **more: Any) -> Any:
        return self.call("GET", path, user=user, **more)

    def names(self, path: str) -> list[tuple[str, str]]:
        reply = self.get(path)
        assert reply.status == 200, reply.body
        return [(i["metadata"]["annotations"]["kcp.io/cluster"], i["metadata"]["name"]) for i in reply.json["items"]]
