"""Kubernetes' protobuf bodies, put together by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.endpoints import protobuf
from apiserver.model.errors import StatusError

KIND = "application/vnd.kubernetes.protobuf"


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (2**64 - 1))
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw) + field(3, "") + field(4, "")


def metadata(name: str) -> bytes:
    """As Go writes it: empty strings, an absent time and a zero generation are there."""
    return field(1, field(1, name) + field(2, "") + field(3, "") + field(5, "") + field(7, 0) + field(8, b""))


def test_a_configmap() -> None:
    raw = metadata("a") + field(2, field(1, "k") + field(2, "v")) + field(2, field(1, "empty")) + field(4, 0)
    assert protobuf.decode(body("v1", "ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"k": "v", "empty": ""},
        "immutable": False,
    }


def test_bytes_numbers_and_special_forms() -> None:
    secret = protobuf.decode(body("v1", "Secret", metadata("s") + field(2, field(1, "k") + field(2, b"\0\1"))))
    assert secret["data"] == {"k": "AAE="}
    time = field(1, 1767225600) + field(2, 123456000)
    lease = field(2, field(1, "me") + field(2, -1) + field(4, time))
    found = protobuf.decode(body("coordination.k8s.io/v1", "Lease", metadata("l") + lease))
    assert found["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": -1,
        "renewTime": "2026-01-01T00:00:00.123456Z",
    }
    port = field(1, "http") + field(2, "TCP") + field(3, 80) + field(4, field(1, 1) + field(2, 0) + field(3, "web"))
    service = protobuf.decode(body("v1", "Service", metadata("s") + field(2, field(1, port + field(5, 0)))))
    assert service["spec"]["ports"] == [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": "web"}]


def test_inlined_fields_stand_in_the_parent() -> None:
    volume = field(1, "v") + field(2, field(19, field(1, field(1, "cm"))))
    pod = protobuf.decode(body("v1", "Pod", metadata("p") + field(2, field(1, volume))))
    assert pod["spec"]["volumes"] == [{"name": "v", "configMap": {"name": "cm"}}]


def test_delete_options_come_in_any_group() -> None:
    found = protobuf.decode(body("apps/v1", "DeleteOptions", field(4, "Background")))
    assert found["propagationPolicy"] == "Background"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"k8s\0\xff",
        body("v1", "Nope", b""),
        body("v1", "ConfigMap", b"\x0a\xff"),
        body("v1", "ConfigMap", b"\xff" * 20),
        body("v1", "ConfigMap", field(1, field(1, b"\xff\xfe"))),
        body("v1", "ConfigMap", field(2, 7)),
    ],
)
def test_what_cannot_be_read_is_400(data: bytes) -> None:
    with pytest.raises(StatusError) as raised:
        protobuf.decode(data)
    assert raised.value.code == 400


@given(st.binary(max_size=60))
def test_nothing_else_is_raised(raw: bytes) -> None:
    for kind in (("v1", "Pod"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")):
        try:
            protobuf.decode(body(*kind, raw))
        except StatusError as error:
            assert error.code == 400


def test_kubectl_auth_can_i(api: Any, run: Any) -> None:
    attributes = field(1, field(1, "default") + field(2, "get") + field(3, "") + field(5, "configmaps"))
    raw = metadata("") + field(2, attributes) + field(3, field(1, 0) + field(2, ""))
    review = body("authorization.k8s.io/v1", "SelfSubjectAccessReview", raw)
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    reply = run(api.call("POST", path, review, kind=KIND, accept=f"{KIND},application/json"))
    assert (reply.status, reply.headers["content-type"]) == (201, "application/json")
    assert reply.json["status"]["allowed"] is True
