"""Headers that name somebody else, or look as if they did, and credentials: strategies for property tests."""

from __future__ import annotations

import json
from urllib.parse import quote

from hypothesis import strategies as st
from support.guesses import Known, either
from support.tenancy import bearer
from support.tenants import ANN, DEVS, EVE, OPS, ROB, SAM, SUE, Words

MASTERS = "system:masters"
SYSTEM = (
    MASTERS, "system:kcp:admin", "system:kcp:logical-cluster-admin", "system:kcp:external-logical-cluster-admin",
    "system:treeplane:syncers", "system:kcp:tenancy:workspace-bootstrapper", "system:authenticated", DEVS, OPS,
    "system:serviceaccounts", "system:workspaces", "system:workspaces:root:bee",
)  # fmt: skip
SCOPES, WARRANT = "authentication.kcp.io/scopes", "authorization.kcp.io/warrant"
EXTRAS = (SCOPES, WARRANT, "authentication.kcp.io/cluster-name", "authentication.kcp.io/serviceaccount", "other")
FRONT = ("X-Remote-User", "X-Remote-Group", "X-Remote-Extra-Scopes", "X-Kcp-Internal-Deep-SubjectAccessReview",
         "X-Forwarded-Client-Cert", "X-Forwarded-User", "X-HTTP-Method-Override", "X-Method-Override", "Cluster",
         "X-Kubernetes-Cluster", "Host", "X-Original-URL", "Forwarded")  # fmt: skip


def impersonations(known: Known) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    """Headers that name somebody else; also such as only look like it."""
    theirs = known.foreign.clusters
    users = st.sampled_from([ROB, "bea", "admin", ANN, SAM, EVE, "system:admin", "system:anonymous", Words("p")("user"),
                             "system:serviceaccount:default:robot", "system:workspace:root:bee", "",
                             f"system:kcp:serviceaccount:{theirs['root:bee']}:default:robot"])  # fmt: skip
    groups = st.sampled_from(SYSTEM)
    scopes = st.sampled_from([f"cluster:{c}" for c in (*theirs.values(), "root", "*")]) | st.just(
        "cluster:root,cluster:*"
    )
    warrants = st.builds(
        lambda user, group, more: json.dumps({"user": user, "groups": group, "extra": more}), users,
        st.lists(groups, max_size=2),
        st.dictionaries(st.sampled_from(EXTRAS), st.lists(scopes, max_size=2), max_size=1),
    )  # fmt: skip
    keys = st.sampled_from(EXTRAS).flatmap(
        lambda k: st.sampled_from([k.replace("/", "%2F"), k.upper(), quote(k, safe=""), k.replace("/", "%252f"), k])
    )
    extra = st.tuples(keys.map("Impersonate-Extra-{}".format), scopes | warrants | st.sampled_from([*theirs.values()]))
    header = st.one_of(
        st.tuples(st.sampled_from(["Impersonate-User", "impersonate-user", "IMPERSONATE-USER"]), users),
        st.tuples(st.just("Impersonate-Group"), groups), extra, st.tuples(st.just("Impersonate-Uid"), users),
        st.tuples(st.sampled_from(FRONT), users | groups | scopes | st.just("true")),
    )  # fmt: skip
    some = st.lists(header, min_size=1, max_size=4).map(tuple)
    led = st.tuples(users, some).map(lambda both: (("Impersonate-User", both[0]), *both[1]))
    return either(some, led, led)


def callers(known: Known) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    names = (ANN, ANN, ANN, ANN, known.robot, ROB, SUE, EVE)
    return st.sampled_from([*((bearer(name),) for name in names), ()])
