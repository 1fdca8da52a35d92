"""A workspace's name as a user's, and every door by which somebody might come in with one."""

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver.auth import signers
from apiserver.auth.accounts import Account
from apiserver.auth.authn import Authenticator
from apiserver.auth.impersonation import impersonated
from apiserver.auth.peer import Peer
from apiserver.auth.user import AUTHENTICATED, MASTERS, PRIVILEGED, AccessDecision, User
from apiserver.auth.workspaces import as_user, is_workspaces, passes_for_workspace
from apiserver.model.errors import StatusError
from apiserver.registry.kinds import kubernetes_builtins

NAMES = ["system:workspace:root", "system:workspace:root:shop", "system:workspaces", "system:workspaces:root:shop"]
"""What no credentials may carry, be it as user or as group."""
ADMIN = User("admin", (MASTERS, AUTHENTICATED))


def test_a_workspace_is_in_the_groups_of_those_above_it() -> None:
    groups = ("system:workspaces", "system:workspaces:root", "system:workspaces:root:shop")
    assert as_user("root:shop:web") == User("system:workspace:root:shop:web", groups)
    assert as_user("root") == User("system:workspace:root", ("system:workspaces",))


def test_what_it_is_called_is_nobody_elses() -> None:
    for path in ("root", "root:shop:web"):
        user = as_user(path)
        assert all(map(is_workspaces, (user.name, *user.groups)))
    for name in ("system:workspacesandmore", MASTERS, "workspace:root", AUTHENTICATED, "system:serviceaccounts"):
        assert not is_workspaces(name)


@pytest.mark.parametrize("name", NAMES)
def test_no_client_certificate_carries_it(name: str) -> None:
    for tls in (Peer(name, ends=time.time() + 60), Peer("ann", ("devs", name), ends=time.time() + 60)):
        with pytest.raises(StatusError) as raised:
            Authenticator().authenticate({"type": "http", "headers": [], "extensions": {"tls": tls}})
        assert raised.value.code == 401


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", ["t,{},1", 't,bob,1,"devs,{}"'])
def test_no_static_token_carries_it(tmp_path: Path, name: str, row: str) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text(f"good,ann,7\n{row.format(name)}\n")
    with pytest.raises(ValueError, match=rf"tokens\.csv:2: {name} is a workspace's name"):
        Authenticator(file)
    # One that comes later: the file is not read again, as with any other fault.
    file.write_text("good,ann,7\n")
    authenticator = Authenticator(file)
    file.write_text(f"good,ann,7\n{row.format(name)}\n")
    assert authenticator.review("t") is None
    assert authenticator.review("good") is not None


@pytest.mark.parametrize("name", NAMES)
def test_nobody_impersonates_it(name: str) -> None:
    """Not even system:masters: what a workspace may is asked with a SubjectAccessReview."""
    for headers in ([(b"impersonate-user", name.encode())],
                    [(b"impersonate-user", b"eve"), (b"impersonate-group", name.encode())]):  # fmt: skip
        with pytest.raises(StatusError, match="is a workspace's name") as raised:
            impersonated(ADMIN, headers, "ws", lambda _: AccessDecision(True))
        assert raised.value.code == 403


def test_no_service_account_is_called_so() -> None:
    user = Account("c", "system", "workspaces", "uid").user()
    assert not passes_for_workspace(user.name, user.groups)


class _Everything:
    """Rights of somebody who may do all."""

    def authorize(self, *_: Any, **__: Any) -> AccessDecision:
        return AccessDecision(True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("signer", [signers.CLIENTS, "example.com/other"])
@pytest.mark.parametrize("part", [NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME])
def test_no_signing_request_asks_for_it(name: str, signer: str, part: x509.ObjectIdentifier) -> None:
    with pytest.raises(StatusError, match="is a workspace's name") as raised:
        _ask(part, name, signer)
    assert raised.value.code == 403


@pytest.mark.parametrize(
    ("part", "name"),
    [
        *((NameOID.ORGANIZATION_NAME, group) for group in sorted(PRIVILEGED)),
        # It would be the account of that name in every workspace.
        (NameOID.COMMON_NAME, "system:serviceaccount:default:robot"),
        # It would be that account, or somebody of that workspace, to all who grant them something.
        (NameOID.COMMON_NAME, "system:kcp:serviceaccount:other:default:robot"),
        (NameOID.ORGANIZATION_NAME, "system:cluster:other"),
        (NameOID.ORGANIZATION_NAME, "apis.kcp.io:binding:system:authenticated"),
    ],
)
def test_no_signing_request_asks_for_what_counts_beyond_its_workspace(part: x509.ObjectIdentifier, name: str) -> None:
    with pytest.raises(StatusError, match="is not allowed") as raised:
        _ask(part, name, signers.CLIENTS)
    assert raised.value.code == 403
    _ask(part, name, "example.com/other")


def _ask(part: x509.ObjectIdentifier, name: str, signer: str) -> None:
    """As somebody who may do all."""
    kind = kubernetes_builtins().by_resource("certificates.k8s.io", "v1", "certificatesigningrequests")
    assert kind is not None
    vet = signers.guard(_Everything(), "root", ADMIN, kind, "")  # type: ignore[arg-type]
    request = base64.b64encode(_request(part, name)).decode()
    vet({"metadata": {"name": "r"}, "spec": {"signerName": signer, "request": request}}, None)


def _request(part: x509.ObjectIdentifier, name: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(part, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)
