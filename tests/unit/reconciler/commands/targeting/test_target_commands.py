"""`treeplane target` with a cluster and a server that are played: what is written, refused and told."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from support.sealing import AgeKey
from support.tokens import token

from apiserver.model import marks
from reconciler.commands.line import target as line
from reconciler.commands.targeting import adding, seen
from reconciler.commands.targeting.admincluster import AppliedObject, name_of
from reconciler.commands.targeting.seen import SeenNamespace, SeenPlacement, TargetSeen
from reconciler.loading.changeset import ChangeKind

INFRA = "workspaces/root/infra"
BINDING = """apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: workload.kcp.io}
spec: {reference: {export: {path: "root:compute", name: workload.kcp.io}}}
"""
LOCATION = """apiVersion: scheduling.kcp.io/v1alpha1
kind: Location
metadata: {name: asia}
spec: {instanceSelector: {matchLabels: {region: ap}}}
"""
FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\n",
    "workspaces/root/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    f"{INFRA}/workspace.yaml": "",
    f"{INFRA}/apis.yaml": BINDING,
    f"{INFRA}/locations.yaml": LOCATION,
}
SECRET_OF_ADMIN = "YWRtaW4ga2V5"


class PlayedCluster:
    """A cluster that has what was applied to it."""

    objects: dict[str, Any]
    lasts: float

    def __init__(self, *_: Any) -> None: ...

    def sign_in(self) -> None: ...

    def config(self) -> Any:
        cluster = {"server": "https://8.8.8.8:6443"}
        user = {"client-key-data": SECRET_OF_ADMIN, "exec": {"command": "login"}}
        return {"clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}]}

    def apply(self, wanted: list[Any]) -> list[AppliedObject]:
        done = self.would_apply(wanted)
        self.objects.update({name_of(each): each for each in wanted})
        return done

    def would_apply(self, wanted: list[Any]) -> list[AppliedObject]:
        def change(each: Any) -> ChangeKind:
            before = self.objects.get(name_of(each))
            return (
                ChangeKind.CREATED
                if before is None
                else ChangeKind.UNCHANGED
                if before == each
                else ChangeKind.CONFIGURED
            )

        return [AppliedObject(name_of(each), change(each), each) for each in wanted]

    def token(self, *_: Any) -> str:
        begins = adding.time.time()
        return token(begins, begins + self.lasts)

    def get(self, *_: str) -> list[Any]:
        return []

    def delete(self, wanted: list[Any]) -> list[AppliedObject]:
        return [
            AppliedObject(name_of(each), ChangeKind.DELETED, each)
            for each in wanted
            if self.objects.pop(name_of(each), None) is not None
        ]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> type[PlayedCluster]:
    PlayedCluster.objects, PlayedCluster.lasts = {}, 86400.0
    monkeypatch.setattr(adding, "AdminCluster", PlayedCluster)
    monkeypatch.setattr(line, "AdminCluster", PlayedCluster)
    return PlayedCluster


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "clone"
    for path, text in FLEET.items():
        (found / path).parent.mkdir(parents=True, exist_ok=True)
        (found / path).write_text(text)
    git(found, "init", "--quiet", "--initial-branch=main")
    git(found, "config", "user.name", "ann")
    git(found, "config", "user.email", "ann@example.io")
    git(found, "add", "--all")
    git(found, "commit", "--quiet", "-mx")
    (tmp_path / "keys").mkdir()
    (tmp_path / "cluster.yaml").write_text("{}")
    monkeypatch.chdir(found)
    return found


def git(top: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(top), *words], check=True, capture_output=True, text=True).stdout


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(line.target, list(words))
    assert done.exit_code == code, done.output
    return done.output


def add(*more: str, code: int = 0) -> str:
    return run("add", "tokyo", "--kubeconfig", "../cluster.yaml", "--keys", "../keys", *more, code=code)


def manifest(top: Path) -> Any:
    return yaml.safe_load((top / INFRA / "tokyo.yaml").read_text())


def secret(top: Path) -> Any:
    return yaml.safe_load((top.parent / "keys/secrets/root:infra/tokyo.yaml").read_text())


def serves(monkeypatch: pytest.MonkeyPatch, *found: TargetSeen) -> None:
    """What the server tells."""

    class Played:
        def __init__(self, *_: Any) -> None: ...

        def maybe(self, name: str) -> TargetSeen | None:
            return next((each for each in found if each.name == name), None)

        def find(self, name: str) -> TargetSeen:
            return next(each for each in found if each.name == name)

        def all(self) -> list[TargetSeen]:
            return list(found)

    monkeypatch.setattr(line, "TargetsSeen", Played)


def tokyo(*, emptied: bool = False, runs: bool = True, known: bool = True, ends: str = "") -> TargetSeen:
    spec = {"unschedulable": True, "evictAfter": "2026-01-01T00:00:00Z"} if emptied else {}
    told = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    told += [{"type": "CredentialsValid", "status": "True", "message": f"the token ends at {ends}; x"}] if ends else []
    value = {
        "metadata": {"name": "tokyo", "labels": {marks.TARGET_KEY: "k"}},
        "spec": spec,
        "status": {"conditions": told},
    }
    if not known:
        return TargetSeen("root:infra", value)
    placements = [SeenPlacement("root:shop", "prod", False)] if runs else []
    return TargetSeen("root:infra", value, placements, [SeenNamespace("root:shop", "web")] if runs else [])


def test_target_and_secret_are_written_and_the_cluster_has_the_rights(top: Path, cluster: type[PlayedCluster]) -> None:
    said = add("--labels", "region=ap,zone=t")
    assert f"{INFRA}/tokyo.yaml created" in said
    assert "https://8.8.8.8:6443 ClusterRole treeplane created" in said
    assert "the token ends at" in said
    assert manifest(top) == {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": "tokyo", "labels": {"region": "ap", "zone": "t"}},
        "spec": {"connection": {"kubeconfigSecretRef": {"namespace": "default", "name": "tokyo"}}},
    }
    assert git(top, "log", "-1", "--format=%s").strip() == "Add the sync target tokyo"
    assert "Role treeplane-system/treeplane" in cluster.objects
    assert secret(top)["metadata"] == {"name": "tokyo", "namespace": "default"}


def test_nothing_of_the_administrators_credentials_is_written(top: Path, cluster: type[PlayedCluster]) -> None:
    said = add()
    kubeconfig = base64.b64decode(secret(top)["data"]["kubeconfig"]).decode()
    assert "exec" not in kubeconfig
    for text in (kubeconfig, said, git(top, "show", "HEAD")):
        assert SECRET_OF_ADMIN not in text
    given = yaml.safe_load(kubeconfig)["users"][0]["user"]["token"]
    assert given not in said
    assert given not in git(top, "show", "HEAD")


def test_again_it_is_unchanged_and_a_token_that_is_half_over_is_another(
    top: Path, cluster: type[PlayedCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    add("--labels", "region=ap")
    first = secret(top)
    said = add()
    assert "created" not in said
    assert "configured" not in said
    assert secret(top) == first
    assert manifest(top)["metadata"]["labels"] == {"region": "ap"}
    assert f"{INFRA}/tokyo.yaml configured" in add("--labels", "zone=t")
    assert manifest(top)["metadata"]["labels"] == {"region": "ap", "zone": "t"}
    now = adding.time.time()
    monkeypatch.setattr(adding.time, "time", lambda: now + 43300)
    add()
    assert secret(top) != first


def test_an_account_that_is_made_anew_gets_another_token(
    top: Path, cluster: type[PlayedCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took it from the cluster took its tokens, however long they were to last."""
    add()
    first, now = secret(top), adding.time.time()
    monkeypatch.setattr(adding.time, "time", lambda: now + 60)
    cluster.objects.clear()
    add()
    assert secret(top) != first


