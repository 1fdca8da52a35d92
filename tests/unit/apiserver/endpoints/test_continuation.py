import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.endpoints import continuation
from apiserver.endpoints.continuation import Continuation
from apiserver.model.errors import StatusError
from apiserver.model.keys import Key

names = st.from_regex(r"[a-z0-9][a-z0-9.:-]{0,20}", fullmatch=True)


@given(
    cluster=names,
    namespace=names,
    name=names,
    revision=st.integers(1, 2**63),
    left=st.none() | st.integers(0, 2**62),
)
def test_what_was_encoded_is_decoded(cluster: str, namespace: str, name: str, revision: int, left: int | None) -> None:
    found = Continuation(revision, Key("widgets", cluster, namespace, name), left)
    for scope in ((cluster, namespace), (cluster, None), (None, None)):
        assert continuation.decode(continuation.encode(found, *scope), "widgets", *scope) == found


def test_cluster_scoped_across_workspaces() -> None:
    after = Key("namespaces", "root", "", "default")
    token = continuation.encode(Continuation(7, after, None), None, None)
    assert continuation.decode(token, "namespaces", None, None).after == after


def test_the_form_is_kubernetes() -> None:
    token = continuation.encode(Continuation(7, Key("configmaps", "root", "ns", "a"), None), "root", None)
    decoded = base64.urlsafe_b64decode(token + "==")
    assert decoded == b'{"v":"meta.k8s.io/v1","rv":7,"start":"ns/a\\u0000"}'


@pytest.mark.parametrize(
    "content",
    [
        b"nope",
        b"[]",
        b"{}",
        b'{"v":"meta.k8s.io/v0","rv":1,"start":"a"}',
        b'{"v":"meta.k8s.io/v1","rv":0,"start":"a"}',
        b'{"v":"meta.k8s.io/v1","rv":"x","start":"a"}',
        b'{"v":"meta.k8s.io/v1","rv":1,"start":"a/b/c/d"}',
        b'{"v":"meta.k8s.io/v1","rv":1,"start":""}',
        b'{"v":"meta.k8s.io/v1","rv":1,"start":"a\\u0000b\\u0000"}',
        b'{"v":"meta.k8s.io/v1","rv":1e300,"start":"a"}',
        b'{"v":"meta.k8s.io/v1","rv":-2,"start":"a"}',
        b'{"v":"meta.k8s.io/v1","rv":1,"start":"a","left":-1}',
        b'{"v":"meta.k8s.io/v1","rv":1,"start":"a","left":"many"}',
    ],
)
def test_others_are_400(content: bytes) -> None:
    with pytest.raises(StatusError) as raised:
        continuation.decode(base64.urlsafe_b64encode(content).decode(), "widgets", "root", "ns")
    assert raised.value.code == 400
