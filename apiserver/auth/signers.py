"""Who may say what about a CertificateSigningRequest: what kube-apiserver's admission checks of each.

Whoever approves or denies one holds the verb `approve` on its signer, whoever gives it a certificate or conditions the
verb `sign`; on `example.com/*` either counts for all signers of that domain. Nobody asks for system:masters or the
like, for the name of a ServiceAccount, or for that of a workspace. Called by the write path through guards.py.
"""

from __future__ import annotations

import base64
from typing import Any

from apiserver.auth.escalation import Rights
from apiserver.auth.pki import SigningRequest, read_request
from apiserver.auth.user import BINDING_PREFIX, PRIVILEGED, SERVICE_ACCOUNT_PREFIX, Attributes, User
from apiserver.auth.workspaces import is_workspaces
from apiserver.model.errors import Cause, forbidden, invalid
from apiserver.registry.behaviours.certificates import RESOURCE
from apiserver.registry.rest_options import Vet, vet_nothing
from apiserver.registry.served import ServedKind

Object = dict[str, Any]

REQUESTS = RESOURCE
CLIENTS = "kubernetes.io/kube-apiserver-client"
_GROUP = "certificates.k8s.io"
_BORNE = ("system:kcp:serviceaccount:", "system:cluster:", BINDING_PREFIX)
"""What workspaces call somebody who comes from another one, or who binds their exports."""


def guard(rights: Rights, cluster: str, user: User, kind: ServedKind, subresource: str) -> Vet:
    """The Vet for writes of requests. Raises StatusError 403, and 422 for one that is not signed by its own key."""

    def may(verb: str, signer: str) -> bool:
        domain, _, _ = signer.partition("/")
        asked = (Attributes(verb, _GROUP, "*", "signers", name=name) for name in (signer, f"{domain}/*"))
        return any(rights.authorize(cluster, user, attributes).allowed for attributes in asked)

    def demand(verb: str, live: Object) -> None:
        signer = live["spec"].get("signerName", "")
        if not may(verb, signer):
            why = f'user not permitted to {verb} requests with signerName "{signer}"'
            raise forbidden(kind.resource, kind.group, live["metadata"]["name"], why)

    def vet(new: Object, live: Object | None) -> None:
        if live is None:
            _check_new(kind, new)
        elif subresource == "approval":
            demand("approve", live)
        elif (new.get("status") or {}) != (live.get("status") or {}):
            demand("sign", live)

    return vet if subresource in ("", "approval", "status") else vet_nothing


def _check_new(kind: ServedKind, new: Object) -> None:
    name, spec = new["metadata"]["name"], new["spec"]
    try:
        request: SigningRequest = read_request(base64.b64decode(spec["request"]))
    except ValueError as error:
        causes = [Cause("FieldValueInvalid", f"Invalid value: {error}", "spec.request")]
        raise invalid(kind.kind, kind.group, name, causes) from None
    taken = next(filter(is_workspaces, (*request.common_names, *request.organizations)), "")
    if taken:
        # Of any signer: whose key it is that signs for one is not known here.
        why = f"{taken} is a workspace's name, which no certificate may carry"
        raise forbidden(kind.resource, kind.group, name, why)
    if spec.get("signerName") != CLIENTS:
        return
    groups = PRIVILEGED.intersection(request.organizations)
    if groups:
        why = f"use of {CLIENTS} signer with {min(groups)} group is not allowed"
        raise forbidden(kind.resource, kind.group, name, why)
    borne = next((n for n in (*request.common_names, *request.organizations) if n.startswith(_BORNE)), "")
    if borne:
        why = f"use of {CLIENTS} signer with {borne}, which is nobody's to bear, is not allowed"
        raise forbidden(kind.resource, kind.group, name, why)
    account = next((n for n in request.common_names if n.startswith(SERVICE_ACCOUNT_PREFIX)), "")
    if account:
        # In other workspaces it would be the account of that name there.
        why = f"use of {CLIENTS} signer with the name of a ServiceAccount ({account}) is not allowed"
        raise forbidden(kind.resource, kind.group, name, why)
