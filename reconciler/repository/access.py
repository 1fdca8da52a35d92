"""With what a repository's URL is reached, where the server is told so: a token, a key, a CA, a proxy.

The options of `treeplane up` for that, and what git and ssh are started with because of them; remote.py starts them.
Where nothing is told, what the configuration of whoever runs the server says is all there is. Nothing secret gets into
an argument list or a configuration file: what is in files stays there, or goes to git in its environment, which nobody
but the same user can read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from apiserver.options import Option, option
from apiserver.secretfile import NoSecret, SecretFile, check_private
from reconciler.repository.credentials import BareUrl, apart
from reconciler.repository.errors import RepositoryUnreadable

_HTTP = ("http", "https")
_HERE = ("localhost", "127.0.0.1", "::1")
_UNFIT = re.compile(r'["\\$\x00-\x1f]')
"""In the path of a file that ssh is told of: it takes some of these for what they stand for."""


# Groups are put together by inheritance, which slots would forbid.
@dataclass(frozen=True)
class RemoteAccess:
    """For a repository that is a URL."""

    git_token_file: Path | None = option(
        None,
        told=Option(
            "A token, or a password, for a repository at an https:// URL; read again when it changes.",
            document="A token, or a password, for a repository at an `https://` URL. It is read again when it changes. "
            "See [remotes](remotes.md#who-the-server-is-there).",
            exists=True,
        ),
    )
    git_username: str = option(
        "git",
        told=Option(
            "Whose token that is, where the URL does not say so.",
            document="Whose token that is, where the URL does not say so. GitHub and GitLab take any name with an "
            "access token; [remotes](remotes.md#who-the-server-is-there) has the others.",
            metavar="NAME",
        ),
    )
    git_ssh_key_file: Path | None = option(
        None,
        told=Option(
            "The private key, without a passphrase, for a repository at an ssh URL: a deploy key.",
            document="The private key, without a passphrase, for a repository at an ssh URL: a deploy key, which may "
            "push. No other file that ssh would find by itself is offered.",
            exists=True,
        ),
    )
    git_known_hosts_file: Path | None = option(
        None,
        told=Option(
            "The host keys that count for ssh, as ssh has them in known_hosts.",
            document="The host keys that count for ssh, instead of those in `~/.ssh/known_hosts` and "
            "`/etc/ssh/ssh_known_hosts`. A host that is not there is refused, with the line to add.",
            exists=True,
        ),
    )
    git_ca_file: Path | None = option(
        None,
        told=Option(
            "CAs that may vouch for a repository at an https:// URL, in PEM.",
            document="CAs that may vouch for a repository at an `https://` URL, in PEM, instead of those of the "
            "machine.",
            exists=True,
        ),
    )
    git_proxy: str = option(
        "",
        told=Option(
            "The proxy to a repository at an https:// URL, like http://proxy.example.org:3128.",
            document="The proxy to a repository at an `https://` URL, like `http://proxy.example.org:3128`, whatever "
            "`NO_PROXY` says. One with a password stands in a file (`--config`) or the environment rather than on the "
            "command line, which everybody on the machine can read.",
            metavar="URL",
            form="proxy",
        ),
        secret=True,
    )


NO_ACCESS = RemoteAccess()


@dataclass(slots=True)
class Reaching:
    """How one URL is reached. Files are looked at anew each time."""

    url: str
    access: RemoteAccess = field(default=NO_ACCESS)
    _token: SecretFile | None = field(init=False)

    def __post_init__(self) -> None:
        file = self.access.git_token_file
        self._token = SecretFile(file, "--git-token-file") if file is not None else None

    def check(self) -> None:
        """Raises RepositoryUnreadable for what cannot be, or would betray a token."""
        scheme, access = scheme_of(self.url), self.access
        for name, said, schemes in (
            ("--git-token-file", access.git_token_file, _HTTP),
            ("--git-ca-file", access.git_ca_file, _HTTP),
            ("--git-proxy", access.git_proxy, _HTTP),
            ("--git-ssh-key-file", access.git_ssh_key_file, ("ssh",)),
            ("--git-known-hosts-file", access.git_known_hosts_file, ("ssh",)),
        ):
            if said and scheme in ("ssh", *_HTTP) and scheme not in schemes:
                what = f"{name} is for {' and '.join(schemes)}, and {self.url} is for {scheme}"
                raise RepositoryUnreadable(what, "leave it out, or give the other URL of the repository")
        for name, file in (
            ("--git-ssh-key-file", access.git_ssh_key_file),
            ("--git-known-hosts-file", access.git_known_hosts_file),
        ):
            if file is not None and _UNFIT.search(str(file)):
                raise RepositoryUnreadable(f"{name}: ssh takes no such path: {str(file)!r}", "give the file another")
        if self._token is not None and scheme in _HTTP:
            self._check_token(scheme)
        self.key()
        self.bare()

    def bare(self) -> BareUrl:
        """The URL for git's arguments, and what goes with it otherwise. Raises RepositoryUnreadable."""
        access = self.access
        bare = apart(self.url, access.git_username, self._read_token())
        settings, variables = dict(bare.settings), dict(bare.variables)
        if access.git_ca_file is not None:
            variables["GIT_SSL_CAINFO"] = str(access.git_ca_file)
        if access.git_proxy:
            settings["remote.origin.proxy"] = access.git_proxy
            variables |= {"NO_PROXY": "", "no_proxy": ""}
        return BareUrl(bare.url, settings, variables)

    def key(self) -> Path | None:
        """The file of ssh's key. Raises RepositoryUnreadable where it is not there, or others may read it."""
        file = self.access.git_ssh_key_file
        if file is not None:
            try:
                check_private(file.stat(), file, "--git-ssh-key-file")
            except OSError as error:
                raise RepositoryUnreadable(f"--git-ssh-key-file: {file}: {error.strerror}", "mend the file") from error
            except NoSecret as error:
                raise RepositoryUnreadable(error.text, error.hint) from error
        return file

    def _read_token(self) -> str:
        try:
            return self._token.read() if self._token is not None else ""
        except NoSecret as error:
            raise RepositoryUnreadable(error.text, error.hint) from error

    def _check_token(self, scheme: str) -> None:
        parts = urlsplit(self.url)
        if scheme != "https" and parts.hostname not in _HERE:
            what = f"{self.url} is not secured: whoever is on the way could read the token"
            raise RepositoryUnreadable(what, "give an https:// URL")
        if ":" in parts.netloc.rpartition("@")[0]:
            raise RepositoryUnreadable("--git-token-file, and there is a password in the URL", "say one of the two")


def scheme_of(url: str) -> str:
    """What carries it: https, http, ssh (also `user@host:path`), or another."""
    scheme, there, _ = url.partition("://")
    return scheme.lower().removeprefix("git+").removesuffix("+git") if there else "ssh"
