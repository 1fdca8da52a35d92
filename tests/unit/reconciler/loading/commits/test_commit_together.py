"""Writes of many users as one commit: what it says, and that nobody's write costs another's."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.commitfleet import CommitFleet
from support.loadedfleet import A, B
from support.manywriters import (
    BUILT_ON,
    CRDS,
    SIX,
    WIDGET,
    ManyWriters,
    judgements,
    messages,
    refusal,
    told,
)

from apiserver.registry.intents import waiting
from reconciler.plan.pushedby import SEVERAL, PushedBy
from reconciler.repository.errors import PushRejected, RepositoryUnreadable
from reconciler.statusbranch import pushers

WORKSPACES = "workspaces.tenancy.kcp.io"
KUBE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: kube-compat, path: root}}
"""


@pytest.fixture
def writers(idle: CommitFleet) -> Iterator[ManyWriters]:
    with ThreadPoolExecutor(80) as threads:
        yield ManyWriters(idle, threads)


def workspace(name: str, kind: str = "universal") -> dict[str, Any]:
    spec = {"type": {"name": kind, "path": "root"}}
    return {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": spec}


def test_it_is_by_treeplane_and_says_who_wrote_what(writers: ManyWriters) -> None:
    fleet = writers.fleet
    made = [*writers.create_all(SIX), writers.create("root:b", "more", "ann")]
    fleet.committer.serve()
    for name, answer in zip((*SIX, "more"), made, strict=True):
        assert answer.result(10) == fleet.get("root:b" if name == "more" else "root:a", "configmaps", name)
    [message] = messages(fleet)
    head = fleet.mirror.repository.commit(fleet.repo.head)
    assert head.author == "Treeplane <treeplane@localhost>"
    assert message.splitlines()[:4] == [
        "Write 7 objects for 6 users in 2 workspaces",
        "",
        "create configmaps default/bob in root:a",
        "create configmaps default/cid in root:a",
    ]
    trailers = message.rpartition("\n\n")[2].splitlines()
    assert trailers[0] == "Written-By: root:a configmaps default/bob bob"
    assert "Written-By: root:b configmaps default/more ann" in trailers
    assert trailers[7:] == [f"Co-authored-by: {user} <{user}@localhost>" for user in (*SIX[1:], "ann")]
    parsed = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=message, capture_output=True, text=True, check=True
    )
    assert parsed.stdout.splitlines() == trailers
    assert pushers.of(fleet.store, fleet.repo.head) == PushedBy("", SEVERAL, users=("bob", "cid", "dan"), more=3)


def test_each_object_is_what_its_own_author_s_commit_had_made_of_it(writers: ManyWriters) -> None:
    fleet = writers.fleet
    made = writers.create_all(SIX)
    fleet.committer.serve()
    for answer in made:
        metadata = answer.result(10)["metadata"]
        assert [entry["manager"] for entry in metadata["managedFields"]] == ["test"]
        assert metadata["annotations"]["treeplane.dev/source-commit"] == fleet.repo.head
    changed = [writers.ask(fleet.change, "root:a", "configmaps", user, user=user, data={"by": user}) for user in SIX]
    fleet.committer.serve()
    assert [answer.result(10)["data"] for answer in changed] == [{"by": user} for user in SIX]
    assert len(messages(fleet)) == 2


def test_one_bad_write_among_sixty_four_costs_few_judgements(writers: ManyWriters) -> None:
    """No error names its file, so it is looked for; whoever writes elsewhere has no share in that."""
    fleet = writers.fleet
    fleet.commit({f"{A}/crd.yaml": BUILT_ON, f"{A}/widget.yaml": WIDGET})
    users = [f"u{number}" for number in range(63)]
    good = [writers.create("root:b" if number % 2 else "root:a", user, user) for number, user in enumerate(users)]
    bad, judged = writers.break_widgets("mallory"), judgements(fleet)
    fleet.committer.serve()
    assert "no kind" in refusal(bad).message
    assert [answer.result(10)["metadata"]["name"] for answer in good] == users
    assert judged[:2] == [64, 31]
    assert len(judged) <= 2 + 2 * 6
    assert sum(len(told(message)) or 1 for message in messages(fleet)) == 63
    assert fleet.held() == {}


