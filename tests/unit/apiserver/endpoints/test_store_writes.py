"""Workspaces whose writes go to the store: by their type, or by the fleet's treeplane.yaml."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LAB = "labcluster000000"
QUOTAS = "/clusters/root:lab/api/v1/namespaces/default/resourcequotas"
MAPS = "/clusters/root:lab/api/v1/namespaces/default/configmaps"


@pytest.fixture
def lab(api: Any) -> Any:
    api.put_workspace("root:lab", LAB, writes="Store", builtins="Kubernetes", directory="workspaces/root/lab")
    api.put(
        api.manifest("v1 Namespace", "default", cluster=LAB),
        api.manifest("v1 ConfigMap", "declared", "default", LAB, data={"k": "1"},
                     annotations={"treeplane.dev/source-path": "workspaces/root/lab/a.yaml"}),
    )  # fmt: skip
    return api


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def test_what_is_created_is_a_runtime_object(lab: Any, run: Any) -> None:
    made = run(lab.call("POST", MAPS, config_map("mine")))
    assert made.status == 201
    assert made.json["metadata"]["annotations"] == {"kcp.io/cluster": LAB, "treeplane.dev/origin": "runtime"}
    assert run(lab.call("DELETE", f"{MAPS}/mine")).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_what_git_declares_is_refused_with_its_file(lab: Any, run: Any, method: str) -> None:
    kind = "application/merge-patch+json" if method == "PATCH" else ""
    body = b"" if method == "DELETE" else config_map("declared")
    refused = run(lab.call(method, f"{MAPS}/declared", body, kind=kind))
    assert refused.status == 403
    assert "edit workspaces/root/lab/a.yaml" in refused.message


def test_every_kind_of_kubernetes_is_there_and_only_there(lab: Any, run: Any) -> None:
    assert run(lab.get("/clusters/root:lab/apis/node.k8s.io/v1/runtimeclasses")).status == 200
    assert run(lab.get("/clusters/root:shop/apis/node.k8s.io/v1/runtimeclasses")).status == 404


def test_what_is_not_enforced_is_answered_with_a_warning(lab: Any, run: Any) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    made = run(lab.call("POST", QUOTAS, quota))
    assert made.status == 201
    assert "ResourceQuota is stored but not enforced yet" in made.headers["warning"]
    assert "warning" not in run(lab.call("POST", MAPS, config_map("plain"))).headers


def test_the_fleet_may_say_so_for_all(lab: Any, run: Any) -> None:
    maps = "/clusters/root:shop/api/v1/namespaces/default/configmaps"
    assert run(lab.call("POST", maps, config_map("mine"))).status == 403
    lab.put_fleet(loaded=True, writes="Store")
    assert run(lab.call("POST", maps, config_map("mine"))).status == 201


APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


@pytest.mark.parametrize(
    ("field", "value"),
    [("uid", "3"), ("deletionTimestamp", "2026-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 3)],
)
def test_what_only_the_server_sets_is_not_changed(lab: Any, run: Any, field: str, value: Any) -> None:
    made = run(lab.call("POST", MAPS, config_map("mine"))).json
    one, changed = f"{MAPS}/mine", {**made, "metadata": {**made["metadata"], field: value}}
    applied = {**config_map("mine"), "metadata": {"name": "mine", field: value}}
    for kind, query, body in (
        (MERGE, "", {"metadata": {field: value}}),
        (APPLY, "?fieldManager=me&force=true", applied),
    ):
        refused = run(lab.call("PATCH", f"{one}{query}", body, kind=kind))
        assert refused.status == 422
        assert refused.message.startswith(f'ConfigMap "mine" is invalid: metadata.{field}: Invalid value: ')
        assert refused.message.endswith(": field is immutable")
    assert run(lab.call("PUT", one, changed)).status == (409 if field == "uid" else 422)
    same = {"metadata": {"uid": made["metadata"]["uid"], "deletionTimestamp": None}, "data": {"a": "c"}}
    assert run(lab.call("PATCH", one, same, kind=MERGE)).status == 200


def test_what_an_apply_creates(lab: Any, run: Any) -> None:
    def apply(**metadata: Any) -> Any:
        sent = {**config_map(""), "metadata": metadata}
        return run(lab.call("PATCH", f"{MAPS}/new?fieldManager=me", sent, kind=APPLY))

    nameless = apply()
    assert (nameless.status, nameless.json["reason"]) == (400, "BadRequest")
    assert "the name of the object (new based on URL) was undeterminable" in nameless.message
    assert "details" not in nameless.json
    other = apply(name="new", uid="3")
    assert other.status == 409
    assert other.message.endswith("uid mismatch: the provided object specified uid 3, and no existing object was found")
    assert apply(name="new", resourceVersion="3").status == 201
    assert apply(name="new", resourceVersion="3").status == 409


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "invalid object type: /, Kind="),
        (b"kind: ConfigMap", "invalid object type: /, Kind=ConfigMap"),
        (b"apiVersion: v1\nkind: Secret", "invalid object type: /v1, Kind=Secret"),
        (b"apiVersion: apps/v1\nkind: ConfigMap", "invalid object type: apps/v1, Kind=ConfigMap"),
        (b"[]", "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into"),
        (b"a: {", "error decoding YAML: error converting YAML to JSON: "),
    ],
)  # fmt: skip
def test_applies_that_cannot_be_read(lab: Any, run: Any, body: bytes, why: str) -> None:
    refused = run(lab.call("PATCH", f"{MAPS}/new?fieldManager=me", body, kind=APPLY))
    assert refused.status == 400
    assert refused.message.startswith(why)


def test_a_prefix_of_a_name_is_judged_as_a_name(lab: Any, run: Any) -> None:
    wrong = {**config_map(""), "metadata": {"generateName": "A_"}}
    assert "metadata.generateName: Invalid value: " in run(lab.call("POST", MAPS, wrong)).message
    assert run(lab.call("POST", MAPS, {**wrong, "metadata": {"generateName": "a-"}})).status == 201


REQUESTS = "/clusters/root:lab/apis/certificates.k8s.io/v1/certificatesigningrequests"


def signed_request(*organizations: str, spoilt: bool = False) -> str:
    """A PKCS #10 request, as the field of an object has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    der = bytearray(made.public_bytes(serialization.Encoding.DER))
    der[-1] ^= spoilt
    text = base64.encodebytes(bytes(der)).decode()
    pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{text}-----END CERTIFICATE REQUEST-----\n"
    return base64.b64encode(pem.encode()).decode()


