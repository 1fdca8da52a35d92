"""A git server of somebody else's refuses what the repository that Treeplane hosts would refuse, and nothing more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML, Files
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.ownedfleet import OWNED, MadeUpPushes, granting, pushers
from support.shipped import WORKLOAD
from support.shipped import binding as shipped
from support.signing import Person, needs_ssh
from support.widgets import binding, export, schema, widget

from apiserver.endpoints.pushhooks import PUSHER
from apiserver.model.paths import ROOT
from apiserver.model.tables import Table
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Store
from reconciler.commands import hook
from reconciler.commands.hook import HookAnswer, judge_push
from reconciler.commands.pushes import PushJudge
from reconciler.commands.spool import PushQuestion
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loader
from reconciler.loading.trial import Trial
from reconciler.loading.vouching import Vouching
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.pushrecords import PushRecords
from reconciler.repository.write import commit_tree
from reconciler.review import barring
from reconciler.signatures.verifier import Verifier

pytestmark = needs_ssh
R, C = "workspaces/root", "workspaces/root/c"
SIGNERS = "signers/allowed_signers"
NAME = "tmp_objdir-incoming-AbCdEf"
NONE = "0" * 40
PEOPLE = {name: Person(name) for name in ("alice", "bob", "carol", "dave", "mallory")}
KNOWN = "".join(PEOPLE[name].line() for name in ("alice", "bob", "carol", "dave"))


def treeplane_yaml(mode: str = "None", *, owners: bool = True, safety: str = "") -> str:
    said = f"safety: {{owners: {str(owners).lower()}{safety}}}, verification: {{mode: {mode}}}"
    return f"apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {{name: test}}\nspec: {{{said}}}\n"


Step = tuple[str, Files]
"""Who signs, "" for nobody, and what."""


class SignedElsewhere(LoadedFleet):
    """A fleet that is served and recorded. `root:a` is alice's, `root:b` bob's, root carol's."""

    def __init__(self, directory: Path) -> None:
        self.vouching = Vouching(MadeUpPushes(), Verifier(None), directory / "keys" / "signers")
        super().__init__(directory)
        (self.repo.path / "objects" / NAME).mkdir()

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        return super().new_loader(branch or BranchSettings(vouching=self.vouching))

    def serve(self, *steps: Step) -> None:
        for step in steps:
            self.add(*step)
        self.load()
        self.publish()

    def add(self, who: str, files: Files, message: str = "Change") -> str:
        return self.repo.commit(files, message, sign=PEOPLE[who].sign if who else None)

    def pushed(self, *steps: Step) -> tuple[str, str]:
        """The commits before and after a push that is not taken yet."""
        old = self.repo.head
        new = [self.add(*step) for step in steps][-1]
        self.repo.reset(old)
        return old, new

    def hosted(self, old: str, new: str) -> str:
        """What the server's own judge answers of who pushes by a path, so that his signatures alone count."""
        trial = Trial(self.loader, self.secrets.of, self.keys / "identities", 60)
        vouching = Vouching(PushRecords(self.repo.path), Verifier(None), self.keys / "signers")
        judge = PushJudge(self.repo.path, self.mirror.path, self.repo.ref, self.store, trial, vouching)
        return judge.answer(PushQuestion(NAME, old, new, self.repo.ref, ""))

    def hooked(self, old: str, new: str, **more: str) -> HookAnswer:
        return judge_push({"GIT_DIR": str(self.repo.path), **more}, [f"{old} {new} {self.repo.ref}\n"])

    def same(self, *steps: Step) -> HookAnswer:
        old, new = self.pushed(*steps)
        hosted, hooked = self.hosted(old, new), self.hooked(old, new)
        assert hosted.splitlines()[0] == ("refuse" if hooked.refuses else "take"), (hosted, hooked.lines)
        if hooked.refuses:
            assert hosted.splitlines()[1:] == hooked.lines
        return hooked


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., SignedElsewhere]]:
    made: list[SignedElsewhere] = []

    def serve(settings: str, files: Files | None = None) -> SignedElsewhere:
        made.append(SignedElsewhere(tmp_path / f"fleet{len(made)}"))
        made[-1].serve(("", {**OWNED, "treeplane.yaml": TREEPLANE_YAML, SIGNERS: KNOWN, **(files or {})}))
        made[-1].serve(("carol", {"treeplane.yaml": settings}))
        return made[-1]

    yield serve
    for each in made:
        each.close()