def test_whose_file_is_at_fault_is_tried_by_himself(writers: ManyWriters) -> None:
    """What else he asked for is done."""
    fleet = writers.fleet
    good = [*writers.create_all(SIX), writers.create("root:a", "mallorys", "mallory")]
    bad = writers.ask(fleet.create, "root:a", WORKSPACES, workspace("x", "nonsense"), "mallory")
    judged = judgements(fleet)
    fleet.committer.serve()
    assert "nonsense" in refusal(bad).message
    assert all(answer.result(10) for answer in good)
    assert judged == [8, 6, 2, 1]
    assert [len(told(message)) for message in messages(fleet)] == [6, 0]
    assert fleet.log()[-1] == "mallory: Create configmaps default/mallorys in root:a"


def test_two_that_cannot_both_be_are_not_both_refused(writers: ManyWriters) -> None:
    """Who was judged bad for what another wrote is judged again without him."""
    fleet = writers.fleet

    def definition(name: str) -> dict[str, Any]:
        names = {"plural": name, "singular": "same", "kind": name.capitalize(), "listKind": f"{name}List"}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        spec = {"group": "example.org", "scope": "Cluster", "names": names, "versions": [version]}
        metadata = {"name": f"{name}.example.org"}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": metadata, "spec": spec}  # fmt: skip

    made = [writers.ask(fleet.create, "root:a", CRDS, definition(each), each) for each in ("cats", "dogs")]
    good = writers.create_all(SIX)
    fleet.committer.serve()
    assert all(answer.result(10) for answer in good)
    assert any(answer.exception(10) is None for answer in made)
    assert fleet.held() == {}


def test_who_withdraws_has_the_others_judged_once_more(writers: ManyWriters) -> None:
    fleet = writers.fleet
    good = writers.create_all(SIX)
    waiter, gone = writers.create_for_now("root:a", "gone", "mallory")
    hers = writers.create("root:a", "stays", "mallory")
    propose = fleet.loader.propose

    def late(*given: Any) -> Any:
        proposal = propose(*given)
        waiter.leave()
        assert refusal(gone).code == 499
        return proposal

    fleet.loader.propose = late  # type: ignore[method-assign]
    judged = judgements(fleet)
    fleet.committer.serve()
    assert all(answer.result(10) for answer in [*good, hers])
    assert judged == [8, 6, 1]
    assert fleet.find("root:a", "configmaps", "gone") is None
    assert "gone" not in "".join(messages(fleet))


def test_a_fault_of_ours_is_told_to_whose_write_brings_it_up(writers: ManyWriters) -> None:
    fleet = writers.fleet
    good, bad = writers.create_all(SIX), writers.create("root:a", "bad", "mallory")
    propose = fleet.loader.propose

    def failing(commit: Any, intents: Any) -> Any:
        if any(intent.author == "mallory" for intent in intents.values()):
            raise ValueError("a fault")
        return propose(commit, intents)

    fleet.loader.propose = failing  # type: ignore[method-assign]
    fleet.committer.serve()
    assert refusal(bad).code == 500
    assert all(answer.result(10) for answer in good)


def test_what_a_source_does_not_take_it_does_not_take_of_one(writers: ManyWriters) -> None:
    """As a forge that looks for secrets in what is pushed."""
    fleet = writers.fleet
    good, bad = writers.create_all(SIX), writers.create("root:a", "token", "mallory")
    desired = fleet.committer._branch.desired
    publish = desired.publish

    def looking(commit: str, expected: str) -> None:
        if "token" in fleet.mirror.repository.commit(commit).message:
            raise PushRejected("push declined due to a secret", "take it out")
        publish(commit, expected)

    desired.publish = looking  # type: ignore[method-assign]
    fleet.committer.serve()
    assert "push declined due to a secret" in refusal(bad).message
    assert all(answer.result(10) for answer in good)


