"""What is written is what is read again, by PyYAML and by kubectl."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.plugin import yamltext

_TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["", "yes", "No", "~", "null", "1", "1e3", "0x1f", "1:30", "2001-01-01", "=", "a: b", "a #b", "- a", ".inf", "a:"]
)
_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES)
def test_what_is_written_is_read_as_it_was(value: Any) -> None:
    assert yaml.safe_load(yamltext.written(value)) == value


def kubeconfig(text: str) -> dict[str, Any]:
    cluster = {"server": "https://x:1/clusters/root", "certificate-authority-data": "LS0t", "tls-server-name": text}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "workspace.kcp.io/current", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": text}}],
        "contexts": [{"name": "yes", "context": {"cluster": "workspace.kcp.io/current", "user": "u"}}],
        "current-context": "yes",
        "preferences": {},
    }


@pytest.mark.parametrize("text", ["yes", "12", "a: b", "ä\u2028\x85\x7f\U0001f600", "'\"\\\n\t", "0o7", "1_000", "<<"])
def test_kubectl_reads_it_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(yamltext.written(kubeconfig(text)))
    command = ["kubectl", "config", "view", "--raw", "-o", "json", f"--kubeconfig={file}"]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout) == kubeconfig(text)
    # And this is how one that has no PyYAML reads it.
    by_yaml = yamltext.read(file)
    monkeypatch.setattr(yamltext, "yaml", None)
    assert yamltext.read(file) == by_yaml == kubeconfig(text)


def test_json_is_read_by_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamltext, "yaml", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "config").write_text(json.dumps(kubeconfig("a")))
    assert yamltext.read(tmp_path / "config") == kubeconfig("a")


def test_why_it_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    file.write_text("a: [")
    with pytest.raises(yamltext.UnreadableYaml, match="did not find expected node content"):
        yamltext.read(file)
    monkeypatch.setattr(yamltext, "yaml", None)
    with pytest.raises(yamltext.UnreadableYaml, match="config"):
        yamltext.read(file)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(yamltext.UnreadableYaml, match="kubectl, which reads it, is not on PATH"):
        yamltext.read(file)