def test_a_dry_run_asks_for_no_token_and_writes_nothing(top: Path, cluster: type[PlayedCluster]) -> None:
    said = add("--dry-run", "-o", "yaml")
    shown = list(yaml.safe_load_all(said))
    kinds = [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "SyncTarget",
        "Secret",
    ]
    assert [each["kind"] for each in shown] == kinds
    assert shown[-1]["data"] == {"kubeconfig": "*****"}
    assert cluster.objects == {}
    assert not (top / INFRA / "tokyo.yaml").exists()


def given(cluster: type[PlayedCluster], group: str) -> list[str]:
    rules = cluster.objects["ClusterRole treeplane"]["rules"]
    return [name for each in rules if each["apiGroups"] == [group] for name in each["resources"]]


def export(top: Path, text: str) -> None:
    (top / "workspaces/root/exports.yaml").write_text(text)
    subprocess.run(["git", "-C", str(top), "add", "."], check=True)
    subprocess.run(["git", "-C", str(top), "commit", "--quiet", "-m", "export"], check=True)


EXPORT = "apiVersion: apis.kcp.io/{}\nkind: APIExport\nmetadata: {{name: databases}}\nspec: {}\n"


@pytest.mark.parametrize(
    ("version", "spec"),
    [
        ("v1alpha1", "{latestResourceSchemas: [v1.databases.data.example, v3.tables.data.example]}"),
        ("v1alpha2", "{resources: [{name: databases, group: data.example, schema: x}, "
                     "{name: tables, group: data.example, schema: y}]}"),
    ],
)  # fmt: skip
def test_an_exports_kinds_are_those_of_its_file(
    top: Path, cluster: type[PlayedCluster], version: str, spec: str
) -> None:
    export(top, EXPORT.format(version, spec))
    add("--exports", "root:databases")
    assert given(cluster, "data.example") == ["databases", "tables"]
    assert manifest(top)["spec"]["supportedAPIExports"][1] == {"path": "root", "export": "databases"}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("{latestResourceSchemas: [v1.clusterroles.rbac.authorization.k8s.io]}", "which is Kubernetes' own"),
        ("{latestResourceSchemas: [v1.secrets.core]}", "which is Kubernetes' own"),
        ("{resources: [{name: deployments, group: apps}]}", "which is Kubernetes' own"),
        ("{resources: [{name: '*', group: data.example}]}", "which can be none"),
        ("{resources: [{name: databases, group: '*'}]}", "which can be none"),
        ("{resources: [databases]}", "has no kinds that can be read"),
        ("{}", "has no kinds that can be read"),
    ],
)
def test_an_export_gives_itself_no_rights_on_a_cluster(
    top: Path, cluster: type[PlayedCluster], spec: str, why: str
) -> None:
    export(top, EXPORT.format("v1alpha2" if "resources:" in spec else "v1alpha1", spec))
    said = add("--exports", "root:databases", code=2)
    assert why in said
    assert "workspaces/root/exports.yaml:1" in said
    assert "--kinds RESOURCE.GROUP" in said
    assert cluster.objects == {}


