"""Two tenants of one server who have nothing to do with each other, for tests of what one may learn of the other.

ann rules root:ann. bea rules root:bee, below which nobody else is let in, and every word of hers is a canary
(`Words`): one that stands in no answer to anybody else. What both have is files of one repository and what is made of
them through the API.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

Object = dict[str, Any]

ANN, BEA, ADMIN, EVE, ROB, SUE, SAM = "ann", "bea", "admin", "eve", "rob", "sue", "sam"
DEVS, OPS = "devs", "ops"
TOKENS = "".join(f'{name},{name},{name}-uid,"{"system:masters" if name == ADMIN else ""}"\n'
                 for name in (ANN, BEA, ADMIN, EVE, ROB, SUE))  # fmt: skip
"""Static tokens: each user's is their name. In root:ann rob may read ConfigMaps and nothing else, the group devs
Secrets, sue may impersonate both, and the group ops may everything; in root:bee the group devs and sam may everything.
eve may nothing."""

RBAC = "rbac.authorization.k8s.io"
APIS, TENANCY = "apis.kcp.io/v1alpha2", "tenancy.kcp.io/v1alpha1"
HERS, BEES = "workspaces/root/ann", "workspaces/root/bee"
FINALIZERS = ["example.io/hold"]


def thing(api_version: str, kind: str, name: str, namespace: str = "", **content: Any) -> Object:
    """`labels`, `annotations`: metadata's."""
    metadata: Object = {"name": name} | ({"namespace": namespace} if namespace else {})
    metadata |= {key: content.pop(key) for key in ("labels", "annotations", "finalizers") if key in content}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


class Words:
    """Canaries: `words("map")` is a name that nothing else has, `words.kind("map")` one for kinds. Those of two
    `variants` (one letter) are as long, and stand at the same place in any order."""

    def __init__(self, variant: str) -> None:
        self.variant = variant
        self.told: set[str] = set()

    def __call__(self, what: str) -> str:
        found = f"zq{what}q7{self.variant}"
        self.told.add(found)
        return found

    def kind(self, what: str) -> str:
        return f"Z{self(what)[1:]}"

    def encoded(self, what: str) -> str:
        """As the data of a Secret."""
        found = base64.b64encode(self(what).encode()).decode()
        self.told.add(found.lower())
        return found


def owner(*users: str, role: str = "cluster-admin", groups: Sequence[str] = (), robot: bool = False) -> Object:
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": user} for user in users]
    subjects += [{"apiGroup": RBAC, "kind": "Group", "name": group} for group in groups]
    subjects += [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}] * robot
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return thing(f"{RBAC}/v1", "ClusterRoleBinding", f"{role}s", roleRef=reference, subjects=subjects)


def definition(group: str, kind: str, text: str, field: str, **more: Any) -> Object:
    """The spec of a CustomResourceDefinition; `text` describes, `field` is what an object has."""
    properties = {field: {"type": "string", "description": text}}
    schema = {"type": "object", "description": text, "x-kubernetes-preserve-unknown-fields": True,
              "properties": {"spec": {"type": "object", "properties": properties}}}  # fmt: skip
    plural = f"{kind.lower()}s"
    version: Object = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
               "subresources": {"status": {}}}  # fmt: skip
    version["additionalPrinterColumns"] = [{"name": text, "type": "string", "jsonPath": f".spec.{field}"}]
    names: Object = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    names["categories"] = [field]
    return {"group": group, "scope": "Cluster", "names": names, "versions": [version], **more}


def crd(spec: Object) -> Object:
    name = f"{spec['names']['plural']}.{spec['group']}"
    return thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, spec=spec)


def resource_schema(spec: Object) -> Object:
    name = f"v1.{spec['names']['plural']}.{spec['group']}"
    versions = [{**v, "schema": v["schema"]["openAPIV3Schema"]} for v in spec["versions"]]
    return thing("apis.kcp.io/v1alpha1", "APIResourceSchema", name, spec={**spec, "versions": versions})


