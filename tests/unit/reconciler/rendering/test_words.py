"""What renderers said, as people may read it."""
# ruff: noqa: E501  (they say it in one line)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.rendering import words
from reconciler.rendering.request import Tool

TOP = "/fleet"
HERE = "workspaces/root/web"


def told(said: str, tool: Tool = Tool.KUSTOMIZE, *, top: str = TOP, blind: bool = True) -> words.FaultWords:
    return words.told(tool, HERE, said.encode(), top, blind=blind)


@pytest.mark.parametrize(
    "said",
    [
        'E1126 10:07:17.306420       1 run.go:72] "command failed" err="accumulating \\"x\\": %s"\n',
        "I1126 1:2:3 1 log.go:2] Warning: old\nE1126 10:07:18.1 27242 run.go:72] \"command failed\" err=<\n\taccumulating \"x\": %s\n >\n",
        '# Warning: commonLabels is deprecated\nerror: accumulating "x": %s\n',
    ],
)  # fmt: skip
def test_the_error_alone_with_paths_of_the_repository(said: str) -> None:
    """Neither times nor numbers of processes, which would make another fault of the same each time."""
    came = told(said % "no matches for /fleet/workspaces/root/web/a.yaml in /fleet")
    assert came.fault == 'accumulating "x": no matches for workspaces/root/web/a.yaml in .'
    assert came.hint == "try it in a clone: kubectl kustomize workspaces/root/web"


def test_charts_are_named_by_their_directory() -> None:
    said = "Error: execution error at (web/charts/db/templates/a.yaml:1:6): need a value\n\nUse --debug flag to render out invalid YAML\n"
    assert told(said, Tool.HELM).fault == (
        "execution error at (workspaces/root/web/charts/db/templates/a.yaml:1:6): need a value"
    )


@pytest.mark.parametrize(
    "said",
    [
        "accumulation err='accumulating resources from '/etc/passwd': evalsymlink failure on '/etc/passwd' : lstat /etc: no such file",
        "accumulation err='accumulating resources from '/etc/passwd': security; file '/etc/passwd' is not in or below '{top}/a'': new root '/etc/passwd' cannot be absolute",
        "accumulating resources from '/etc/passwd': something new about /etc/passwd",
        "loading KV pairs: file sources: [/etc/passwd]: evalsymlink failure on '/etc/passwd' : lstat /etc: no such file or directory",
    ],
)  # fmt: skip
def test_whether_a_path_outside_is_there_is_not_told(said: str) -> None:
    came = told("error: " + said.format(top="/data/cache/run-1"), top="/data/cache/run-1", blind=False)
    assert came.fault == "it reads /etc/passwd outside of the files that it may see"
    assert "spec.rendering.shared" in came.hint


def test_no_directory_of_the_server_is_told() -> None:
    said = "error: accumulating resources from '../../keys': evalsymlink failure on '/data/cache/keys' : lstat /data/cache/keys: no such file"
    assert "/data" not in told(said, top="/data/cache/run-1", blind=False).fault


def test_a_path_within_json_is_no_path_of_the_machine() -> None:
    said = "error: add operation does not apply: doc is missing path: /spec/template/x: missing value"
    assert "/spec/template/x" in told(said, blind=False, top="/data/run-1").fault


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (
            "accumulating resources from 'https://example.org/x.yaml': Get \"https://example.org/x.yaml\": dial tcp: lookup: socket: operation not permitted': must build",
            "it would have to fetch https://example.org/x.yaml (",
        ),
        (
            "accumulating resources from 'git::https://e.org/x.git': no 'git' program on path: exec",
            "it would have to fetch git::https://e.org/x.git (",
        ),
    ],
)  # fmt: skip
def test_what_would_be_fetched_is_named(said: str, fault: str) -> None:
    came = told(f"error: {said}")
    assert came.fault.startswith(fault)
    assert "commit a copy" in came.hint


@given(st.text(max_size=300), st.booleans())
def test_whatever_it_says_is_one_harmless_line(said: str, blind: bool) -> None:
    for tool in Tool:
        came = words.told(tool, HERE, said.encode("utf-8", "surrogatepass"), TOP, blind=blind)
        assert came.fault.strip() and came.fault.isprintable() and len(came.fault) <= words.MOST
        assert came.hint.isprintable()


def test_it_is_cut_and_takes_no_time() -> None:
    assert len(told("x" * 60_000).fault) == words.MOST
    for part in ("/a", "'", "open /", 'err="\\', "charts/a/", "[", " "):
        told(part * 30_000)
        words.told(Tool.HELM, HERE, (part * 30_000).encode(), TOP, blind=False)