def test_what_no_file_says_is_asked_for(top: Path, cluster: type[PlayedCluster]) -> None:
    export(top, EXPORT.format("v1alpha1", "{latestResourceSchemas: [v1.databases.data.example]}"))
    for named, why in (
        ("root:shop:db:databases", "no file declares a workspace root:shop:db"),
        ("root:database", "did you mean databases?"),
        ("root:infra:x", "no file of root:infra declares an APIExport x"),
    ):
        said = add("--exports", named, code=2)
        assert why in said
        assert "--kinds RESOURCE.GROUP" in said
    assert cluster.objects == {}


def test_what_a_target_runs_besides(top: Path, cluster: type[PlayedCluster]) -> None:
    add("--exports", "root:shop:db:databases", "--kinds", "databases.data.example")
    named = manifest(top)["spec"]["supportedAPIExports"]
    assert named[1] == {"path": "root:shop:db", "export": "databases"}
    assert given(cluster, "data.example") == ["databases"]


def test_a_secret_that_sops_covers_is_committed_so_and_no_server_renews_it(
    top: Path, cluster: type[PlayedCluster]
) -> None:
    rules = {"creation_rules": [{"age": AgeKey().recipient, "encrypted_regex": "^(data|stringData)$"}]}
    (top / ".sops.yaml").write_text(yaml.safe_dump(rules))
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "-mx")
    assert "the Secret stands in git, so no server renews it" in add()
    assert list((top.parent / "keys").iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "Tokyo", "a/b", "-a", "a" * 64, ""])
