"""`treeplane bind` and `treeplane claims`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from support.fakeworkspaces import Fake

from reconciler.__main__ import main
from reconciler.plugin import waiting

SECRETS = {"resource": "secrets", "verbs": ["get", "list"]}
ORDERS = {"group": "shop.example", "resource": "orders", "identityHash": "abc", "verbs": ["*"]}
ALL = {"selector": {"matchAll": True}}


class Treeplane:
    """`treeplane("bind", …)` in this process."""

    def __init__(self, config: Path) -> None:
        self._config = config

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, [*arguments, "--kubeconfig", str(self._config)])


@pytest.fixture
def treeplane(config: Path, monkeypatch: pytest.MonkeyPatch) -> Treeplane:
    monkeypatch.setattr(waiting, "_FIRST", 0.001)
    return Treeplane(config)


@pytest.fixture(autouse=True)
def export(fake: type[Fake]) -> None:
    fake.objects["apiexports/db"] = {"spec": {"permissionClaims": [SECRETS, {**ORDERS, "defaultSelector": SELECTED}]}}


SELECTED = {"matchLabels": {"a": "b"}}


# -- bind


@pytest.mark.parametrize("what", [["root:shop:db"], ["apiexport", "root:shop:db"]])
def test_an_export_is_bound(treeplane: Treeplane, fake: type[Fake], what: list[str]) -> None:
    fake.phases[:] = ["Binding", "Binding", "Bound"]
    done = treeplane("bind", *what)
    assert done.stdout == "apibinding db created. Waiting to successfully bind ...\ndb created and bound.\n"
    assert done.exit_code == 0
    assert fake.objects["apibindings/db"] == {
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {"name": "db"},
        "spec": {"reference": {"export": {"path": "root:shop", "name": "db"}}},
    }


def test_what_was_bound_is_data_and_the_words_stand_beside_it(treeplane: Treeplane, fake: type[Fake]) -> None:
    fake.phases[:] = ["Bound"]
    done = treeplane("bind", "root:shop:db", "-o", "json")
    assert json.loads(done.stdout)["metadata"]["name"] == "db"
    assert done.stderr.endswith("db created and bound.\n")


def test_a_dry_run_shows_the_manifest_and_binds_nothing(treeplane: Treeplane, fake: type[Fake]) -> None:
    assert treeplane("bind", "root:shop:db", "--dry-run").stdout == "apibinding db created (dry run)\n"
    done = treeplane("bind", "root:shop:db", "--dry-run", "-o", "yaml", "--accept-permission-claim", "secrets")
    assert yaml.safe_load(done.stdout)["spec"]["permissionClaims"] == [{**SECRETS, **ALL, "state": "Accepted"}]
    assert "apibindings/db" not in fake.objects
    assert treeplane("bind", "db", "--dry-run").exit_code == 2


@pytest.mark.parametrize(
    ("options", "claims"),
    [
        (
            ["--accept-all-permission-claims"],
            [{**SECRETS, **ALL, "state": "Accepted"}, {**ORDERS, "selector": SELECTED, "state": "Accepted"}],
        ),
        (
            ["--reject-permission-claim", "orders.shop.example", "--accept-permission-claim", "secrets.core"],
            [{**SECRETS, **ALL, "state": "Accepted"}, {**ORDERS, "selector": SELECTED, "state": "Rejected"}],
        ),
    ],
)
def test_claims_are_answered_with_the_exports_verbs_and_identities(
    treeplane: Treeplane, fake: type[Fake], options: list[str], claims: Any
) -> None:
    fake.phases[:] = ["Bound"]
    assert treeplane("bind", "root:shop:db", "--name", "mine", *options).exit_code == 0
    assert fake.objects["apibindings/mine"]["spec"]["permissionClaims"] == claims


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["db"], '"db" is not <path of a workspace>:<name of an APIExport>'),
        (["root::db"], '"root::db" is not'),
        (["root:shop:db", "other:db"], "name one export"),
        (["root:shop:db", "--timeout", "soon"], "'soon' is no time"),
        (["root:shop:db", "--accept-permission-claim", "pods"], "claims no pods, but secrets, orders.shop.example:abc"),
        (
            ["root:shop:db", "--accept-permission-claim", "secrets", "--reject-permission-claim", "secrets"],
            "a claim cannot be both accepted and rejected: secrets",
        ),
        (
            ["root:shop:db", "--accept-permission-claim", "secrets", "--reject-all-permission-claims"],
            "either all claims have one answer, or each has its own",
        ),
        (["root:shop:nope", "--accept-all-permission-claims"], 'failed to get APIExport "nope"'),
    ],
)
def test_what_cannot_be_bound(treeplane: Treeplane, fake: type[Fake], arguments: list[str], text: str) -> None:
    done = treeplane("bind", *arguments)
    assert done.exit_code in (2, 3)
    assert text in done.stderr
    assert "apibindings/db" not in fake.objects


def test_who_may_not_bind_reads_the_servers_words(treeplane: Treeplane, fake: type[Fake]) -> None:
    fake.refused = "unable to create APIBinding: no permission to bind to export root:shop:db"
    done = treeplane("bind", "root:shop:db")
    assert (done.exit_code, done.stderr) == (3, f"Error: {fake.refused}\n")


def test_time_is_over(treeplane: Treeplane, fake: type[Fake]) -> None:
    fake.phases[:] = ["Binding"]
    done = treeplane("bind", "root:shop:db", "--timeout", "0.01s")
    assert done.exit_code == 1
    assert "Error: could not bind db within 0.01 s; see kubectl get apibinding db -o yaml" in done.stderr
    assert "an initializer is still at work" in done.stderr, "what it says that it lacks"


# -- claims


def binding(*said: Any) -> Any:
    return {
        "metadata": {"name": "b", "resourceVersion": "7"},
        "spec": {"reference": {"export": {"name": "db"}}, "permissionClaims": list(said)},
        "status": {"exportPermissionClaims": [SECRETS, ORDERS]},
    }


def test_claims_are_shown(treeplane: Treeplane, fake: type[Fake]) -> None:
    fake.objects["apibindings/b"] = binding({**SECRETS, **ALL, "state": "Accepted"}, {**ORDERS, "state": "Rejected"})
    table = (
        "APIBINDING   GROUP-RESOURCE        VERBS      STATUS\n"
        "b            secrets               get,list   Accepted\n"
        "b            orders.shop.example   *          Rejected\n"
    )
    for arguments in (["get", "apibinding"], ["get", "apibinding", "b"]):
        assert treeplane("claims", *arguments).stdout == table
    assert treeplane("claims", "get", "apibinding", "nope").stderr == 'Error: apibindings "nope" not found\n'


@pytest.mark.parametrize(
    ("options", "told", "states"),
    [
        (["--resource", "secrets"], 'claim "secrets" on', {"secrets": "Accepted"}),
        (["--identity-hash", "abc"], 'claim with identity hash "abc" on', {"orders": "Accepted"}),
        ([], "every claim on", {"secrets": "Accepted", "orders": "Accepted"}),
    ],
)
def test_claims_are_accepted(
    treeplane: Treeplane, fake: type[Fake], options: list[str], told: str, states: dict[str, str]
) -> None:
    """Those that the binding does not say yet, too."""
    fake.objects["apibindings/b"] = binding()
    done = treeplane("claims", "accept", "b", *options)
    assert done.stdout == f'{told} APIBinding "b" is accepted\n'
    done = treeplane("claims", "accept", "b", *options, "-o", "json")
    assert "Accepted" in [each["state"] for each in json.loads(done.stdout)]
    assert done.stderr == f'{told} APIBinding "b" is accepted\n'
    written = fake.objects["apibindings/b"]
    assert {claim["resource"]: claim["state"] for claim in written["spec"]["permissionClaims"]} == states
    assert written["metadata"]["resourceVersion"] == "7", "so that nobody's change is lost"
    assert treeplane("claims", "reject", "b", *options).stdout == f'{told} APIBinding "b" is rejected\n'
    found = fake.objects["apibindings/b"]["spec"]["permissionClaims"]
    assert {claim["resource"] for claim in found if claim["state"] == "Rejected"} == set(states)


def test_what_others_wrote_does_nothing_to_a_terminal(treeplane: Treeplane, fake: type[Fake]) -> None:
    fake.objects["apibindings/b"] = binding({**SECRETS, "verbs": ["\x1b[2J", "\u202eteg"], "state": "Accepted"})
    said = treeplane("claims", "get").stdout
    assert "\\x1b[2J,\\u202eteg" in said
    assert said.replace("\n", "").isprintable()
    fake.refused = "no\x1b]0;\x07"
    assert treeplane("bind", "root:shop:db").stderr == "Error: no\\x1b]0;\\x07\n"


def test_a_claim_that_is_not_there(treeplane: Treeplane, fake: type[Fake]) -> None:
    fake.objects["apibindings/b"] = binding()
    done = treeplane("claims", "accept", "b", "--resource", "pods")
    assert (done.exit_code, done.stderr) == (3, 'Error: APIBinding "b" has no claim "pods"\n')
