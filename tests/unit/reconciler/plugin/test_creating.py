"""`kubectl ws create`, `create-context` and `~`, and what is told of claims on the way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from support.fakeworkspaces import Fake

from reconciler.plugin import waiting, ws

READY = 'Workspace "x" (type root:universal) is ready to use.\n'


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Here:
    """`here("create", "x")` in this process."""

    def __init__(self, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._config, self._capsys = config, capsys

    def __call__(self, *arguments: str) -> Done:
        code = ws.run(["--kubeconfig", str(self._config), *arguments], "kubectl ws")
        return Done(code, *self._capsys.readouterr())

    def current(self) -> str:
        """The server of the current context."""
        found = yaml.safe_load(self._config.read_text())
        context = next(c["context"] for c in found["contexts"] if c["name"] == found["current-context"])
        server: str = next(c["cluster"]["server"] for c in found["clusters"] if c["name"] == context["cluster"])
        return server


@pytest.fixture
def here(config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.setattr(waiting, "_FIRST", 0.001)
    return Here(config, capsys)


def test_one_that_is_ready_at_once(here: Here, fake: type[Fake], url: str) -> None:
    assert here("create", "x") == Done(0, READY, "")
    assert fake.made["x"] == {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "x"},
        "spec": {"type": {"path": "root", "name": "universal"}},
    }
    assert here.current() == f"{url}/clusters/root"


def test_what_was_made_is_data_and_the_words_stand_beside_it(here: Here, fake: type[Fake]) -> None:
    fake.phases[:] = ["Scheduling", "Ready"]
    done = here("create", "x", "--create-context", "mine", "-o", "json")
    assert json.loads(done.out)["metadata"]["name"] == "x"
    assert done.err.endswith(f'{READY}Created context "mine".\n')
    assert yaml.safe_load(here("create-context", "here", "-o", "yaml").out) == {
        "context": "here", "server": here.current(), "created": True, "switched": True,
    }  # fmt: skip


def test_one_that_takes_its_time(here: Here, fake: type[Fake]) -> None:
    fake.phases[:] = ["Scheduling", "Scheduling", "Initializing", "Ready"]
    said = 'Workspace "x" (type root:universal) created. Waiting for it to be ready...\n'
    assert here("create", "x") == Done(0, said + READY, "")


def test_time_is_over(here: Here, fake: type[Fake]) -> None:
    fake.phases[:] = ["Initializing"]
    done = here("create", "x", "--timeout", "0.01")
    assert done.code == 1
    assert (
        'Error: workspace "x" is not ready after 0.01 s, it is Initializing; see kubectl get ws x -o yaml' in done.err
    )
    assert "WorkspaceInitialized: an initializer is still at work" in done.err
    asked = [path for path in fake.asked if path.endswith("/workspaces/x")]
    assert len(asked) < 8, "it does not ask all the time"


def test_going_there(here: Here, url: str) -> None:
    told = "Current workspace is 'root:x' (type root:universal).\n"
    assert here("create", "x", "--enter") == Done(0, READY + told, "")
    assert here.current() == f"{url}/clusters/root:x"


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("Team", {"path": "root", "name": "team"}),
        ("root:team", {"path": "root", "name": "team"}),
        ("root:shop:shelf", {"path": "root:shop", "name": "shelf"}),
    ],
)
def test_its_type(here: Here, fake: type[Fake], typed: str, sent: Any) -> None:
    assert here("create", "--type", typed, "x").code == 0
    assert fake.made["x"]["spec"] == {"type": sent}


@pytest.mark.parametrize(
    ("typed", "selector"),
    [
        ("region=eu, tier==a", {"matchLabels": {"region": "eu", "tier": "a"}}),
        (
            "region=eu,a!=b,tier in (x, y),zone notin (z),ssd,!old",
            {
                "matchLabels": {"region": "eu"},
                "matchExpressions": [
                    {"key": "a", "operator": "NotIn", "values": ["b"]},
                    {"key": "tier", "operator": "In", "values": ["x", "y"]},
                    {"key": "zone", "operator": "NotIn", "values": ["z"]},
                    {"key": "ssd", "operator": "Exists"},
                    {"key": "old", "operator": "DoesNotExist"},
                ],
            },
        ),
    ],
)
def test_its_location(here: Here, fake: type[Fake], typed: str, selector: Any) -> None:
    assert here("create", "x", "--location-selector", typed).code == 0
    assert fake.made["x"]["spec"]["location"] == {"selector": selector}


@pytest.mark.parametrize("typed", ["a=b c", "=b", "!a=b", "a in x", "a in (x", ",", "a=b,,c"])
def test_a_location_that_is_none(here: Here, fake: type[Fake], typed: str) -> None:
    assert here("create", "x", "--location-selector", typed).err.startswith("Error: invalid location selector: ")
    assert fake.made == {}


def test_one_that_is_there(here: Here, fake: type[Fake]) -> None:
    here("create", "x")
    assert here("create", "x") == Done(3, "", 'Error: workspaces "x" already exists\n')
    fake.phases[:] = ["Scheduling", "Ready"]
    told = 'Workspace "x" (type root:universal) already exists.'
    assert here("create", "x", "--ignore-existing").out == f"{told} Waiting for it to be ready...\n{READY}"
    assert here("create", "x", "--ignore-existing", "--type=root:universal").out == f"{told}\n{READY}"


def test_one_that_is_there_and_another(here: Here) -> None:
    here("create", "x")
    assert here("create", "x", "--ignore-existing", "--type", "root:team").err == (
        'Error: workspace "x" cannot be created with type root:team, it already exists with different type '
        "root:universal\n"
    )
    assert here("create", "x", "--ignore-existing", "--type", "team").err == (
        "Error: --ignore-existing must not be used with non-absolute type path\n"
    )


def test_interrupted(here: Here, fake: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    fake.phases[:] = ["Scheduling"]
    monkeypatch.setattr(waiting.time, "sleep", interrupted)
    done = here("create", "x")
    assert (done.code, done.err) == (130, "")


# -- contexts


def test_a_context_for_where_one_is(here: Here, config: Path, url: str) -> None:
    assert here("create-context", "mine") == Done(0, 'Created context "mine" and switched to it.\n', "")
    assert yaml.safe_load(config.read_text())["current-context"] == "mine"
    assert here.current() == f"{url}/clusters/root"
    here("shop")
    assert here("create-context", "mine").err == (
        'Error: context "mine" already exists in kubeconfig, use --overwrite to update it\n'
    )
    assert here("create-context", "mine", "--overwrite").out == 'Updated context "mine" and switched to it.\n'
    assert here("create-context", "mine", "--overwrite").out == 'Updated context "mine".\n'
    assert here.current() == f"{url}/clusters/root:shop"
    assert here("create-context").out == 'Created context "root:shop" and switched to it.\n'


def test_a_context_for_one_that_is_made(here: Here, config: Path, url: str) -> None:
    assert here("create", "x", "--create-context", "mine").out == f'{READY}Created context "mine".\n'
    assert here.current() == f"{url}/clusters/root"
    made = here("create", "x", "--create-context=mine", "--ignore-existing", "--enter").out
    assert made.endswith('Updated context "mine" and switched to it.\n')
    assert here.current() == f"{url}/clusters/root:x"


# -- home


def test_a_server_without_homes_says_so(here: Here) -> None:
    assert here("~").err == (
        "Error: this server has no home workspaces; a workspace is made with: kubectl ws create NAME\n"
    )


@pytest.mark.parametrize("typed", ["~", str(Path.home())])
def test_home(here: Here, fake: type[Fake], url: str, typed: str) -> None:
    """It is made when it is asked for."""
    fake.home[:] = [(429, {}), (200, {"spec": {"URL": "https://else/clusters/root:shop"}})]
    assert here(typed).out == "Current workspace is 'root:shop' (type root:universal).\n"
    assert here("~:web").out == "Current workspace is 'root:shop:web' (type root:universal).\n"
    assert here.current() == f"{url}/clusters/root:shop:web"


def test_a_home_stands_in_no_workspace(here: Here, fake: type[Fake]) -> None:
    fake.tree["user"] = ["ann"]
    fake.tree["user:ann"] = ["web"]
    assert here(":user:ann").out == "Current workspace is 'user:ann' (type root:universal).\n"
    assert here("web").out == "Current workspace is 'user:ann:web' (type root:universal).\n"
    assert here("..").out == "Current workspace is 'user:ann' (type root:universal).\n"
    assert here("..").err == 'Error: current workspace is "user:ann": it has no parent\n'


def test_no_home_for_this_user(here: Here, fake: type[Fake]) -> None:
    fake.home[:] = [(403, {"message": "workspace access not permitted"})]
    assert here("~").err == "Error: workspace access not permitted\n"


# -- claims


def binding(*said: Any) -> Any:
    exported = [{"resource": "secrets", "verbs": ["get"]}, {"group": "apps", "resource": "deployments", "verbs": ["*"]}]
    spec, status = {"permissionClaims": list(said)}, {"exportPermissionClaims": exported}
    return {"metadata": {"name": "b"}, "spec": spec, "status": status}


def test_claims_that_nobody_answered_are_told(here: Here, fake: type[Fake]) -> None:
    fake.objects["apibindings/b"] = binding({"resource": "secrets", "verbs": ["get"]})
    done = here("shop")
    assert done.out == "Current workspace is 'root:shop' (type root:universal).\n"
    assert done.err == (
        "Warning: claim for secrets specified on APIBinding b but not accepted or rejected.\n"
        "Warning: claim for deployments.apps exported but not specified on APIBinding b\n"
        "Add this claim to the APIBinding's Spec.\n"
    )
    answered = [
        {"resource": "secrets", "verbs": ["*"], "state": "Accepted"},
        {"group": "apps", "resource": "deployments", "verbs": [], "state": "Rejected"},
    ]
    fake.objects["apibindings/b"] = binding(*answered)
    assert here("..").err == (
        "Warning: allowed verbs (*) on claim for secrets on APIBinding b do not match expected verbs (get).\n"
    )


# -- what is not there


def test_what_is_hidden_and_not_there(here: Here, fake: type[Fake]) -> None:
    """Who may read the parent is told that there is nothing."""
    fake.denied |= {"root:nope", "root:shop:db"}
    assert here("nope").err == 'Error: workspace "root:nope" not found\n'
    assert here("root:shop:db").err == 'Error: access to workspace "root:shop:db" denied\n'


def test_help_names_the_program(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, usage in (
        (["--help"], "usage: treeplane ws "),
        (["create", "-h"], "usage: treeplane ws create "),
        (["create-context", "-h"], "usage: treeplane ws create-context "),
    ):
        with pytest.raises(SystemExit) as ended:
            ws.run(arguments, "treeplane ws")
        assert ended.value.code == 0
        assert re.match(re.escape(usage), capsys.readouterr().out)
