"""kcp's own plugins of kubectl, as kcp builds them, against `treeplane kcp start`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.kcpplane import KcpPlane
from support.plane import PlaneError

EXPORT = """\
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: gadgets}
spec:
  resources: [{name: gadgets, group: example.io, schema: today.gadgets.example.io, storage: {crd: {}}}]
  permissionClaims: [{group: "", resource: configmaps, verbs: [get, list]}, {resource: secrets, verbs: ["*"]}]
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.io}
spec:
  group: example.io
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
"""
GADGET = "apiVersion: example.io/v1\nkind: Gadget\nmetadata: {name: one}\n"


class Plugins:
    """`ws("tree")`, `kcp("bind", …)`: what they print, as the administrator."""

    def __init__(self, server: KcpPlane, folder: Path) -> None:
        self.server, self._folder = server, folder

    def ws(self, *arguments: str) -> str:
        return self._run("kubectl-ws", *arguments)

    def kcp(self, *arguments: str, stdin: str = "") -> str:
        return self._run("kubectl-kcp", *arguments, stdin=stdin)

    def create(self, *arguments: str) -> str:
        return self._run("kubectl-create-workspace", *arguments)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.server.run("kubectl", *arguments, stdin=stdin)

    def _run(self, program: str, *arguments: str, stdin: str = "") -> str:
        return self.server.run(str(self._folder / program), *arguments, stdin=stdin)


@pytest.fixture
def plugins(kcp_plugins: Path, tmp_path: Path) -> Iterator[Plugins]:
    with KcpPlane("", tmp_path / "kcp" / ".kcp") as server:
        yield Plugins(server, kcp_plugins)


def test_workspaces_are_made_entered_and_shown(plugins: Plugins) -> None:
    made = plugins.ws("create", "team", "--enter")
    assert 'Workspace "team" (type root:organization) is ready to use.' in made
    assert plugins.ws(".") == "Current workspace is 'root:team'.\n"
    assert 'Workspace "inner" (type root:universal) is ready to use.' in plugins.create("inner")
    assert plugins.ws("tree") == ".\n└── team\n    └── inner\n\n"
    assert plugins.ws("use", "inner") == "Current workspace is 'root:team:inner' (type root:universal).\n"
    assert plugins.ws("..") == "Current workspace is 'root:team'.\n"
    assert plugins.ws("-") == "Current workspace is 'root:team:inner'.\n"
    assert plugins.ws(":root:team", "--short") == "root:team\n"
    with pytest.raises(PlaneError, match='workspace "root:team:nope" not found'):
        plugins.ws("nope")
    assert 'Created context "mine"' in plugins.ws("create-context", "mine")


def test_everybody_has_a_home(plugins: Plugins) -> None:
    assert "'user:kcp-admin'" in plugins.ws("~")
    assert 'Workspace "mine"' in plugins.create("mine", "--enter")
    assert plugins.ws(".", "--short") == "user:kcp-admin:mine\n"


def test_an_api_is_made_bound_and_its_claims_are_answered(plugins: Plugins) -> None:
    plugins.ws("create", "team", "--enter")
    schema = plugins.kcp("crd", "snapshot", "-f", "-", "--prefix", "today", stdin=DEFINITION)
    [made] = filter(None, yaml.safe_load_all(schema))
    assert made["metadata"]["name"] == "today.gadgets.example.io"
    plugins.kubectl("apply", "-f", "-", stdin=f"{schema}\n---\n{EXPORT}")
    plugins.ws("create", "taker", "--enter")
    asked = ("--accept-permission-claim", "configmaps.core", "--reject-permission-claim", "secrets.core")
    assert "gadgets created and bound." in plugins.kcp("bind", "apiexport", "root:team:gadgets", *asked)
    assert claims(plugins) == {"configmaps": "Accepted", "secrets": "Rejected"}
    plugins.kcp("claims", "accept", "gadgets", "--resource", "secrets.core")
    assert claims(plugins) == {"configmaps": "Accepted", "secrets": "Accepted"}
    plugins.kubectl("apply", "-f", "-", stdin=GADGET)
    assert plugins.kubectl("get", "gadgets", "-o", "name") == "gadget.example.io/one\n"


def claims(plugins: Plugins) -> dict[str, str]:
    """States by resource, as the plugin prints them."""
    _, *rows = plugins.kcp("claims", "get", "apibinding", "gadgets").splitlines()
    return {columns[1]: columns[-1] for columns in map(str.split, rows)}


def test_its_quickstart_is_there_and_goes(plugins: Plugins) -> None:
    assert "Quickstart complete!" in plugins.kcp("quickstart")
    plugins.ws(":root:quickstart-org:quickstart-consumer")
    assert "cowboys" in plugins.kubectl("api-resources", "--api-group=wildwest.dev", "-o", "name")
    plugins.ws(":root")
    assert "Cleanup complete." in plugins.kcp("quickstart", "--cleanup")
    assert "quickstart" not in plugins.ws("tree")
