"""Secrets from keys/secrets/: served like any other of their workspace, never from git."""

from __future__ import annotations

import base64

from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model.identity import object_uid
from apiserver.registry import tree
from reconciler.loading.secrets import SecretFiles

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: target}\nstringData: {kubeconfig: VALUE}\n"


def value(fleet: LoadedFleet, path: str = "root:a") -> str:
    found = fleet.get(path, "secrets", "target")
    return base64.b64decode(found["data"]["kubeconfig"]).decode()


def test_a_kept_secret_is_served(fleet: LoadedFleet) -> None:
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "one"))
    assert fleet.written() == ["+secrets/root:a/default/target"]
    assert value(fleet) == "one"
    assert fleet.find("root:b", "secrets", "target") is None


def test_its_identity_is_its_workspaces(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "one"))
    metadata = fleet.get("root:a", "secrets", "target")["metadata"]
    record = fleet.record("root:a")
    assert metadata["uid"] == object_uid(fleet.fleet().fleet, fleet.key("root:a", "secrets", "target"), record.origin)
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    # Nothing of it is in what goes to git.
    assert "secrets" not in str(tree.summary(fleet.store, record.path))


def test_a_changed_one_is_changed_and_the_same_again_writes_nothing(fleet: LoadedFleet) -> None:
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "one"))
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "two"))
    assert fleet.written() == ["~secrets/root:a/default/target"]
    assert value(fleet) == "two"
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "two"))
    assert fleet.all_changes() == []


def test_commits_do_not_touch_it(fleet: LoadedFleet) -> None:
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "one"))
    fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    assert fleet.written() == ["~configmaps/root:a/default/app"]
    fleet.commit({f"{A}/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"})
    assert value(fleet) == "one"
    assert fleet.written() == ["+namespaces/root:a//x"]


def test_it_is_there_from_the_first_load_on(empty: LoadedFleet) -> None:
    directory = empty.keys / "secrets" / "root:a"
    directory.mkdir(parents=True)
    (directory / "s.yaml").write_text(SECRET.replace("VALUE", "one"))
    assert empty.secrets.changed() == {"root:a"}
    empty.begin()
    assert value(empty) == "one"
    path = empty.get("root:a", "secrets", "target")["metadata"]["annotations"]["treeplane.dev/source-path"]
    assert path == "keys/secrets/root:a/s.yaml"


def test_a_file_that_goes_deletes_nothing(fleet: LoadedFleet) -> None:
    """The directory may just not be there; what is missing is a condition where it is needed."""
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "one"))
    fleet.keep_secret("root:a", None)
    assert fleet.all_changes() == []
    assert value(fleet) == "one"


def test_one_that_changed_while_no_server_ran_is_served_with_the_next_start(fleet: LoadedFleet) -> None:
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "one"))
    file = fleet.keys / "secrets" / "root:a" / "target.yaml"
    for said, judged in (("one", set()), ("two", {"root:a"})):
        file.write_text(SECRET.replace("VALUE", said))
        fleet.secrets = SecretFiles(fleet.keys)
        fleet.loader = fleet.new_loader()
        assert fleet.secrets.not_served(fleet.store) == judged
        fleet.recheck(fleet.secrets.not_served(fleet.store))
        assert value(fleet) == said
        assert fleet.secrets.not_served(fleet.store) == set()
    file.unlink()
    assert SecretFiles(fleet.keys).not_served(fleet.store) == set()


def test_one_whose_workspace_is_held_is_tried_with_each_start(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/bad.yaml": "kind: ["})
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "one"))
    assert fleet.secrets.not_served(fleet.store) == {"root:a"}
    fleet.commit({f"{A}/bad.yaml": None})
    assert value(fleet) == "one"
    assert fleet.secrets.not_served(fleet.store) == set()


def test_one_that_git_declares_too_is_an_error(fleet: LoadedFleet) -> None:
    fleet.keep_secret("root:a", SECRET.replace("VALUE", "one"))
    fleet.commit({f"{A}/secret.yaml": SECRET.replace("VALUE", "git")})
    assert set(fleet.held()) == {"root:a"}
    assert value(fleet) == "one"


def test_nothing_of_it_is_in_errors(fleet: LoadedFleet) -> None:
    fleet.keep_secret(
        "root:a", SECRET.replace("stringData: {kubeconfig: VALUE}", "data: {kubeconfig: 'hunter2 is no base64'}")
    )
    assert fleet.find("root:a", "secrets", "target") is None
    assert "hunter2" not in str(fleet.held())