@pytest.fixture
def fleet(served: Callable[..., SignedElsewhere]) -> SignedElsewhere:
    return served(treeplane_yaml())


def test_who_has_no_right_there_is_refused_with_the_file(fleet: SignedElsewhere) -> None:
    answer = fleet.same(("alice", {f"{A}/app.yaml": configmap(a="new"), f"{B}/app.yaml": configmap(a="stolen")}))
    assert answer.refuses
    assert answer.lines[0] == "refused, since it may not be made so, as the served treeplane.yaml says:"
    assert f"{B}/app.yaml: is touched by " in answer.lines[1] and "signed by alice: nobody gave" in answer.lines[1]
    assert answer.lines[2:] == ["Nothing of it is taken."]


def test_whoever_may_is_told_what_it_comes_to(fleet: SignedElsewhere) -> None:
    answer = fleet.same(("alice", {f"{A}/app.yaml": configmap(a="new")}))
    assert not answer.refuses
    assert answer.lines[1:] == ["workspace root:a configured (1 object)"]
    assert not fleet.same(("carol", {f"{B}/app.yaml": configmap(a="new")})).refuses


def test_whom_the_forge_names_does_not_count(fleet: SignedElsewhere) -> None:
    old, new = fleet.pushed(("", {f"{A}/app.yaml": configmap(a="new")}))
    master = json.dumps({"username": "root", "groups": ["system:masters"]})
    names = {"GL_USERNAME": "alice", "REMOTE_USER": "alice", "GITEA_PUSHER_NAME": "alice", PUSHER: master}
    answer = fleet.hooked(old, new, **names)
    assert answer.refuses
    assert "of whom it is not known who pushed it, since it is not signed" in answer.lines[1]


def test_what_is_not_signed_is_refused_where_it_has_to_be(served: Callable[..., SignedElsewhere]) -> None:
    fleet = served(treeplane_yaml("Every", owners=False))
    assert fleet.same(("alice", {}), ("", {}), ("alice", {})).refuses
    assert fleet.same(("mallory", {})).refuses
    assert not fleet.same(("dave", {f"{B}/app.yaml": configmap(a="anybody's")})).refuses


def test_a_directory_of_signers_counts_where_the_commits_have_none(
    served: Callable[..., SignedElsewhere], tmp_path: Path
) -> None:
    fleet = served(treeplane_yaml("Head"), {SIGNERS: None})
    (tmp_path / "listed").mkdir()
    (tmp_path / "listed" / "allowed_signers").write_text(PEOPLE["alice"].line())
    old, new = fleet.pushed(("alice", {f"{A}/app.yaml": configmap(a="new")}))
    line, variables = [f"{old} {new} {fleet.repo.ref}\n"], {"GIT_DIR": str(fleet.repo.path)}
    assert judge_push(variables, line).refuses
    assert not judge_push(variables, line, tmp_path / "listed").refuses
    fleet.serve(("alice", {f"{A}/app.yaml": configmap(a="new")}))


def test_who_may_not_cause_a_loss_does_not_allow_it(served: Callable[..., SignedElsewhere]) -> None:
    """Though no file of the workspace differs: it is found by what is held there."""
    fleet = served(treeplane_yaml(safety=", maxDeletedObjects: 0"))
    fleet.serve(("bob", {f"{B}/app.yaml": None}))
    [error] = fleet.held()["root:b"]
    (hashed,) = re.findall(r"Allow-Delete: ([0-9a-f]{40})", error)
    old = fleet.repo.head
    for who, may in (("alice", False), ("bob", True), ("carol", True)):
        new = fleet.add(who, {}, f"Allow\n\nAllow-Delete: {hashed}\n")
        fleet.repo.reset(old)
        assert fleet.hooked(old, new).refuses == (not may)
        assert fleet.hosted(old, new).startswith("take" if may else "refuse")