PEM = signed_request()


def verdict(kind: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "said"}], "certificate": "YQ=="}}


def test_a_certificate_request_names_who_asked_and_is_approved(lab: Any, run: Any) -> None:
    spec = {"request": PEM, "signerName": "example.com/some", "usages": ["client auth"], "username": "somebody"}
    sent = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"}}
    made = run(lab.call("POST", REQUESTS, {**sent, "spec": spec}))
    assert made.status == 201
    assert (made.json["spec"]["username"], made.json["spec"]["groups"][0]) == ("admin", "system:masters")
    patch = "application/merge-patch+json"
    approved = run(lab.call("PATCH", f"{REQUESTS}/r/approval", verdict("Approved"), kind=patch)).json
    [condition] = approved["status"]["conditions"]
    assert condition["type"] == "Approved"
    assert condition["lastUpdateTime"]
    assert "certificate" not in approved["status"]
    changed = {"metadata": {"labels": {"a": "b"}}, "spec": {"username": "else"}}
    assert run(lab.call("PATCH", f"{REQUESTS}/r", changed, kind=patch)).json["spec"] == made.json["spec"]
    refused = run(lab.call("PATCH", f"{REQUESTS}/r/approval", verdict("Denied"), kind=patch))
    assert refused.status == 422
    assert 'may not remove a condition of type "Approved"' in refused.message


def test_an_applied_certificate_request_names_who_asked_too(lab: Any, run: Any) -> None:
    spec = {"request": PEM, "signerName": "example.com/some", "usages": ["client auth"], "username": "somebody"}
    spec |= {"groups": ["system:nodes"], "uid": "1", "extra": {"k": ["v"]}}
    sent = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"}}
    apply = "application/apply-patch+yaml"
    made = run(lab.call("PATCH", f"{REQUESTS}/r?fieldManager=m", {**sent, "spec": spec}, kind=apply)).json["spec"]
    assert (made["username"], made["groups"][0]) == ("admin", "system:masters")
    assert not {"uid", "extra"} & made.keys()


def request(lab: Any, run: Any, name: str, **spec: Any) -> Any:
    sent = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name}}
    whole = {"request": PEM, "signerName": "example.com/some", "usages": ["client auth"], **spec}
    return run(lab.call("POST", REQUESTS, {**sent, "spec": whole}))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"request": "YQ=="}, 'spec.request: Invalid value: "YQ==": PEM block type must be CERTIFICATE REQUEST'),
        ({"usages": []}, "spec.usages: Required value"),
        ({"usages": ["fun"]}, 'spec.usages[0]: Unsupported value: "fun": supported values: "any", "cert sign"'),
        ({"usages": ["any", "any"]}, 'spec.usages[1]: Duplicate value: "any"'),
        ({"signerName": "some"}, "must be a fully qualified domain and path of the form 'example.com/signer-name'"),
        ({"signerName": "local/some"}, "should be a domain with at least two segments separated by dots"),
        ({"signerName": "example.com/_"}, 'Invalid value: "_": validating label "_": a lowercase RFC 1123'),
        ({"signerName": "kubernetes.io/legacy-unknown"}, "the legacy signerName is not allowed via this API version"),
        ({"expirationSeconds": 599}, "may not specify a duration less than 600 seconds (10 minutes)"),
        ({"request": signed_request(spoilt=True)}, "the signature is not of the request's own key"),
    ],
)
def test_certificate_requests_that_nobody_could_sign(lab: Any, run: Any, spec: dict[str, Any], why: str) -> None:
    refused = request(lab, run, "r", **spec)
    assert refused.status == 422
    assert why in refused.message


