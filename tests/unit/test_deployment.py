"""How Treeplane is put on a cluster and on a machine: the chart, the plain manifests that it renders, the unit of
systemd, the image's recipe.

    TREEPLANE_GOLDEN=write pytest tests/unit/test_deployment.py      writes deploy/manifests/
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from reconciler import __main__ as program
from reconciler.commands.line import serving
from release import manifests
from release.build import CHART, MANIFESTS
from release.locks import ROOT

Object = dict[str, Any]
UNIT = ROOT / "deploy" / "systemd" / "treeplane.service"
CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
NEWEST = ("--kube-version", "1.36.0")
"""A helm that is built from its module alone takes itself for one of Kubernetes 1.20."""


def render(helm: Path, *words: str) -> str:
    command = [
        str(helm),
        "template",
        "treeplane",
        str(ROOT / CHART),
        "--namespace",
        manifests.NAMESPACE,
        *NEWEST,
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)
    return done.stdout


def rendered(helm: Path, *words: str) -> dict[str, Object]:
    """By kind, with the repository that the plain manifests name."""
    found = yaml.safe_load_all(render(helm, "--set", f"repository={manifests.EXAMPLE}", *words))
    return {each["kind"]: each for each in found if each}


@pytest.fixture(scope="module")
def objects() -> dict[str, Object]:
    """Of the plain manifests, by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((ROOT / MANIFESTS).read_text())}


def pod(objects: dict[str, Object]) -> Object:
    found: Object = objects["Deployment"]["spec"]["template"]["spec"]
    return found


