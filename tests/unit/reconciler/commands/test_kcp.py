"""`treeplane kcp start`: kcp's flags, and the fleet that it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler import __main__ as program
from reconciler.commands import kcp
from reconciler.commands.settings import Address, UpSettings
from reconciler.commands.validate import validate_path


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[UpSettings]:
    """What `up` is told, which does not run."""
    found: list[UpSettings] = []
    monkeypatch.setattr(kcp, "up", found.append)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".kcp"


def start(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(program.main, ["kcp", "start", f"--root-directory={root}", *arguments])


def test_kcps_flags_are_what_up_is_told(told: list[UpSettings], root: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("tokens.csv", "clients.crt", "tls.crt", "tls.key")}
    for file in files.values():
        file.touch()
    done = start(
        root,
        "--bind-address=127.0.0.1",
        "--secure-port=7443",
        f"--kubeconfig-path={tmp_path / 'mine.kubeconfig'}",
        f"--token-auth-file={files['tokens.csv']}",
        f"--client-ca-file={files['clients.crt']}",
        f"--tls-cert-file={files['tls.crt']}",
        f"--tls-private-key-file={files['tls.key']}",
        "--shard-external-url=https://kcp.example:6443",
        "--logical-cluster-total-object-limit=100",
    )
    assert (done.exit_code, done.output) == (0, "")
    [settings] = told
    assert (settings.starting.listen, settings.common.data_dir) == (Address("127.0.0.1", 7443), root)
    assert settings.common.keys_dir == root / "keys"
    assert settings.starting.kubeconfig == tmp_path / "mine.kubeconfig"
    assert settings.starting.command[1:] == ("up", "--data-dir", str(root), "--listen", "127.0.0.1:7443")
    assert settings.starting.serving_files == root / "apiserver"
    assert settings.serving.token_auth_file == files["tokens.csv"]
    assert settings.serving.client_ca_file == files["clients.crt"]
    assert settings.serving.tls_cert_file == files["tls.crt"]
    assert settings.serving.tls_private_key_file == files["tls.key"]
    assert settings.common.most_objects == 100
    assert settings.serving.external_url == "https://kcp.example:6443"


def test_without_flags_it_is_as_kcp(told: list[UpSettings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(program.main, ["kcp", "start"]).exit_code == 0
    [settings] = told
    assert settings.starting.listen == Address("0.0.0.0", 6443)
    assert settings.starting.kubeconfig == tmp_path / ".kcp" / "admin.kubeconfig"


def test_other_flags_are_ignored_with_a_line(told: list[UpSettings], root: Path) -> None:
    done = start(root, "--feature-gates", "A=true", "--run-controllers=true", "-v=4", "--audit-log-path", "-")
    assert done.exit_code == 0, done.output
    assert done.output == "not known here, and ignored: --feature-gates, --run-controllers, -v, --audit-log-path\n"
    assert len(told) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["surprise"], "unexpected argument: surprise"),
        (["--bind-address=everywhere"], "'everywhere' does not appear to be an IPv4 or IPv6 address"),
        (["--secure-port=many"], "'many' is not a valid integer"),
    ],
)
def test_what_is_wrong_is_said(told: list[UpSettings], root: Path, arguments: list[str], text: str) -> None:
    done = start(root, *arguments)
    assert (done.exit_code, told) == (2, [])
    assert text in done.output


def test_the_fleet_is_good_and_made_once(told: list[UpSettings], root: Path) -> None:
    assert start(root, "--home-workspaces-home-creator-groups=devs,ops").output == ""
    directory = root / "fleet"
    assert told[0].starting.repository == str(directory)
    assert not validate_path(directory).problems
    fleet = yaml.safe_load((directory / "treeplane.yaml").read_text())
    assert fleet["spec"] == {"writes": "Store", "rootAccess": "Authenticated"}
    file = directory / "workspaces" / "root" / "home-creators.yaml"
    _, binding = yaml.safe_load_all(file.read_text())
    assert [subject["name"] for subject in binding["subjects"]] == ["devs", "ops"]

    assert start(root, "--home-workspaces-home-creator-groups=devs,ops").output == ""
    before = file.read_text()
    assert start(root).output == f"{file} is as it was made or changed before: what it says counts, not the flags\n"
    assert file.read_text() == before


def test_a_directory_that_cannot_be_used(told: list[UpSettings], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done: Any = start(tmp_path / "file")
    assert (done.exit_code, told) == (3, [])
    assert "Not a directory" in done.output
