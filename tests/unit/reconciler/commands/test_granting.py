"""`treeplane grant`: which RBAC it writes, for whom, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.annsclone import begin, commit, git

from reconciler.__main__ import main
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import FilingAsked
from reconciler.commands.filing.desk import desk_for
from reconciler.commands.granting import GrantAsked, grant, safe

FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\n",
    "workspaces/root/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "workspaces/root/shop/workspace.yaml": "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n",
    "workspaces/root/shop/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n---\n"
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: deployer, namespace: web}\nrules: []\n",
}  # fmt: skip
SHOP = "workspaces/root/shop"
FILE = f"{SHOP}/_access/user-ann.yaml"


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = begin(tmp_path / "clone", FLEET)
    monkeypatch.chdir(found)
    return found


def run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["grant", *words])
    assert done.exit_code == code, done.output
    return done


def test_a_role_and_access_and_nothing_above(top: Path) -> None:
    assert run("ann", "edit", "root:shop").output.startswith(f"{FILE} created\nthey are in commit ")
    found = [*yaml.safe_load_all((top / FILE).read_text())]
    assert [(each["kind"], each["roleRef"]["name"]) for each in found] == [
        ("ClusterRoleBinding", "system:kcp:workspace:access"),
        ("ClusterRoleBinding", "edit"),
    ]
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
    assert all(each["subjects"] == [subject] for each in found)
    assert git(top, "diff", "--name-only", "HEAD~1") == FILE
    assert run("ann", "edit", "root:shop").output == f"{FILE} unchanged\n"


def test_in_a_namespace_a_role_of_it(top: Path) -> None:
    run("devs", "deployer", "root:shop", "--group", "-n", "web")
    found = [*yaml.safe_load_all((top / SHOP / "_access/group-devs.yaml").read_text())]
    assert found[1]["kind"] == "RoleBinding"
    assert found[1]["metadata"]["namespace"] == "web"
    assert found[1]["roleRef"]["kind"] == "Role"
    assert found[1]["subjects"][0]["kind"] == "Group"


def test_it_is_taken_back_and_access_with_the_last(top: Path) -> None:
    run("ann", "edit", "root:shop")
    run("ann", "view", "root:shop")
    assert f"{FILE} configured" in run("ann", "edit", "root:shop", "--remove").output
    assert [each["roleRef"]["name"] for each in yaml.safe_load_all((top / FILE).read_text())] == [
        "system:kcp:workspace:access", "view"
    ]  # fmt: skip
    assert f"{FILE} unchanged" in run("ann", "edit", "root:shop", "--remove").output
    assert f"{FILE} deleted" in run("ann", "view", "root:shop", "--remove").output
    assert not (top / FILE).exists()


def test_what_somebody_moved_is_found_where_it_is(top: Path) -> None:
    run("ann", "edit", "root:shop")
    (top / SHOP / "people.yaml").write_text((top / FILE).read_text())
    (top / FILE).unlink()
    commit(top, {})
    assert run("ann", "edit", "root:shop").output == f"{SHOP}/people.yaml unchanged\n"
    run("ann", "edit", "root:shop", "--remove")
    assert not (top / SHOP / "people.yaml").exists()


@pytest.mark.parametrize(
    "words, said",
    [
        (("ann", "edti", "root:shop"), "did you mean edit"),
        (("ann", "edit", "root:shpo"), "did you mean root:shop"),
        (("ann", "edit", "root:shop", "-n", "wbe"), "did you mean web"),
        (("ann", "deployer", "root:shop"), "has no role"),
        (("system:masters", "edit", "root:shop", "--group"), "--admin"),
        (("SYSTEM:masters", "edit", "root:shop", "--group"), "--admin"),
        (("system:workspace:root:shop", "edit", "root:shop", "--admin"), "what the server itself calls"),
        (("", "edit", "root:shop"), "it is empty"),
    ],
)
def test_what_is_refused_and_what_to_do(top: Path, words: tuple[str, ...], said: str) -> None:
    assert said in run(*words, code=2).output
    assert git(top, "rev-list", "--count", "HEAD") == "1"


def test_one_of_the_systems_names_takes_a_word(top: Path) -> None:
    run("system:authenticated", "view", "root:shop", "--group", "--admin")
    assert (top / SHOP / "_access/group-system%3Aauthenticated.yaml").exists()


@pytest.mark.parametrize(
    "files",
    [
        {f"{SHOP}/kustomization.yaml": "resources: []\n"},
        {f"{SHOP}/workspace.yaml": "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
         f"spec: {{serve: {{commit: {'a' * 40}}}}}\n"},
    ],
)  # fmt: skip
def test_where_no_file_would_be_served_it_says_so(top: Path, files: dict[str, str]) -> None:
    commit(top, files)
    assert "nothing can be granted in files of root:shop" in run("ann", "edit", "root:shop", code=3).output


_NAMES = st.text(min_size=1, max_size=270) | st.from_regex(r"[./%=:\\a~ ]{1,12}", fullmatch=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(name=_NAMES, kind=st.sampled_from(["User", "Group"]))
def test_any_name_is_granted_exactly_or_refused(top: Path, name: str, kind: str) -> None:
    with desk_for(FilingAsked(dry=True)) as desk:
        try:
            grant(desk, GrantAsked(kind, name, "view", "root:shop"))
        except Failure:
            return
        [file] = desk.planned().files
    folder, _, last = file.where.rpartition("/")
    assert folder == f"{SHOP}/_access"
    assert last.startswith(f"{kind.lower()}-")
    for each in yaml.safe_load_all(file.data or b""):
        assert [(s["kind"], s["name"]) for s in each["subjects"]] == [(kind, name)]
        assert not {"/", "%"} & set(each["metadata"]["name"])


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_two_texts_share_a_name(one: str, other: str) -> None:
    assert (safe(one) == safe(other)) == (one == other) if _encodes(one) and _encodes(other) else True


def _encodes(text: str) -> bool:
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:
        return False
