"""The --git-* options of commands that ask a repository once: what fits, where they are said, and what is printed."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from reconciler.__main__ import main
from reconciler.commands.remoteaccess import access_options, typed
from reconciler.repository.access import NO_ACCESS, RemoteAccess

SECRET = "hunter2"
PROXY = f"http://user:{SECRET}@proxy.example.org:3128"


@click.command()
@access_options
def shown(access: RemoteAccess) -> None:
    click.echo(f"proxy {access.git_proxy} user {access.git_username} token {access.git_token_file}")


def ran(*words: str, **variables: str) -> Result:
    return CliRunner().invoke(main, [*words], env=variables)


def test_they_are_typed_or_stand_in_the_environment(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t")
    said = CliRunner().invoke(shown, ["--git-token-file", str(token)], env={"TREEPLANE_GIT_PROXY": PROXY})
    assert said.output == f"proxy {PROXY} user git token {token}\n"
    said = CliRunner().invoke(shown, ["--git-username", "a"], env={"TREEPLANE_GIT_USERNAME": "b"})
    assert said.output == "proxy  user a token None\n"


def test_what_is_printed_to_be_typed_again_has_nothing_secret() -> None:
    assert typed(NO_ACCESS) == ""
    found = RemoteAccess(Path("/a token"), "ann", git_proxy=PROXY)
    assert typed(found) == " --git-token-file '/a token' --git-username ann --git-proxy ..."


@pytest.mark.parametrize("words", [["drill"], ["recover", "--data-dir", "new", "--from"]])
def test_what_does_not_fit_is_refused_before_anybody_is_asked(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    token = tmp_path / "token"
    token.write_text(SECRET)
    token.chmod(0o644)
    for url, hint in (
        ("https://127.0.0.1:1/f.git", f"chmod 600 {token}"),
        ("ssh://git@127.0.0.1:1/f.git", "--git-token-file is for http and https"),
    ):
        done = ran(*words, url, "--git-token-file", str(token))
        assert (done.exit_code, hint in done.output) == (2, True), done.output
        assert SECRET not in done.output
    assert not (tmp_path / "new").exists()
    refused = ran(*words, "https://127.0.0.1:1/f.git", TREEPLANE_GIT_PROXY=f"ftp://u:{SECRET}@p")
    assert (refused.exit_code, SECRET in refused.output) == (2, False), refused.output
