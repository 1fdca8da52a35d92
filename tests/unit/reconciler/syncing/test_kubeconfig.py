"""Of a tenant's kubeconfig only data counts."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.syncing.errors import Unusable
from reconciler.syncing.kubeconfig import Access, read

PEM = base64.b64encode(b"PEM").decode()
GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "b", "user": "c", "namespace": "d"}}],
    "clusters": [{"name": "b", "cluster": {"server": "https://api.example.com:6443/k8s/", "tls-server-name": "kube"}}],
    "users": [{"name": "c", "user": {"token": "s3cr3t"}}],
}


def changed(section: str = "", name: str = "", value: Any = None) -> bytes:
    content = copy.deepcopy(GOOD)
    if section:
        [entry] = content[section]
        entry[section.removesuffix("s")][name] = value
    return json.dumps(content).encode()


def test_data_is_read() -> None:
    content = copy.deepcopy(GOOD)
    content["clusters"][0]["cluster"]["certificate-authority-data"] = PEM
    content["users"][0]["user"] |= {"client-certificate-data": PEM, "client-key-data": PEM}
    wanted = Access("api.example.com", 6443, "/k8s", "kube", b"PEM", b"PEM", b"PEM", "s3cr3t")
    assert read(json.dumps(content).encode()) == wanted
    assert read(yaml.safe_dump(content).encode()) == wanted
    assert "s3cr3t" not in repr(wanted)


def test_addresses() -> None:
    def address(server: str) -> tuple[str, int, str]:
        found = read(changed("clusters", "server", server))
        return found.host, found.port, found.path

    assert address("https://[fd00::1]:6443") == ("fd00::1", 6443, "")
    assert address("https://10.0.0.1") == ("10.0.0.1", 443, "")
    assert address("https://host/targets/root:infra:web") == ("host", 443, "/targets/root:infra:web")


REFUSED: list[tuple[str, str, Any]] = [
    (
        "users",
        "exec",
        {"command": "sh", "args": ["-c", "touch /tmp/x"], "apiVersion": "client.authentication.k8s.io/v1"},
    ),
    ("users", "auth-provider", {"name": "gcp", "config": {"cmd-path": "sh"}}),
    ("users", "client-certificate", "/etc/passwd"),
    ("users", "client-key", "/etc/shadow"),
    ("users", "tokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
    ("users", "username", "admin"),
    ("users", "password", "hunter2"),
    ("users", "as", "system:admin"),
    ("users", "as-groups", ["system:masters"]),
    ("users", "as-uid", "1"),
    ("users", "as-user-extra", {"a": ["b"]}),
    ("clusters", "certificate-authority", "/etc/ssl/ca.pem"),
    ("clusters", "insecure-skip-tls-verify", True),
    ("clusters", "proxy-url", "socks5://169.254.169.254"),
]


@pytest.mark.parametrize(("section", "name", "value"), REFUSED, ids=[name for _, name, _ in REFUSED])
def test_what_would_have_another_effect_is_refused_by_name(section: str, name: str, value: Any) -> None:
    with pytest.raises(Unusable, match=f"`{name}`: .* ?`?(use|name|make|only)") as raised:
        read(changed(section, name, value))
    assert raised.value.reason == "KubeconfigRefused"
    assert "hunter2" not in str(raised.value)


WORDS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1)


@given(st.sampled_from(["users", "clusters"]), WORDS, st.integers(1) | WORDS)
def test_nothing_unknown_is_passed_over(section: str, name: str, value: Any) -> None:
    known = {"server", "token", "tls-server-name", "extensions", "disable-compression"}
    known |= {"certificate-authority-data", "client-certificate-data", "client-key-data"}
    if name in known:
        return
    with pytest.raises(Unusable, match="is refused for"):
        read(changed(section, name, value))


def test_what_has_no_effect_is_not_looked_at() -> None:
    content = copy.deepcopy(GOOD)
    content["users"].append({"name": "other", "user": {"exec": {"command": "sh"}}})
    content["clusters"].append({"name": "other", "cluster": {"proxy-url": "http://proxy"}})
    content["contexts"].append({"name": "other", "context": {"cluster": "other", "user": "other"}})
    content["clusters"][0]["cluster"] |= {"insecure-skip-tls-verify": False, "extensions": [{"name": "x"}]}
    content["users"][0]["user"]["username"] = ""
    assert read(json.dumps(content).encode()) == read(changed())


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("http://api.example.com", "http"), ("api.example.com", "not a URL"), ("https://", "not a URL"),
        ("https://u:p@api.example.com", "nothing else"), ("https://a/?b", "nothing else"), ("https://a/#b", "nothing"),
        ("https://a b", "not a URL"), ("https://a:99999", "not a URL"), ("https://a/x\r\nHost: b", "nothing else"),
        ("file:///etc/passwd", "not a URL"), ("unix:///run/x", "not a URL"), ("https://[::1", "not a URL"),
        ("https://é.example", "not a URL"), ("https://a/\x7f", "nothing else"),
    ],
)  # fmt: skip
def test_addresses_that_are_none(server: str, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        read(changed("clusters", "server", server))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"a: [", "not YAML"), (b"[]", "not a mapping"), (b"{}", "current-context"), (b"", "not a mapping"),
        (b"\xff\xfe\xfd", "not "), (b'{"current-context": 3}', "`current-context` is not text"),
        (b"a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" + b"".join(
            b"c%d: &c%d [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n" % (n, n, *[b"b" if n == 0 else b"c%d" % (n - 1)] * 8)
            for n in range(12)), "not YAML"),
        (json.dumps({**GOOD, "clusters": GOOD["clusters"] * 2}).encode(), "not exactly one cluster"),
        (json.dumps({**GOOD, "users": []}).encode(), "not exactly one user"),
        (json.dumps({**GOOD, "users": {"c": {}}}).encode(), "not exactly one user"),
        (changed("users", "token", "a\nb"), "no token has"),
        (changed("users", "token", ["a"]), "`token` is not text"),
        (changed("users", "token", ""), "no credentials"),
        (changed("users", "client-key-data", PEM), "go together"),
        (changed("users", "client-key-data", "%%"), "not base64"),
        (changed("clusters", "tls-server-name", "a b"), "`tls-server-name`"),
    ],
)  # fmt: skip
def test_what_is_no_kubeconfig(content: bytes, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        read(content)
