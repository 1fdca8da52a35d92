"""What a file and the environment say of options: in which order, under which names, and what is refused where."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconciler import __main__ as program
from reconciler.commands.configuration import CONFIG, Configuration, KnownOption
from reconciler.commands.line import kcp, serving
from reconciler.commands.options import TREES, known
from reconciler.commands.settings import Address, UpSettings

TOP = Path(__file__).parents[4]
Up = Callable[..., Any]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    monkeypatch.setattr(serving, "up_command", found.append)
    for name in list(os.environ):
        if name.startswith("TREEPLANE_"):
            monkeypatch.delenv(name)
    return found


def said(file: Path, *lines: str, kind: str = "ServerConfiguration") -> str:
    file.write_text("\n".join(["apiVersion: treeplane.dev/v1alpha1", f"kind: {kind}", *lines, ""]))
    return f"--config={file}"


def run(*words: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner(env=environment).invoke(program.main, list(words))


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(told: list[Any], tmp_path: Path) -> None:
    config = said(
        tmp_path / "c.yaml", "maxRequests: 5", "maxRequestsPerUser: 6", "anonymousAuth: true", "branch: main2"
    )
    environment = {"TREEPLANE_MAX_REQUESTS": "7", "TREEPLANE_BRANCH": "main3"}
    done = run("up", config, "--branch=main4", environment=environment)
    assert done.exit_code == 0, done.output
    [settings] = told
    assert (settings.serving.max_requests, settings.serving.max_requests_per_user) == (7, 6)
    assert settings.common.branch == "main4"
    assert settings.serving.anonymous
    assert settings.serving.request_seconds == 60
    run("up", config, "--no-anonymous-auth")
    assert not told[1].serving.anonymous
    run("up", environment={"TREEPLANE_CONFIG": str(tmp_path / "c.yaml"), "TREEPLANE_ANONYMOUS_AUTH": "false"})
    assert (told[2].serving.max_requests, told[2].serving.anonymous) == (5, False)


@pytest.mark.parametrize("tree", TREES)
def test_each_option_has_one_name_in_a_file_and_one_in_the_environment(tree: type) -> None:
    options = known(tree)
    for names in ([each.key for each in options], [each.variable for each in options]):
        assert len({*names}) == len(names)
    assert all(re.fullmatch("[a-z][A-Za-z]*", each.key) for each in options)
    assert all(re.fullmatch("TREEPLANE_[A-Z_]*", each.variable) for each in options)
    assert CONFIG not in {each.variable for each in options}


def _sample(option: KnownOption, folder: Path) -> tuple[Any, str]:
    """A value as YAML has it, and as a variable has it."""
    by_form = {
        "address": "127.0.0.1:99", "commit": "abcdef1", "ip": "127.0.0.9", "forge": "https://forge.example.org",
        "forge-target": "https://x.example.org/{commit}", "https": "https://name.example.org", "name": "a.example.org",
        "network": "10.0.0.0/8", "plugins": "Priority", "proxy": "http://proxy.example.org:3128",
        "workspace": "root:shop", "folder": "fleets/prod",
    }  # fmt: skip
    text = option.told.choices[-1] if option.told.choices else by_form.get(option.told.form, str(folder / "there"))
    if option.is_list:
        return [text], text
    if option.hint is bool:
        return not option.field.default, str(not option.field.default).lower()
    if option.hint in (int, float):
        return 77, "77"
    return text, text


@pytest.mark.parametrize("option", known(UpSettings), ids=lambda option: option.key)
def test_every_option_stands_in_a_file_and_in_the_environment(
    told: list[Any], tmp_path: Path, option: KnownOption
) -> None:
    (tmp_path / "there").touch()
    value, text = _sample(option, tmp_path)
    written = f"[{value[0]!r}]" if option.is_list else str(value).lower() if option.hint is bool else f"{value!r}"
    done = [
        run("up", said(tmp_path / "c.yaml", f"{option.key}: {written}")),
        run("up", environment={option.variable: text}),
        run("up"),
    ]
    assert [each.exit_code for each in done] == [0, 0, 0], done[0].output + done[1].output
    groups = [{name: value for group in vars(each).values() for name, value in vars(group).items()} for each in told]
    by_file, by_variable, by_default = (each[option.field.name] for each in groups)
    assert by_file == by_variable != by_default


def test_lists_and_addresses(told: list[Any], tmp_path: Path) -> None:
    config = said(
        tmp_path / "c.yaml", "listen: 0.0.0.0:7443", "tlsSan: [a.example.org, b.example.org]",
        "disableAdmissionPlugins: [Priority, RuntimeClass]",
    )  # fmt: skip
    environment = {"TREEPLANE_TRUST_TARGETS": "root:a, root:b", "TREEPLANE_WEBHOOK_NETWORK": ""}
    done = run("up", config, environment=environment)
    assert done.exit_code == 0, done.output
    [settings] = told
    assert settings.starting.listen == Address("0.0.0.0", 7443)
    assert settings.starting.tls_sans == ("a.example.org", "b.example.org")
    assert settings.serving.disabled_admission == ("Priority", "RuntimeClass")
    assert settings.reconciling.trusted_targets == ("root:a", "root:b")
    assert settings.serving.webhook_networks == ()


def test_names_of_files_count_from_the_file_that_says_them(
    told: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "fleet").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run("up", said(tmp_path / "etc" / "c.yaml", "dataDir: data", "repository: fleet"))
    run("up", said(tmp_path / "etc" / "c.yaml", "repository: git@example.org:fleet.git"))
    run("up", environment={"TREEPLANE_DATA_DIR": "data"})
    assert told[0].common.data_dir == tmp_path / "etc" / "data"
    assert told[0].common.keys_dir == tmp_path / "etc" / "data" / "keys"
    assert told[0].starting.repository == str(tmp_path / "etc" / "fleet")
    assert told[1].starting.repository == "git@example.org:fleet.git"
    assert told[2].common.data_dir == tmp_path / "elsewhere" / "data"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["maxRequest: 7"], ":3: there is no maxRequest; did you mean maxRequests"),
        (["max-requests: 7"], ":3: there is no max-requests; did you mean maxRequests"),
        (["branch: main", "maxRequests: 0"], ":4: maxRequests: 0 is not in the range x>=1"),
        (["maxRequests: seven"], ":3: maxRequests: it is a number"),
        (["maxRequests: true"], ":3: maxRequests: it is a number"),
        (["anonymousAuth: 1"], ":3: anonymousAuth: it is true or false"),
        (["branch: yes"], ":3: branch: it is a text: write it in quotes"),
        (["tlsSan: a.example.org"], ":3: tlsSan: it is a list of texts"),
        (["trustTargets:", "- root:a", "- https://x"], ":3: trustTargets: 'https://x' is not the path of a workspace"),
        (["listen: nowhere"], ":3: listen: 'nowhere' is not HOST:PORT"),
        (["tokenAuthFile: none.csv"], ":3: tokenAuthFile: File '"),
        (["roles: both"], ":3: roles: 'both' is not one of 'auto', 'together', 'apart'"),
        (["branch: a", "branch: b"], ":4:1: "),
        (["branch: ["], ":4:1: YAML: "),
        (["---", "kind: Other"], "it holds 2 objects"),
        (["config: other.yaml"], ":3: there is no config"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_by_its_place(
    told: list[Any], tmp_path: Path, lines: list[str], why: str
) -> None:
    done = run("up", said(tmp_path / "c.yaml", *lines))
    assert done.exit_code == 2
    assert f"{tmp_path / 'c.yaml'}" in done.output
    assert why in done.output
    assert not told


def test_all_wrong_keys_are_told_at_once(told: list[Any], tmp_path: Path) -> None:
    done = run("up", said(tmp_path / "c.yaml", "one: 1", "two: 2"))
    assert [":3: there is no one" in done.output, ":4: there is no two" in done.output] == [True, True]


@pytest.mark.parametrize("text", ["", "kind: Fleet\n", "apiVersion: v1\nkind: ServerConfiguration\n", "- a\n", "\0"])
def test_a_file_of_something_else_is_refused(told: list[Any], tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    for config in (tmp_path / "c.yaml", tmp_path / "none.yaml", tmp_path):
        done = run("up", f"--config={config}")
        assert done.exit_code == 2
        assert str(config) in done.output
    assert not told


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("TREEPLANE_DATADIR", "x", "TREEPLANE_DATADIR: no option is called so: unset it; did you mean DATA_DIR"),
        ("TREEPLANE_FOO", "x", "TREEPLANE_FOO: no option is called so"),
        ("TREEPLANE_MAX_REQUESTS", "0", "TREEPLANE_MAX_REQUESTS: 0 is not in the range x>=1"),
        ("TREEPLANE_ANONYMOUS_AUTH", "yes", "TREEPLANE_ANONYMOUS_AUTH: it is true or false"),
        ("TREEPLANE_TLS_SAN", "a,b c", "TREEPLANE_TLS_SAN: 'b c' is neither"),
        ("TREEPLANE_CONFIG", "/none.yaml", "--config: /none.yaml: No such file"),
    ],
)
def test_what_is_wrong_in_the_environment_is_told_by_its_name(told: list[Any], name: str, value: str, why: str) -> None:
    done = run("up", environment={name: value})
    assert (done.exit_code, why in done.output) == (2, True), done.output
    assert not told


def test_what_kubernetes_tells_its_containers_is_no_option(told: list[Any]) -> None:
    """Of a Service that is called treeplane, or treeplane-web."""
    links = {
        "TREEPLANE_SERVICE_HOST": "10.0.0.1", "TREEPLANE_SERVICE_PORT": "443", "TREEPLANE_SERVICE_PORT_HTTPS": "443",
        "TREEPLANE_PORT": "tcp://10.0.0.1:443", "TREEPLANE_PORT_443_TCP": "x", "TREEPLANE_PORT_443_TCP_ADDR": "x",
        "TREEPLANE_WEB_SERVICE_HOST": "x", "TREEPLANE_WEB_PORT_80_UDP_PROTO": "x",
    }  # fmt: skip
    done = run("up", environment=links)
    assert (done.exit_code, len(told)) == (0, 1), done.output


def test_every_variable_of_ours_is_known(told: list[Any]) -> None:
    """Else a start fails where a child, a hook or a test has it."""
    texts = [file.read_text() for top in ("apiserver", "reconciler") for file in (TOP / top).rglob("*.py")]
    quoted = {name for text in texts for name in re.findall(r'"(TREEPLANE_[A-Z_]+)"', text)}
    assert {"TREEPLANE_SETTINGS", "TREEPLANE_FORGE_TOKEN"} <= quoted
    done = run("up", environment=dict.fromkeys([*quoted, "TREEPLANE_TEST_MARK"], "x"))
    assert (done.exit_code, len(told)) == (0, 1), done.output


def test_a_credential_is_neither_printed_nor_left_for_processes_that_are_started(
    told: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://me:hunter2@example.org/fleet.git"
    monkeypatch.setenv("TREEPLANE_REPOSITORY", url)
    assert run("up").exit_code == 0
    assert told[0].starting.repository == url
    assert "TREEPLANE_REPOSITORY" not in os.environ
    assert "hunter2" not in repr(told[0])
    for place in (said(tmp_path / "c.yaml", "notifyUrl: ftp://example.org/hunter2"), "--notify-url=ftp://x/hunter2"):
        done = run("up", place)
        assert (done.exit_code, "hunter2" in done.output) == (2, False)
    done = run("up", environment={"TREEPLANE_NOTIFY_URL": "ftp://example.org/hunter2"})
    assert (done.exit_code, "hunter2" in done.output) == (2, False)
    for place in (said(tmp_path / "c.yaml", "gitProxy: http://p:hunter2@h"), "--git-proxy=p:hunter2@h:1"):
        done = run("up", place)
        assert (done.exit_code, "hunter2" in done.output, "a proxy is a URL" in done.output) == (2, False, True)
    for lines in (["repository: [hunter2]"], ["repository: {hunter2: 1}"], ["repository: hunter2", "x: hunter2"]):
        done = run("up", said(tmp_path / "c.yaml", *lines))
        assert (done.exit_code, "hunter2" in done.output) == (2, False)


def test_a_file_is_of_one_command(monkeypatch: pytest.MonkeyPatch, told: list[Any], tmp_path: Path) -> None:
    started: list[Any] = []
    monkeypatch.setattr(kcp, "start_kcp", lambda settings, others: started.append((settings, others)))
    config = said(tmp_path / "c.yaml", "securePort: 7443", "rootDirectory: here", kind="KcpServerConfiguration")
    done = run("kcp", "start", config, environment={"TREEPLANE_BIND_ADDRESS": "127.0.0.1", "TREEPLANE_DATA_DIR": "x"})
    assert done.exit_code == 0, done.output
    [(settings, others)] = started
    assert settings.starting.secure_port == 7443
    assert settings.starting.root_directory == tmp_path / "here"
    assert settings.starting.bind_address == "127.0.0.1"
    assert not others
    done = run("up", config)
    assert (done.exit_code, "kind is 'KcpServerConfiguration' (say ServerConfiguration)" in done.output) == (2, True)


def test_help_is_there_whatever_the_environment_says() -> None:
    assert run("up", "--help", environment={"TREEPLANE_FOO": "x"}).exit_code == 0


def test_what_is_said_nowhere_is_nothing() -> None:
    assert Configuration.read("ServerConfiguration", known(UpSettings), "", {}).said("branch") is None


def test_the_document_shows_a_file_that_can_be_read(told: list[Any], tmp_path: Path) -> None:
    page = (TOP / "docs" / "settings.md").read_text()
    [example] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "c.yaml").write_text(example)
    environment = dict(line.split("=", 1) for line in re.findall(r"^(TREEPLANE_\w+=.*)$", page, re.MULTILINE))
    assert len(environment) >= 3
    done = run("up", f"--config={tmp_path / 'c.yaml'}", environment=environment)
    assert done.exit_code == 0, done.output