def test_only_what_was_touched_and_what_is_above_it_is_loaded(
    served: Callable[..., SignedElsewhere], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"{R}/n{n}/workspace.yaml": "" for n in range(20)} | {f"{A}/kid/{n}/workspace.yaml": "" for n in range(20)}
    fleet = served(treeplane_yaml(), {**many, f"{A}/kid/workspace.yaml": ""})
    seen: list[set[str]] = []
    asked = barring._Barring._ask

    def ask(self: barring._Barring, store: Store, record: FleetRecord) -> None:
        seen.append({row.key for row in store.scan_rows(Table.WORKSPACES)} - {"root:compute"})
        asked(self, store, record)

    monkeypatch.setattr(barring._Barring, "_ask", ask)
    assert not fleet.hooked(*fleet.pushed(("alice", {f"{A}/kid/3/app.yaml": configmap()}))).refuses
    assert seen == [set(), {ROOT, "root:a", "root:a:kid", "root:a:kid:3"}]
    seen.clear()
    everywhere = {f"{R}/n{n}/app.yaml": configmap() for n in range(20)}
    assert not fleet.hooked(*fleet.pushed(("carol", everywhere))).refuses
    assert seen == [set(), {ROOT}]  # she may push anywhere
    seen.clear()
    assert fleet.hooked(*fleet.pushed(("alice", everywhere))).refuses
    assert seen[:2] == [set(), {ROOT}] and seen[2] == {ROOT, *(f"root:n{n}" for n in range(20))}
    seen.clear()
    assert fleet.hooked(*fleet.pushed(("", {f"{A}/kid/3/app.yaml": configmap()}))).refuses
    assert seen == [set()]  # nobody's rights decide


def test_what_is_signed_and_takes_of_another_is_refused_there_and_held_here(
    served: Callable[..., SignedElsewhere],
) -> None:
    fleet = served(treeplane_yaml(), {f"{B}/schema.yaml": schema(), f"{B}/export.yaml": export()})
    old, new = fleet.pushed(("alice", {f"{A}/binding.yaml": binding("root:b")}))
    asked = f"APIBinding widgets, in {new:.10}, signed by alice: no permission to bind to export root:b:widgets"
    found = fleet.hooked(old, new)
    assert found.refuses
    assert any(asked in line for line in found.lines)
    # Whoever cannot be refused anything is held for it, until bob signs that it may be.
    fleet.serve(("alice", {f"{A}/binding.yaml": binding("root:b")}))
    assert "signed by alice: no permission to bind to export root:b:widgets" in fleet.held()["root:a"][0]
    fleet.serve(("bob", {f"{B}/bind.yaml": granting("bind", "apiexports.apis.kcp.io", "alice")}))
    assert fleet.held().keys() == {"root:a"}
    fleet.serve(("alice", {f"{A}/binding.yaml": f"{binding('root:b')}\n"}))
    assert fleet.held() == {}


# -- what cannot be judged


def test_a_push_that_moves_the_branch_twice_is_refused(fleet: SignedElsewhere) -> None:
    old, new = fleet.pushed(("alice", {f"{A}/app.yaml": configmap(a="new")}))
    _, bad = fleet.pushed(("alice", {f"{B}/app.yaml": configmap(a="new")}))
    for lines in ([(old, new), (old, bad)], [(old, NONE), (NONE, bad)], [(NONE, bad), (old, new)]):
        answer = judge_push(
            {"GIT_DIR": str(fleet.repo.path)}, [f"{one} {other} {fleet.repo.ref}\n" for one, other in lines]
        )
        assert answer == HookAnswer(True, ["refused, since it moves refs/heads/main twice"])


def test_what_is_rewritten_or_ends_is_refused(fleet: SignedElsewhere) -> None:
    fleet.serve(("carol", {f"{R}/app.yaml": configmap(a="1")}))
    old = fleet.repo.head
    back = fleet.repo.repo.commit(old).parents[0]
    assert fleet.hooked(old, back) == HookAnswer(
        True, ["refused, since it could not be judged: the branch is rewritten"]
    )
    assert fleet.hooked(old, NONE) == HookAnswer(True, ["refused, since it could not be judged: the branch ends"])


