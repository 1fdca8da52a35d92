"""What somebody sends who wants to know of another tenant, or to reach them: whole requests for property tests.

Drawn part by part from what is right, what names things of the other (guesses), and what only looks like it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import product
from urllib.parse import quote

from hypothesis import strategies as st
from support.borrowing import MASTERS, callers, impersonations
from support.guesses import OWN, Known, either
from support.hostilewrites import creations, patches
from support.tenancy import Sent, bearer
from support.tenants import ANN, APIS, RBAC, TENANCY, Words

from apiserver.endpoints.paths import VIEWS

METHODS = (*["GET"] * 10, "HEAD", "POST", "PUT", *["PATCH"] * 4, *["DELETE"] * 2, "OPTIONS", "CONNECT", "get")
FORMS = (
    "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "application/yaml",
    "application/vnd.kubernetes.protobuf", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "text/html", "*/*",
)  # fmt: skip
KINDS = (
    ("api/v1", "configmaps", True), ("api/v1", "secrets", True), ("api/v1", "serviceaccounts", True),
    ("api/v1", "events", True), ("api/v1", "namespaces", False), (f"apis/{RBAC}/v1", "clusterroles", False),
    (f"apis/{RBAC}/v1", "clusterrolebindings", False), (f"apis/{RBAC}/v1", "rolebindings", True),
    ("apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    (f"apis/{TENANCY}", "workspaces", False), (f"apis/{TENANCY}", "workspacetypes", False),
    ("apis/core.kcp.io/v1alpha1", "logicalclusters", False), ("apis/core.kcp.io/v1alpha1", "shards", False),
    (f"apis/{APIS}", "apiexports", False), (f"apis/{APIS}", "apibindings", False),
    ("apis/apis.kcp.io/v1alpha1", "apiresourceschemas", False), ("apis/apis.kcp.io/v1alpha1", "apibindings", False),
    ("apis/apis.kcp.io/v1alpha1", "apiexportendpointslices", False),
    ("apis/topology.kcp.io/v1alpha1", "partitions", False),
    ("apis/gifts.example.io/v1", "gifts", False),
    ("apis/goods.example.io/v1", "goods", False),
    ("apis/ann.example.io/v1", "widgets", False),
    ("apis/workload.kcp.io/v1alpha1", "synctargets", False), ("apis/scheduling.kcp.io/v1alpha1", "locations", False),
)  # fmt: skip
HERS = {
    "configmaps": "mine", "secrets": "hers", "serviceaccounts": "robot", "namespaces": "default", "workspaces": "kid",
    "clusterroles": "reader", "clusterrolebindings": "cluster-admins", "workspacetypes": "hers", "gifts": "mine",
    "customresourcedefinitions": "widgets.ann.example.io", "logicalclusters": "cluster", "apiexports": "gifts",
    "apibindings": "gifts", "apiresourceschemas": "v1.gifts.gifts.example.io", "widgets": "w",
}  # fmt: skip
"""What ann has of each kind."""
DOCUMENTS = ("", "/", "/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", "/metrics", "/healthz",
             "/readyz?verbose", "/livez",
             "/.well-known/openid-configuration", "/openid/v1/jwks", "/api/v1", "/nope")  # fmt: skip
BARE = ("/git/fleet.git/info/refs?service=git-upload-pack", "/git/fleet.git/info/refs?service=git-receive-pack",
        "/git/fleet.git/git-upload-pack", "/git/../metrics", "/services", "/services/syncer/root:bee/x/clusters/*/api",
        "/commits/", "/debug/pprof", "/shards/root/clusters/root:bee/api", "//clusters/root:bee/api")  # fmt: skip


def worlds(known: Known) -> st.SearchStrategy[str]:
    foreign = st.sampled_from(known.worlds)
    odd = foreign.flatmap(lambda w: st.sampled_from([
        quote(w, safe=""), f"{w}%2F..", f"../{w}", f"root:ann/../{w}", f"/{w}", w.upper(), f"{w}%00",
        f"root:ann:door/clusters/{w}",
    ]))  # fmt: skip
    return either(st.sampled_from(OWN), foreign, foreign, foreign, odd)


def tour(known: Known) -> Iterator[Sent]:
    """Every place, and everything that may be read there: what ann sees if she looks around."""
    worlds, views = known.worlds, sorted(VIEWS)
    hers = [*(f"/clusters/{world}" for world in sorted({*OWN, "root"})), "/services/apiresourceschema/root:ann:kid"]
    hers += [f"/services/apiexport/root:ann/gifts/clusters/{world}" for world in ("*", *OWN[3:4], "root:bee:guest")]
    hers += [f"/services/{view}/{known.own}/clusters/{world}" for view in views for world in ("*", "root:ann:made:new")]
    others = [f"/clusters/{world}" for world in worlds]
    others += [f"/services/apiexport/{world}/gifts/clusters/*" for world in worlds]
    others += [f"/services/apiexport/root:bee:shop/goods/clusters/{world}" for world in ("*", "root:ann:kid")]
    hers += [f"/services/apiresourceschema/root:ann:kid/clusters/{world}" for world in ("root:bee:shop", "root:ann")]
    others += [f"/services/apiexport/root:ann/gifts/clusters/{world}" for world in worlds]
    others += [f"/services/apiresourceschema/root:ann:kid/clusters/{world}" for world in worlds]
    others += [f"/services/apiresourceschema/{world}" for world in worlds]
    others += [f"/services/{view}/{program}/clusters/*" for view in views for program in known.programs]
    kinds = [f"/{api}/{resource}" for api, resource, _ in (*KINDS, *known.kinds)]
    apis = sorted({f"{prefix}/{api}" for api, _, _ in (*KINDS, *known.kinds) for prefix in ("", "/openapi/v3")})
    few = (
        "/api/v1/configmaps",
        f"/apis/{APIS}/apibindings",
        "/apis/core.kcp.io/v1alpha1/logicalclusters",
        "/apis",
        "/version",
    )
    for base, rests in ((hers, [*kinds, *apis, *DOCUMENTS]), (others, few)):
        for where, _, query in (f"{at}{rest}".partition("?") for at in base for rest in rests):
            yield Sent("GET", quote(where, safe="/:*~@%"), query, (bearer(ANN),))
    begin = known.foreign.revisions[0]
    pages = ["limit=1", f"resourceVersion={begin}&resourceVersionMatch=Exact", f"labelSelector={Words('p')('label')}"]
    pages += [f"limit=1&continue={token}" for token in (*known.foreign.tokens, "{continue}")]
    watches = ["watch=1", f"watch=1&resourceVersion={begin}", "watch=1&allowWatchBookmarks=true&sendInitialEvents=true"]
    for at, queries in (
        (hers, pages),
        (["/clusters/root:ann", "/services/apiexport/root:ann/gifts/clusters/*"], watches),
    ):
        yield from (
            Sent("GET", base + kind, query, (bearer(ANN),)) for base, kind, query in product(at, kinds, queries)
        )


def at_home(known: Known) -> st.SearchStrategy[str]:
    """Where ann may ask."""
    consumers = st.sampled_from(["*", "root:ann:kid", known.foreign.clusters.get("root:bee:guest", "none")])
    return either(
        *[st.sampled_from(OWN).map("/clusters/{}".format)] * 3,
        consumers.map("/services/apiexport/root:ann/gifts/clusters/{}".format),
        st.just("/services/apiresourceschema/root:ann:kid"),
        st.just("/services/apiresourceschema/root:ann:kid/clusters/root:ann"),
        st.just("/clusters/root"),
        st.just(f"/services/initializingworkspaces/{known.own}/clusters/*"),
    )


def bases(known: Known) -> st.SearchStrategy[str]:
    """Where a request is asked."""
    world, export_of = worlds(known), st.sampled_from(known.exports)
    views = either(
        st.builds("/services/apiexport/{}/{}/clusters/{}".format, world, export_of, world),
        st.builds("/services/apiexport/root:ann/gifts/clusters/{}".format, world),
        st.builds("/services/apiresourceschema/{}".format, world),
        st.builds("/services/apiresourceschema/{}/clusters/{}".format, world, world),
        st.builds("/services/{}/{}/clusters/{}".format, st.sampled_from(sorted(VIEWS)),
                  st.sampled_from(known.programs), world),
        st.builds("/targets/{}:{}".format, world, st.sampled_from(known.names)),
    )  # fmt: skip
    return either(world.map("/clusters/{}".format), views)


@st.composite
def places(draw: st.DrawFn, known: Known) -> str:
    """What is asked for there, of resources."""
    api, resource, namespaced = draw(st.sampled_from([*KINDS, *known.kinds]))
    if draw(st.integers(0, 9)) == 0:
        resource += f":{draw(st.sampled_from([*known.foreign.hashes, '', 'x']))}"
    path = f"/{api}/watch" if draw(st.integers(0, 14)) == 0 else f"/{api}"
    if namespaced and draw(st.booleans()):
        path += f"/namespaces/{draw(st.sampled_from(['default', 'default', Words('p')('space'), 'none']))}"
    path += f"/{resource}"
    if draw(st.booleans()):
        path += f"/{draw(st.sampled_from(known.names))}"
        path += draw(st.sampled_from(["", "", "", "/status", "/token", "/scale", "/content", "/finalize"]))
    return path


def hers() -> st.SearchStrategy[str]:
    """The same, of what ann has."""

    def path(kind: tuple[str, str, bool], name: str) -> str:
        api, resource, namespaced = kind
        inside = "namespaces/default/" if namespaced and name else ""
        return f"/{api}/{inside}{resource}" + (f"/{HERS[resource]}{name}" if name else "").replace("/.", "")

    there = st.sampled_from([kind for kind in KINDS if kind[1] in HERS])
    return st.builds(path, there, st.sampled_from(["", "", "/.", "/status"]))


def documents(known: Known) -> st.SearchStrategy[str]:
    apis = st.sampled_from([each[0] for each in (*KINDS, *known.kinds)])
    return either(
        st.sampled_from(DOCUMENTS), apis.map("/{}".format), apis.map("/openapi/v3/{}?hash=00".format),
        apis.map(lambda api: "/" + api.rpartition("/")[0]),
    )  # fmt: skip


def parameters(known: Known) -> st.SearchStrategy[list[str]]:
    """`{continue}` and `{revision}` stand for what the last answers said."""
    theirs = known.foreign
    forged = [json.dumps({"v": "meta.k8s.io/v1", "rv": rv, "start": f"{start}\0"}) for rv in (-1, theirs.revisions[0])
              for start in (theirs.clusters["root:bee"] + "/default/a", "root/a", "a", "default/a")]  # fmt: skip
    tokens = [*theirs.tokens, *(base64.urlsafe_b64encode(each.encode()).decode().rstrip("=") for each in forged)]
    revisions = [*map(str, (*theirs.revisions[:3], theirs.revisions[0] - 1, 0, 1, 1 << 62)), "{revision}"]
    values: dict[str, list[str]] = {
        "limit": ["1", "2", "500"], "continue": [*tokens, "{continue}", "{continue}"], "resourceVersion": revisions,
        "resourceVersionMatch": ["Exact", "NotOlderThan"], "watch": ["1", "true"],
        "sendInitialEvents": ["true", "false"],
        "allowWatchBookmarks": ["true"], "labelSelector": [Words("p")("label"), "a=b", f"!{Words('p')('label')}"],
        "fieldSelector": [f"metadata.name={n}" for n in known.names] + ["metadata.namespace=default"],
        "dryRun": ["All"], "includeObject": ["Object", "Metadata", "None"], "pretty": ["1"], "fieldManager": ["m"],
        "force": ["true"], "propagationPolicy": ["Foreground", "Orphan"], "verbose": [""],
        "cluster": list(known.worlds),
        "access_token": ["admin"], "token": ["admin"], "as": [MASTERS], "impersonate-user": ["admin"],
    }  # fmt: skip
    one = st.sampled_from(sorted(values)).flatmap(
        lambda k: st.sampled_from(values[k]).map(lambda v: f"{k}={quote(v, '{}')}")
    )
    return either(st.just([]), st.lists(one, max_size=3))


@st.composite
def requests(draw: st.DrawFn, known: Known) -> Sent:
    """Whole requests: at home and elsewhere, mostly as who ann is."""
    who = draw(either(*[st.just((bearer(ANN),))] * 3, callers(known)))
    more = draw(either(*[st.just(())] * 4, impersonations(known)))
    accept = draw(st.sampled_from([(), (), *((("Accept", form),) for form in FORMS)]))
    home = draw(st.sampled_from([True, False]))
    base = at_home(known) if home else bases(known)
    if draw(st.sampled_from([False, False, False, False, True])):
        rest, obj = draw(creations(known))
        at = draw(either(*[st.sampled_from(OWN).map("/clusters/{}".format)] * 3, base))
        query = draw(st.sampled_from(["", "", "dryRun=All"]))
        return Sent("POST", at + rest, query, (*who, *more, *accept), json.dumps(obj).encode())
    asked = either(*[hers()] * (4 if home else 1), places(known), places(known), documents(known))
    path = draw(st.sampled_from(BARE)) if draw(st.integers(0, 19)) == 0 else draw(base) + draw(asked)
    path, _, query = path.partition("?")
    method = draw(st.sampled_from(METHODS))
    kind, body = draw(patches(known)) if method in ("PATCH", "PUT", "POST") else ("", None)
    media = (("Content-Type", kind),) if kind else ()
    query = "&".join([*([query] if query else []), *draw(parameters(known))])
    return Sent(method, path, query, (*who, *more, *accept, *media), json.dumps(body).encode() if kind else b"")