class TestPlain:
    def test_two_servers_never_run_on_one_volume(self, objects: dict[str, Object]) -> None:
        spec = objects["Deployment"]["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
        assert objects["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteOnce"]

    def test_uninstalling_keeps_keys_and_the_installation(self, objects: dict[str, Object]) -> None:
        assert objects["PersistentVolumeClaim"]["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        [data] = [each for each in pod(objects)["volumes"] if each["name"] == "data"]
        assert data["persistentVolumeClaim"]["claimName"] == objects["PersistentVolumeClaim"]["metadata"]["name"]

    def test_no_probe_ends_a_first_load_or_an_observer(self, objects: dict[str, Object]) -> None:
        [container] = pod(objects)["containers"]
        asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
        assert {name: get["path"] for name, get in asked.items()} == {
            "startup": "/livez",
            "liveness": "/livez",
            "readiness": "/readyz",
        }
        assert {(get["port"], get["scheme"]) for get in asked.values()} == {("https", "HTTPS")}

    def test_it_has_no_more_rights_than_it_needs(self, objects: dict[str, Object]) -> None:
        spec = pod(objects)
        [container] = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert not spec["automountServiceAccountToken"]
        assert not spec["enableServiceLinks"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} & objects.keys()
        assert {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")} == {
            "/var/lib/treeplane",
            "/tmp",
        }

    def test_its_settings_are_ones_that_the_program_takes(
        self, objects: dict[str, Object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[Any] = []
        monkeypatch.setattr(serving, "up_command", told.append)
        for name in [each for each in os.environ if each.startswith("TREEPLANE_")]:
            monkeypatch.delenv(name)
        [container] = pod(objects)["containers"]
        file = tmp_path / "treeplane.yaml"
        file.write_text(objects["ConfigMap"]["data"]["treeplane.yaml"])
        words = [str(file) if word == "/etc/treeplane/treeplane.yaml" else word for word in container["args"]]
        done = CliRunner().invoke(program.main, words)
        assert done.exit_code == 0, done.output
        [settings] = told
        assert settings.common.data_dir == Path("/var/lib/treeplane/data")
        assert settings.starting.repository == manifests.EXAMPLE
        assert settings.starting.listen.port == container["ports"][0]["containerPort"]
        assert settings.serving.external_url == "https://treeplane.treeplane.svc:6443"


class TestChart:
    def test_the_plain_manifests_are_what_it_renders(self, helm: Path) -> None:
        found = manifests.plain(render(helm, "--set", f"repository={manifests.EXAMPLE}"))
        if os.environ.get("TREEPLANE_GOLDEN") == "write":
            (ROOT / MANIFESTS).write_text(manifests.text(found))
        assert manifests.text(found) == (ROOT / MANIFESTS).read_text()

    def test_helm_finds_nothing_wrong(self, helm: Path) -> None:
        command = [
            str(helm),
            "lint",
            "--strict",
            str(ROOT / CHART),
            "--set",
            "repository=https://git.example.org/f.git",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            ((), "give the URL of the repository"),
            (("--set", "repository=https://x/y,repositorySecret.name=z"), "give one of them"),
            (("--set", "repository=https://x/y,config.listen=here"), "the chart sets it itself"),
            (("--set", "repository=https://x/y,replicas=2"), "replicas"),
            (("--set", "repository=https://x/y,externalUrl=http://x"), "externalUrl"),
        ],
    )
    def test_what_does_not_fit_is_refused_with_its_name(self, helm: Path, words: tuple[str, ...], why: str) -> None:
        with pytest.raises(ValueError, match=why):
            render(helm, *words)

    def test_a_credential_stays_in_a_secret(self, helm: Path) -> None:
        said = render(helm, "--set", "repositorySecret.name=fleet")
        found = {each["kind"]: each for each in yaml.safe_load_all(said) if each}
        assert "repository" not in yaml.safe_load(found["ConfigMap"]["data"]["treeplane.yaml"])
        [_, variable] = pod(found)["containers"][0]["env"]
        assert variable["name"] == "TREEPLANE_REPOSITORY"
        assert variable["valueFrom"] == {"secretKeyRef": {"name": "fleet", "key": "repository"}}

    def test_what_can_be_chosen(self, helm: Path) -> None:
        digest = f"sha256:{'0' * 64}"
        choices = ("serviceMonitor.enabled=true", f"image.digest={digest}", "persistence.existingClaim=mine")
        found = rendered(helm, *(word for each in choices for word in ("--set", each)), "--set", "config.branch=trunk")
        assert pod(found)["containers"][0]["image"] == f"treeplane@{digest}"
        assert "PersistentVolumeClaim" not in found
        assert yaml.safe_load(found["ConfigMap"]["data"]["treeplane.yaml"])["branch"] == "trunk"
        [endpoint] = found["ServiceMonitor"]["spec"]["endpoints"]
        assert (endpoint["path"], endpoint["scheme"], endpoint["port"]) == ("/metrics", "https", "https")
        assert "insecureSkipVerify" not in endpoint["tlsConfig"]

    def test_a_platform_may_choose_the_user(self, helm: Path) -> None:
        nulls = [f"securityContext.{name}=null" for name in ("runAsUser", "runAsGroup", "fsGroup")]
        spec = pod(rendered(helm, *(word for each in nulls for word in ("--set", each))))
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & spec["securityContext"].keys()
        assert spec["securityContext"]["runAsNonRoot"]

    def test_its_values_fit_their_schema_which_names_each(self) -> None:
        values = yaml.safe_load((ROOT / CHART / "values.yaml").read_text())
        schema = json.loads((ROOT / CHART / "values.schema.json").read_text())
        jsonschema.validate(values, schema)
        assert schema["properties"].keys() == {*values, "global"}


class TestUnit:
    def test_it_runs_what_is_installed_with_what_is_said_to_be_written(self) -> None:
        unit = configparser.RawConfigParser(strict=False, delimiters=("=",))
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read(UNIT)
        service = unit["Service"]
        assert service["ExecStart"].split()[1:] == [
            "up", "--config", "/etc/treeplane/treeplane.yaml", "--data-dir", "/var/lib/treeplane/data",
        ]  # fmt: skip
        assert service["StateDirectory"] == "treeplane"
        assert service["RestartPreventExitStatus"] == "2"

    def test_systemd_takes_it_and_finds_it_bounded(self, tmp_path: Path) -> None:
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            pytest.skip("no systemd-analyze")
        unit = tmp_path / "treeplane.service"
        unit.write_text(UNIT.read_text().replace("/opt/treeplane/bin/treeplane", "/bin/true"))
        done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        command = [analyze, "security", "--offline=yes", "--threshold=30", str(unit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout.splitlines()[-1]


class TestImage:
    def test_its_recipe(self) -> None:
        """What can be said without building it (tests/e2e/test_image.py does)."""
        lines = re.sub(r"\\\n", " ", CONTAINERFILE.read_text()).splitlines()
        steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
        names = [name for name, _ in steps]
        assert names.count("FROM") == 2
        last = steps[len(names) - 1 - names[::-1].index("FROM") :]
        assert ["USER", "65532:65532"] in last
        assert [each for each in last if each[0] == "ENTRYPOINT"] == [["ENTRYPOINT", '["treeplane"]']]
        copied = [word for name, said in steps if name == "COPY" and "--from" not in said for word in said.split()[:-1]]
        for each in copied:
            assert each.startswith("dist/") or (ROOT / each).exists(), each
        assert any("--require-hashes" in said for _, said in steps)