def test_a_name_is_a_name(top: Path, cluster: type[PlayedCluster], name: str) -> None:
    run("add", "--kubeconfig", "../cluster.yaml", "--", name, code=2)
    assert cluster.objects == {}


def test_which_workspace_it_is(top: Path, cluster: type[PlayedCluster]) -> None:
    assert "did you mean root:infra" in add("--workspace", "root:infro", code=2)
    (top / "workspaces/root/apis.yaml").write_text(BINDING)
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "-mx")
    said = add(code=2)
    assert "several workspaces have sync targets: root, root:infra" in said
    for file in ("workspaces/root/apis.yaml", f"{INFRA}/apis.yaml"):
        git(top, "rm", "--quiet", file)
    git(top, "commit", "--quiet", "-mx")
    assert "no workspace of this fleet binds workload.kcp.io" in add(code=2)
    assert cluster.objects == {}


def test_it_is_emptied_first_and_then_taken_away(
    top: Path, cluster: type[PlayedCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    add("--labels", "region=ap")
    serves(monkeypatch, tokyo())
    words = ("remove", "tokyo", "--keys", "../keys", "--kubeconfig", "../cluster.yaml")
    said = run(*words)
    assert "namespace web of root:shop" in said
    spec = manifest(top)["spec"]
    assert spec["unschedulable"] is True
    assert spec["evictAfter"]
    assert "ClusterRole treeplane" in cluster.objects

    serves(monkeypatch, tokyo(emptied=True))
    said = run(*words, code=1)
    assert "not empty yet" in said
    assert manifest(top)["spec"] == spec

    serves(monkeypatch, tokyo(emptied=True, runs=False))
    said = run(*words)
    assert "Location asia" in said
    assert "ClusterRole treeplane deleted" in said
    assert not (top / INFRA / "tokyo.yaml").exists()
    assert not (top.parent / "keys/secrets/root:infra/tokyo.yaml").exists()
    assert [name for name in cluster.objects if "Namespace" not in name] == []


def test_what_may_not_be_read_is_not_taken_for_empty(
    top: Path, cluster: type[PlayedCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    add()
    serves(monkeypatch, tokyo(known=False))
    run("remove", "tokyo", "--keys", "../keys")
    serves(monkeypatch, tokyo(emptied=True, known=False))
    assert "you may not read" in run("remove", "tokyo", "--keys", "../keys", code=1)
    assert (top / INFRA / "tokyo.yaml").exists()


def test_by_force_it_goes_and_what_stays_is_told(
    top: Path, cluster: type[PlayedCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    add()
    serves(monkeypatch, tokyo())
    said = run("remove", "tokyo", "--keys", "../keys", "--force")
    assert "stays on the cluster" in said
    assert "internal.workload.kcp.io/cluster=k" in said
    assert not (top / INFRA / "tokyo.yaml").exists()


def test_one_that_no_file_declares(top: Path, cluster: type[PlayedCluster]) -> None:
    add()
    assert "did you mean tokyo" in run("remove", "tokio", code=2)


def test_how_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    serves(monkeypatch, tokyo(ends="2030-01-01T00:00:00Z"))
    head, row = run("list").splitlines()
    assert head.split() == ["NAME", "WORKSPACE", "READY", "SINCE", "STATE", "PLACEMENTS", "CREDENTIALS", "END"]
    assert row.split() == ["tokyo", "root:infra", "True", "2026-01-01T00:00:00Z", "open", "1", "2030-01-01T00:00:00Z"]
    assert json.loads(run("list", "-o", "json"))["targets"][0]["credentialsEnd"] == "2030-01-01T00:00:00Z"
    assert "root:shop web" in run("describe", "tokyo")
    assert yaml.safe_load(run("describe", "tokyo", "-o", "yaml"))["namespaces"] == [
        {"workspace": "root:shop", "namespace": "web"}
    ]
    serves(monkeypatch, tokyo(known=False))
    assert "What runs there you may not read." in run("describe", "tokyo")
    assert seen.TargetSeen("root", {"metadata": {"name": "a"}}).ready == "Unknown"
