"""Identifiers against kcp's published examples and the standard library."""

import uuid

from apiserver.model import identity
from apiserver.model.commits import own
from apiserver.model.keys import Key


def test_downstream_names_are_kcps() -> None:
    locator = identity.namespace_locator("root:org:ws", "us-west1", "syncTargetUID", "root:org:ws", "test")
    assert locator == (
        '{"syncTarget":{"cluster":"root:org:ws","name":"us-west1","uid":"syncTargetUID"},'
        '"cluster":"root:org:ws","namespace":"test"}'
    )
    assert identity.downstream_namespace(locator) == "kcp-33jbiactwhg0"


def test_keys_are_kcps() -> None:
    assert identity.sync_target_key("root:org:ws", "us-west1") == "6ohB8yeXhwqTQVuBzJRgqcRJTpRjX7yTZu5g5g"
    assert (
        identity.tenant_id("root:org:ws", "us-west1", "syncTargetUID", "root:org:ws")
        == "9Fn3Q4y5UDPmCOrYCujwdgCbD9SwOcKdcefYE7"
    )


def test_uids_are_version_5_uuids() -> None:
    key = Key("deployments.apps:9f86", "qvw2krkj1gseg229", "default", "web")
    made = identity.object_uid("fleet", key, own("c0ffee"))
    parsed = uuid.UUID(made)
    assert (parsed.version, parsed.variant) == (5, uuid.RFC_4122)
    assert made == str(
        uuid.uuid5(
            identity._NAMESPACE,
            "\0".join(("fleet", "qvw2krkj1gseg229", "deployments.apps", "default", "web", "c0ffee")),
        )
    )


def test_uids_differ_by_origin() -> None:
    first, second = (identity.object_uid("f", Key("configmaps", "root", "default", "a"), own(o)) for o in ("1", "2"))
    assert first != second


def test_logical_cluster_names() -> None:
    assert identity.logical_cluster_name("f", "root", own("1")) == "root"
    made = identity.logical_cluster_name("f", "root:a", own("1"))
    assert len(made) == 16
    assert made.isalnum()
    assert made == made.lower()


def test_the_first_digits_are_those_of_the_whole() -> None:
    for number in range(500):
        whole = identity.base36_sha224(str(number))
        for count in (1, 12, 16, 60):
            assert identity.base36_sha224(str(number), count) == whole[:count]
    for small in (0, 1, 35, 36, 36**5 - 1, 36**5, 36**16, 2**224 - 1):
        text = identity._encode(small.to_bytes(28, "big"), identity._BASE36)
        assert identity._first_of_base36(small, 16) == text[:16]


def test_base36_of_a_number_is_padded_and_cut() -> None:
    assert identity.base36(0, 3) == "000"
    assert identity.base36(36 * 36 + 35, 3) == "10z"
    assert identity.base36(36**3 + 1, 3) == "001"


def test_uids_of_many_are_those_of_each() -> None:
    some, origin = [f"c{number}" for number in range(200)], own("a1" * 20)
    for key in (Key("namespaces", "cluster", "", "default"), Key("workspaces.tenancy.kcp.io", "cluster", "", "name")):
        inside = [identity.object_uid("fleet", key._replace(cluster=each), origin) for each in some]
        named = [identity.object_uid("fleet", key._replace(name=each), origin) for each in some]
        assert [str(uuid.UUID(bytes=each)) for each in identity.uids_in("fleet", key, origin, some)] == inside
        assert [str(uuid.UUID(bytes=each)) for each in identity.uids_named("fleet", key, origin, some)] == named


def test_names_of_many_logical_clusters_are_those_of_each() -> None:
    paths, origin = [f"root:w{number}" for number in range(2000)], own("a" * 40)
    each = [identity.base36_sha224(f"fleet\0{path}\0{'a' * 40}", 16) for path in paths]
    assert identity.logical_cluster_names("fleet", paths, origin) == each


def test_names_of_logical_clusters_have_numbers_in_their_order() -> None:
    paths, origin = [f"root:w{number}" for number in range(2000)], own("a" * 40)
    by_number = sorted(zip(identity.name_orders("fleet", paths, origin), paths, strict=True))
    assert [path for _, path in by_number] == sorted(
        paths, key=lambda path: identity.logical_cluster_name("fleet", path, origin)
    )
