import pytest

from apiserver.endpoints.negotiation import OBJECT, PARTIAL, TABLE, Media, negotiate
from apiserver.model.errors import StatusError

KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    ("accept", "many", "expected"),
    [
        ("", True, Media(OBJECT)),
        ("*/*", True, Media(OBJECT)),
        ("application/json, */*", True, Media(OBJECT)),
        (KUBECTL, True, Media(TABLE)),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", True, Media(TABLE, "v1beta1")),
        (f"{PROTOBUF},application/json", False, Media(OBJECT, bare=True)),
        (PROTOBUF, False, Media(OBJECT, bare=True)),
        ("application/yaml", False, Media(OBJECT, yaml=True)),
        ("application/yaml;q=0.5,application/json", False, Media(OBJECT)),
        ("text/html,application/yaml", False, Media(OBJECT, yaml=True)),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", True, Media(PARTIAL)),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", True, Media(OBJECT)),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", False, Media(PARTIAL)),
        (f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1", False, Media(PARTIAL, bare=True)),
        ("application/json;as=Unknown;g=meta.k8s.io;v=v1,application/json", False, Media(OBJECT)),
    ],
)
def test_forms(accept: str, many: bool, expected: Media) -> None:
    assert negotiate(accept, many) == expected


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Table;v=v9;g=meta.k8s.io", "application/cbor"])
def test_what_does_not_exist_is_406(accept: str) -> None:
    with pytest.raises(StatusError) as raised:
        negotiate(accept, True)
    assert raised.value.code == 406


def test_a_resource_without_a_table_is_given_whole() -> None:
    assert negotiate(KUBECTL, True, tables=False) == Media(OBJECT)


def test_a_form_that_a_resource_has_not_is_told_from_an_unknown_media_type() -> None:
    with pytest.raises(StatusError, match=r"^only the following media types are accepted: application/json"):
        negotiate("application/json;as=Table;v=v1;g=meta.k8s.io", False, tables=False)
    with pytest.raises(StatusError, match=r"^406: Not Acceptable"):
        negotiate("text/html", False)