def export(spec: Object, name: str, **more: Any) -> Object:
    group, plural = spec["group"], spec["names"]["plural"]
    resource = {"group": group, "name": plural, "schema": f"v1.{plural}.{group}", "storage": {"crd": {}}}
    return thing(APIS, "APIExport", name, spec={"resources": [resource], **more})


def binding(path: str, name: str, **more: Any) -> Object:
    return thing(APIS, "APIBinding", name, spec={"reference": {"export": {"path": path, "name": name}}, **more})


def workspace(kind: str = "", path: str = "root", **more: Any) -> Object:
    spec = {"type": {"name": kind, "path": path}} if kind else {}
    return {"apiVersion": TENANCY, "kind": "Workspace", "spec": {**spec, **more.pop("spec", {})}, **more}


WIDGETS = definition("ann.example.io", "Widget", "a widget", "size")
GIFTS = definition("gifts.example.io", "Gift", "a gift", "ribbon")
GOODS = definition("goods.example.io", "Good", "a good", "weight")
_ALSO = ("owner.json", "space.json", "map.json", "same.json", "crd.json", "one.json", "schema.json", "export.json")
"""Files of root:bee that root:bee:shop has as well."""
CLAIMS = [{"group": "", "resource": "configmaps", "verbs": ["*"]}, {"group": "", "resource": "secrets", "verbs": ["*"]}]
MOUNTED = {"experimental.tenancy.kcp.io/is-mount": "true"}


def files(objects: dict[str, Object]) -> dict[str, str]:
    return {path: json.dumps(obj) for path, obj in objects.items()}