def test_a_source_that_is_away_is_asked_once(writers: ManyWriters) -> None:
    fleet, asked = writers.fleet, list[str]()

    def away(commit: str, _: str) -> None:
        asked.append(commit)
        raise RepositoryUnreadable("it is away")

    fleet.committer._branch.desired.publish = away  # type: ignore[method-assign]
    made = writers.create_all(SIX)
    fleet.committer.serve()
    assert {refusal(answer).code for answer in made} == {503}
    assert len(asked) == 1


def test_who_has_to_wait_for_a_load_keeps_nobody_waiting(writers: ManyWriters) -> None:
    fleet = writers.fleet
    good, late = writers.create_all(SIX), writers.create("root:a", "late", "mallory")
    propose = fleet.loader.propose

    def putting_off(commit: Any, intents: Any) -> Any:
        later = any(intent.author == "mallory" for intent in intents.values())
        return dataclasses.replace(propose(commit, intents), later=later)

    fleet.loader.propose = putting_off  # type: ignore[method-assign]
    fleet.committer.serve()
    assert all(answer.result(10) for answer in good)
    assert [intent.author for intent in waiting(fleet.store)] == ["mallory"]
    fleet.loader.propose = propose  # type: ignore[method-assign]
    fleet.committer.serve()
    assert late.result(10)


def test_a_deletion_is_allowed_by_whose_word_it_is(writers: ManyWriters) -> None:
    """Each DELETE of a Workspace allows what goes with that one, and a withdrawn one allows nothing."""
    fleet = writers.fleet
    fleet.commit({f"{B}/kid/workspace.yaml": "", **{f"{B}/kid/c{n}.yaml": _map(f"c{n}") for n in range(20)}})
    good = writers.create_all(SIX)
    gone = writers.ask(fleet.remove, "root", WORKSPACES, "b", user="owner")
    fleet.committer.serve()
    gone.result(10)
    assert all(answer.result(10) for answer in good)
    [message] = messages(fleet)
    assert message.count("Allow-Delete: ") == 1
    assert "owner: b" in told(message)
    assert fleet.paths() == {"root", "root:a"}
    assert not any(path.startswith(f"{B}/") for path in fleet.tree())


@pytest.mark.parametrize("first", ["goes", "writes"])
def test_what_is_written_into_a_directory_that_goes_never_comes_to_stand_around_it(
    writers: ManyWriters, first: str
) -> None:
    """A ClusterRoleBinding of somebody who may do everything in a workspace, while that workspace is deleted."""
    fleet = writers.fleet
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    grant = {**kind, "metadata": {"name": "all"}, "roleRef": role, "subjects": [subject]}
    bindings = "clusterrolebindings.rbac.authorization.k8s.io"

    def write() -> Any:
        return writers.ask(fleet.create, "root:b", bindings, grant, "mallory")

    written = write() if first == "writes" else None
    gone = writers.ask(fleet.remove, "root", WORKSPACES, "b", user="owner")
    written = written or write()
    good = writers.create_all(SIX)
    fleet.committer.serve()
    while fleet.committer.waiting():
        fleet.committer.serve()
    gone.result(10)
    written.exception(10)
    assert all(answer.result(10) for answer in good)
    assert fleet.paths() == {"root", "root:a"}
    assert not any(path.startswith(B) or "rolebinding" in path for path in fleet.tree())
    assert fleet.find("root", bindings, "all") is None
    assert fleet.held() == {}


def test_of_two_that_want_one_port_the_first_has_it(writers: ManyWriters) -> None:
    fleet = writers.fleet
    fleet.commit({"workspaces/root/c/workspace.yaml": KUBE})

    def service(name: str) -> dict[str, Any]:
        spec = {"type": "NodePort", "selector": {"a": "b"}, "ports": [{"port": 80, "nodePort": 30123}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}

    wanted = [writers.ask(fleet.create, "root:c", "services", service(user), user) for user in ("one", "two")]
    good = writers.create_all(SIX, "root:b")
    fleet.committer.serve()
    while fleet.committer.waiting():
        fleet.committer.serve()
    assert all(answer.result(10) for answer in good)
    assert wanted[0].result(10)["spec"]["ports"][0]["nodePort"] == 30123
    assert "30123" in refusal(wanted[1]).message
    assert [name for name in ("one", "two") if fleet.find("root:c", "services", name)] == ["one"]


def _map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{}}\n"