def test_who_settles_what_of_a_certificate_request(lab: Any, run: Any) -> None:
    request(lab, run, "r")
    patch, one = "application/merge-patch+json", f"{REQUESTS}/r"
    other = {"type": "Other", "status": "True"}
    seen = run(lab.call("PATCH", f"{one}/approval", {"status": {"conditions": [other]}}, kind=patch)).json
    assert [c["type"] for c in seen["status"]["conditions"]] == ["Other"]
    [stood] = seen["status"]["conditions"]
    refused = run(lab.call("PATCH", f"{one}/status", verdict("Approved"), kind=patch))
    assert "must contain at least one CERTIFICATE PEM block" in refused.message
    approved = {"status": {"conditions": verdict("Approved")["status"]["conditions"]}}
    refused = run(lab.call("PATCH", f"{one}/status", approved, kind=patch))
    assert 'updates may not add a condition of type "Approved"' in refused.message
    certificate = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n").decode()
    given = {"status": {"certificate": certificate, "conditions": [{**stood, "lastTransitionTime": None}]}}
    signed = run(lab.call("PATCH", f"{one}/status", given, kind=patch))
    assert signed.status == 200
    assert signed.json["status"] == {"certificate": certificate, "conditions": [stood]}
    again = base64.b64encode(base64.b64decode(certificate) + b"\n").decode()
    refused = run(lab.call("PATCH", f"{one}/status", {"status": {"certificate": again}}, kind=patch))
    assert "updates may not modify existing certificate content" in refused.message
    both = [{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}]
    refused = run(lab.call("PATCH", f"{one}/approval", {"status": {"conditions": both}}, kind=patch))
    assert "Approved and Denied conditions are mutually exclusive" in refused.message


def test_nobody_asks_for_masters(lab: Any, run: Any) -> None:
    masters = signed_request("system:masters")
    refused = request(lab, run, "r", request=masters, signerName="kubernetes.io/kube-apiserver-client")
    assert refused.status == 403
    assert "signer with system:masters group is not allowed" in refused.message
    assert request(lab, run, "r", request=masters).status == 201  # another signer may know another such group


@pytest.mark.parametrize("signer", ["example.com/some", "example.com/*"])
def test_verdicts_and_certificates_are_for_those_who_hold_the_signer(lab: Any, run: Any, signer: str) -> None:
    request(lab, run, "r")
    group, patch, one = "certificates.k8s.io", "application/merge-patch+json", f"{REQUESTS}/r"
    held = [{"verbs": ["patch"], "apiGroups": [group], "resources": ["*"]}]
    lab.allow("ann", *held, cluster=LAB)
    approved = {"status": {"conditions": verdict("Approved")["status"]["conditions"]}}
    failed = {"status": {"conditions": [*approved["status"]["conditions"], {"type": "Failed", "status": "True"}]}}
    for path, body, verb in (("approval", approved, "approve"), ("status", failed, "sign")):
        refused = run(lab.call("PATCH", f"{one}/{path}", body, kind=patch, user="ann"))
        assert refused.status == 403
        assert refused.message.endswith(f'user not permitted to {verb} requests with signerName "example.com/some"')
        held.append({"verbs": [verb], "apiGroups": [group], "resources": ["signers"], "resourceNames": [signer]})
        lab.allow("ann", *held, cluster=LAB)
        assert run(lab.call("PATCH", f"{one}/{path}", body, kind=patch, user="ann")).status == 200


def test_an_autoscaler_is_one_object_in_two_versions(lab: Any, run: Any) -> None:
    path = "/clusters/root:lab/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    memory = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "metrics": [{"type": "Resource", "resource": memory}]}
    sent = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    assert run(lab.call("POST", path.format("v2"), sent)).status == 201
    old = run(lab.get(f"{path.format('v1')}/h")).json
    assert "metrics" not in old["spec"]
    old["spec"]["targetCPUUtilizationPercentage"] = 50
    assert run(lab.call("PUT", f"{path.format('v1')}/h", old)).status == 200
    new = run(lab.get(f"{path.format('v2')}/h")).json
    assert [m["resource"]["name"] for m in new["spec"]["metrics"]] == ["memory", "cpu"]
    assert not [a for a in new["metadata"]["annotations"] if a.startswith("autoscaling.alpha")]


def test_what_comes_with_commits_alone_is_refused(lab: Any, run: Any) -> None:
    sent = {"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "cluster"}}
    refused = run(lab.call("POST", "/clusters/root:lab/apis/core.kcp.io/v1alpha1/logicalclusters", sent))
    assert refused.status == 403
    assert "add a manifest to workspaces/root/lab" in refused.message


def test_health_has_kube_apiservers_checks(lab: Any, run: Any) -> None:
    hook = "poststarthook/scheduling/bootstrap-system-priority-classes"
    said = run(lab.get("/clusters/root:lab/readyz?verbose")).body.decode()
    assert f"[+]{hook} ok\n" in said
    assert "[+]poststarthook/storage-readiness ok\n" in said
    assert run(lab.get(f"/clusters/root:lab/readyz/{hook}")).body == b"ok"
    assert run(lab.get(f"/clusters/root:shop/readyz/{hook}")).status == 404