@pytest.mark.parametrize("error", [RepositoryUnreadable("it is damaged"), KeyError("secret")])
def test_a_fault_refuses_and_tells_nothing_of_what_was_at_hand(
    fleet: SignedElsewhere, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(hook, "barred", fails)
    answer = fleet.hooked(*fleet.pushed(("alice", {f"{A}/app.yaml": configmap(a="new")})))
    assert answer.refuses
    assert answer.lines[0].startswith("refused, since it could not be judged: ")
    assert "secret" not in answer.lines[0]


def test_another_ref_of_the_same_push_is_no_way_round_it(fleet: SignedElsewhere) -> None:
    """Neither by what it was, nor by what it becomes."""
    old, bad = fleet.pushed(("alice", {f"{B}/app.yaml": configmap(a="stolen")}))
    blob = str(fleet.repo.repo.git.create_blob(b"no commit"))
    others = [f"{blob} {old} refs/tags/v1\n", f"{NONE} {bad} refs/heads/other\n", f"{old} {NONE} refs/heads/third\n"]
    lines = [*others, f"{old} {bad} {fleet.repo.ref}\n", *others]
    assert judge_push({"GIT_DIR": str(fleet.repo.path)}, lines).refuses


def test_no_other_ref_says_what_is_served(fleet: SignedElsewhere) -> None:
    """A forge protects branches alone."""
    status = fleet.repo.repo.ref("refs/heads/treeplane/status")
    assert status is not None
    old, bad = fleet.pushed(("alice", {f"{B}/app.yaml": configmap(a="stolen")}))
    free = fleet.repo.commit({"treeplane.yaml": treeplane_yaml(owners=False)})
    fleet.repo.reset(old)
    repo = fleet.repo.repo
    forged = commit_tree(repo, repo.commit(status).tree, [status, free], f"Forged\n\nSource-Commit: {free}\n", 1)
    repo.references.create("refs/remotes/origin/treeplane/status", forged, force=True)
    assert fleet.hooked(old, bad).refuses


def test_a_served_fleet_that_this_version_cannot_read_refuses(
    served: Callable[..., SignedElsewhere], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = served(treeplane_yaml())
    old, new = fleet.pushed(("carol", {}))

    def bad(*_: object) -> None:
        raise BadFile([LayoutError("treeplane.yaml", 4, 0, "spec.later: unknown field", "")])

    monkeypatch.setattr(hook, "read_fleet", bad)
    [line] = fleet.hooked(old, new).lines
    assert line.startswith("refused, since it could not be judged: this version of Treeplane cannot read the served")


# -- the same as hosted

TENANCY = "tenancy.kcp.io/v1alpha1"
MADE = f"apiVersion: {TENANCY}\nkind: Workspace\n"
STAGES = ("plain", "held", "removed", "left", "lag", "consumes", "moved")


def stage(fleet: SignedElsewhere, name: str) -> None:
    """A past that what is served does not follow from the head alone."""
    if name == "held":
        fleet.serve(
            ("alice", {f"{B}/app.yaml": configmap(a="stolen"), f"{B}/pushers.yaml": pushers("alice")}),
            ("bob", {f"{B}/bad.yaml": "kind: ["}),
        )
        assert "root:b" in fleet.held()
    elif name == "removed":
        fleet.serve(("alice", {B: None}))
        assert fleet.fleet().kept
    elif name == "left":
        fleet.serve(("alice", {f"{A}/kid/workspace.yaml": "", f"{A}/kid/app.yaml": configmap("k")}))
        fleet.serve(("alice", {f"{A}/kid/workspace.yaml": None}))
        assert fleet.fleet().claims
    elif name == "lag":
        fleet.add("carol", {f"{B}/pushers.yaml": pushers("alice", "dave"), f"{R}/new/workspace.yaml": ""})
    elif name == "consumes":
        provider = "workspaces/root/p"
        offer = {
            f"{provider}/schema.yaml": schema(),
            f"{provider}/export.yaml": export(),
            f"{provider}/workspace.yaml": "",
            f"{provider}/bind.yaml": granting("bind", "apiexports.apis.kcp.io", "bob"),
            f"{provider}/gold.yaml": f"apiVersion: {TENANCY}\nkind: WorkspaceType\nmetadata: {{name: gold}}\n",
        }
        fleet.serve(("carol", offer))
        fleet.serve(("bob", {f"{B}/binding.yaml": binding("root:p"), f"{B}/widget.yaml": widget()}))
        assert fleet.held() == {}
    elif name == "moved":
        uid = fleet.workspace("root:b")["metadata"]["uid"]
        files = fleet.repo.files(fleet.repo.head)
        there = {path.replace(B, f"{A}/b", 1): text for path, text in files.items() if path.startswith(f"{B}/")}
        gone: Files = {B: None}
        marked = {f"{A}/b/workspace.yaml": f"metadata: {{uid: {uid}}}\n"}
        fleet.serve(("carol", {**there, **gone, **marked}))
        assert "root:a:b" in fleet.paths(), fleet.held()


EDITS: dict[str, Files] = {
    "root": {f"{R}/app.yaml": configmap(a="1")},
    "a": {f"{A}/app.yaml": configmap(a="1")},
    "b": {f"{B}/app.yaml": configmap(a="1")},
    "both": {f"{A}/app.yaml": configmap(a="2"), f"{B}/more.yaml": configmap("more")},
    "rights of a": {f"{A}/pushers.yaml": pushers("dave")},
    "rights of b": {f"{B}/pushers.yaml": pushers("alice", "bob")},
    "no rights in b": {f"{B}/pushers.yaml": None},
    "kid of a": {f"{A}/kid/workspace.yaml": "", f"{A}/kid/pushers.yaml": pushers("dave")},
    "in the kid": {f"{A}/kid/app.yaml": configmap("k", a="1")},
    "in the moved": {f"{A}/b/app.yaml": configmap(a="1")},
    "a itself": {f"{A}/workspace.yaml": "metadata: {labels: {x: y}}\n"},
    "a new one": {f"{R}/new/workspace.yaml": "", f"{R}/new/app.yaml": configmap()},
    "without b": {B: None},
    "without b's mark": {f"{B}/workspace.yaml": None},
    "outside": {"README.md": "new\n"},
    "settings": {"treeplane.yaml": treeplane_yaml(owners=False)},
    "signers": {SIGNERS: KNOWN + PEOPLE["mallory"].line()},
    "no signers": {"signers": None},
    "not shown": {f"{A}/.treeplaneignore": "kid/\n"},
    "a bad file": {f"{A}/bad.yaml": "kind: ["},
    "binds in a": {f"{A}/binding.yaml": binding("root:p")},
    "binds in b": {f"{B}/more.yaml": binding("root:p", "more")},
    "binds otherwise": {f"{B}/binding.yaml": binding("root:p", wanted="gadgets")},
    "binds what is shipped": {f"{A}/binding.yaml": shipped(WORKLOAD)},
    "of another's type": {f"{A}/kid/workspace.yaml": f"{MADE}spec: {{type: {{name: gold, path: 'root:p'}}}}\n"},
    "of a type of no path": {f"{B}/kid/workspace.yaml": f"{MADE}spec: {{type: {{name: gold}}}}\n"},
    "of its own type": {f"{B}/gold.yaml": f"apiVersion: {TENANCY}\nkind: WorkspaceType\nmetadata: {{name: gold}}\n"},
    "by its cluster": {f"{A}/binding.yaml": binding("0123456789abcdef")},
    "nothing": {},
}
PUSHED = st.lists(st.tuples(st.sampled_from(["", *PEOPLE]), st.sampled_from([*EDITS])), min_size=1, max_size=3)


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("mode", ["None", "Head", "Every"])
def test_hosted_or_not_the_same_is_refused(served: Callable[..., SignedElsewhere], name: str, mode: str) -> None:
    fleet = served(treeplane_yaml())
    stage(fleet, name)
    if mode != "None":
        fleet.serve(("carol", {"treeplane.yaml": treeplane_yaml(mode)}))

    @settings(max_examples=12, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(PUSHED)
    def check(steps: list[tuple[str, str]]) -> None:
        fleet.same(*((who, EDITS[edit]) for who, edit in steps))

    check()