def of_ann(writes: str) -> dict[str, str]:
    """The fleet without bea. `writes`: where those of the API go in ordinary workspaces. ann and bea may ask for their
    homes in root, and use its types; that is all they may."""
    kinds = [thing(TENANCY, "WorkspaceType", "lab", spec={"writes": writes})]
    kinds.append(thing(TENANCY, "WorkspaceType", "gold", spec={"writes": writes, "initializer": True}))
    entering = {"nonResourceURLs": ["/"], "verbs": ["access"]}
    home = {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspaces"], "resourceNames": ["~"],
            "verbs": ["get", "create"]}  # fmt: skip
    use = {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"], "verbs": ["use"]}
    maps = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    widget = thing("ann.example.io/v1", "Widget", "w", annotations=MOUNTED, spec={"size": "1"})
    reference = {"ref": {"apiVersion": "ann.example.io/v1", "kind": "Widget", "name": "w"}}
    return files({
        "workspaces/root/lab.json": kinds[0],
        "workspaces/root/gold.json": kinds[1],
        "workspaces/root/homes.json": thing(f"{RBAC}/v1", "ClusterRole", "home", rules=[entering, home, use]),
        "workspaces/root/home.json": owner(ANN, BEA, role="home"),
        f"{HERS}/workspace.json": workspace("lab"),
        f"{HERS}/owner.json": owner(ANN, groups=[OPS]),
        f"{HERS}/reader.json": thing(f"{RBAC}/v1", "ClusterRole", "reader", rules=[entering, maps]),
        f"{HERS}/readers.json": owner(ROB, role="reader"),
        f"{HERS}/peeper.json": thing(f"{RBAC}/v1", "ClusterRole", "peeper", rules=[
            entering, {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]),
        f"{HERS}/peepers.json": owner(role="peeper", groups=[DEVS]),
        f"{HERS}/lender.json": thing(f"{RBAC}/v1", "ClusterRole", "lender", rules=[
            entering,
            {"apiGroups": [""], "resources": ["users"], "resourceNames": [ROB], "verbs": ["impersonate"]},
            {"apiGroups": [""], "resources": ["groups"], "resourceNames": [DEVS], "verbs": ["impersonate"]}]),
        f"{HERS}/lenders.json": owner(SUE, role="lender"),
        f"{HERS}/map.json": thing("v1", "ConfigMap", "mine", "default", data={"a": "b"}),
        f"{HERS}/robot.json": thing("v1", "ServiceAccount", "robot", "default"),
        f"{HERS}/robots.json": owner(role="admin", robot=True),
        f"{HERS}/crd.json": crd(WIDGETS),
        f"{HERS}/w.json": widget,
        f"{HERS}/schema.json": resource_schema(GIFTS),
        f"{HERS}/export.json": export(GIFTS, "gifts", permissionClaims=CLAIMS),
        f"{HERS}/type.json": thing(TENANCY, "WorkspaceType", "hers", spec={"initializer": True, "terminator": True}),
        f"{HERS}/door/workspace.json": workspace(spec={"mount": reference}),
        f"{HERS}/kid/workspace.json": workspace("lab"),
        f"{HERS}/kid/owner.json": owner(ANN),
        f"{HERS}/kid/map.json": thing("v1", "ConfigMap", "mine", "default", data={"a": "b"}),
        f"{HERS}/kid/binding.json": binding("root:ann", "gifts"),
        f"{HERS}/kid/gift.json": thing("gifts.example.io/v1", "Gift", "mine", spec={"ribbon": "red"}),
    })  # fmt: skip


def stored() -> list[tuple[str, Object]]:
    """What ann makes through the API, with the collections: much of the same, which no file declares."""
    apis, rbac = f"/apis/{APIS}", f"/apis/{RBAC}/v1"
    return [
        ("/api/v1/namespaces/default/configmaps", thing("v1", "ConfigMap", "mine", data={"a": "b"})),
        ("/api/v1/namespaces/default/secrets", thing("v1", "Secret", "hers", data={"k": "aGVycw=="})),
        ("/api/v1/namespaces/default/serviceaccounts", thing("v1", "ServiceAccount", "robot")),
        (f"{rbac}/clusterroles", thing(f"{RBAC}/v1", "ClusterRole", "reader", rules=[])),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(WIDGETS)),
        ("/apis/ann.example.io/v1/widgets", thing("ann.example.io/v1", "Widget", "w", spec={"size": "1"})),
        ("/apis/apis.kcp.io/v1alpha1/apiresourceschemas", resource_schema(GIFTS)),
        (f"{apis}/apiexports", export(GIFTS, "gifts", permissionClaims=CLAIMS)),
        (f"{apis}/apibindings", binding("root:ann:made", "gifts")),
        ("/apis/gifts.example.io/v1/gifts", thing("gifts.example.io/v1", "Gift", "mine", spec={"ribbon": "red"})),
        (f"/apis/{TENANCY}/workspacetypes", thing(TENANCY, "WorkspaceType", "hers", spec={"initializer": True})),
        (f"/apis/{TENANCY}/workspaces", thing(TENANCY, "Workspace", "kid")),
        (f"/apis/{TENANCY}/workspaces", {**workspace("hers", "root:ann"), "metadata": {"name": "new"}}),
    ]


def of_bea(words: Words, *, consumes: bool) -> dict[str, str]:
    """What is pushed for bea. `consumes`: besides `of_guest`."""
    kind = definition(f"{words('group')}.example.io", words.kind("kind"), words("text"), words("field"))
    name, group = kind["names"]["kind"], kind["group"]
    shared = definition(f"{words('offer')}.example.io", words.kind("good"), words("what"), words("part"))
    one = thing(f"{group}/v1", name, words("one"), annotations=MOUNTED, labels={words("label"): words("value")},
                spec={words("field"): words("content")})  # fmt: skip
    mount = {"ref": {"apiVersion": f"{group}/v1", "kind": name, "name": words("one")}}
    child = f"{BEES}/{words('child')}"
    found = {
        f"{BEES}/workspace.json": workspace("lab"),
        f"{BEES}/owner.json": owner(BEA, words("user"), SAM, groups=[DEVS], robot=True),
        f"{BEES}/space.json": thing("v1", "Namespace", words("space"), labels={words("label"): words("value")}),
        f"{BEES}/map.json": thing("v1", "ConfigMap", words("map"), words("space"), data={words("key"): words("data")}),
        f"{BEES}/same.json": thing("v1", "ConfigMap", "mine", "default", data={"a": words("mine")}),
        f"{BEES}/robot.json": thing("v1", "ServiceAccount", "robot", "default"),
        f"{BEES}/crd.json": crd(kind),
        f"{BEES}/one.json": one,
        f"{BEES}/schema.json": resource_schema(shared),
        f"{BEES}/export.json": export(shared, words("export"), permissionClaims=CLAIMS),
        f"{BEES}/gifts.json": export(shared, "gifts"),
        f"{BEES}/type.json": thing(TENANCY, "WorkspaceType", words("type"), spec={"initializer": True}),
        f"{BEES}/hers.json": thing(TENANCY, "WorkspaceType", "hers", spec={"initializer": True}),
        f"{child}/workspace.json": workspace("lab", metadata={"labels": {words("label"): words("value")}}),
        f"{child}/owner.json": owner(BEA),
        f"{child}/binding.json": binding("root:bee", words("export")),
        f"{child}/good.json": thing(f"{shared['group']}/v1", shared["names"]["kind"], words("goods"),
                                    spec={words("part"): words("whole")}),
        f"{BEES}/{words('sleeping')}/workspace.json": workspace(
            "lab", metadata={"annotations": {"core.kcp.io/inactive": "true"}}),
        f"{BEES}/{words('door')}/workspace.json": workspace(spec={"mount": mount}),
        f"{BEES}/{words('bad')}/workspace.json": workspace("lab"),
        f"{BEES}/{words('bad')}/{words('file')}.json": thing("v1", words.kind("wrong"), words("wrongs")),
        f"{BEES}/sites/workspace.json": workspace("lab"),
        f"{BEES}/sites/apis.json": binding("root:compute", "workload.kcp.io"),
        f"{BEES}/sites/places.json": binding("root:compute", "scheduling.kcp.io"),
        f"{BEES}/sites/site.json": thing("workload.kcp.io/v1alpha1", "SyncTarget", words("site"),
                                         spec={"connection": {"embedded": {}}}),
        f"{BEES}/sites/place.json": thing("scheduling.kcp.io/v1alpha1", "Location", words("place"), spec={
            "resource": {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}}),
    }  # fmt: skip
    if consumes:
        found[f"{BEES}/guest/owner.json"] = owner(BEA, words("user"))
        found[f"{BEES}/guest/map.json"] = thing("v1", "ConfigMap", words("map"), "default", data={"a": words("data")})
        found |= {f"{BEES}/shop/{name}": found[f"{BEES}/{name}"] for name in _ALSO}
        allowed = {"apiGroups": [GOODS["group"]], "resources": ["*"], "verbs": ["get", "list", "watch", "create"]}
        found[f"{BEES}/shop/policy.json"] = thing(f"{RBAC}/v1", "ClusterRole", words("policy"), rules=[allowed])
        bound = (f"apis.kcp.io:binding:{name}" for name in (ANN, words("customer")))
        found[f"{BEES}/shop/policies.json"] = owner(*bound, role=words("policy"))
    return files(found)


def of_guest() -> dict[str, str]:
    """What ann may see of bea's: a workspace that takes what she offers, and what she takes of another."""
    return files({
        f"{BEES}/workspace.json": workspace("lab"),
        f"{BEES}/guest/workspace.json": workspace("lab"),
        f"{BEES}/guest/binding.json": binding("root:ann", "gifts"),
        f"{BEES}/guest/gift.json": thing("gifts.example.io/v1", "Gift", "given", spec={"ribbon": "blue"}),
        f"{BEES}/shop/workspace.json": workspace("lab"),
        f"{BEES}/shop/goods.json": resource_schema(GOODS),
        f"{BEES}/shop/offer.json": export(GOODS, "goods", maximalPermissionPolicy={"local": {}}),
        f"{HERS}/kid/goods.json": binding("root:bee:shop", "goods"),
    })  # fmt: skip
