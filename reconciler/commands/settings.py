"""The tree of settings of `treeplane up`: what it needs itself, what all processes get, what API workers get, what the
reconciler's processes get.

A field with an `option` is one option, and all there is to write for a new one but its use (apiserver/options). Other
fields are what `up` finds out and hands over with them.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

from apiserver import options
from apiserver.logs.lines import FORMATS
from apiserver.logs.records import LEVELS
from apiserver.options import Option, option
from apiserver.settings import Common, Serving
from reconciler.repository.access import RemoteAccess


class Address(NamedTuple):
    host: str
    port: int


def default_workers() -> int:
    """One less than the cores, at least one."""
    return max(1, len(os.sched_getaffinity(0)) - 1) if sys.platform == "linux" else max(1, (os.cpu_count() or 2) - 1)


@dataclass(frozen=True)
class Starting:
    """For `treeplane up` itself."""

    repository: str = option(
        "",
        told=Option(
            "",
            document="A git repository, a URL, or a directory of manifests.",
            name="REPOSITORY",
            shown="the one served last",
            place=True,
        ),
        secret=True,
    )
    listen: Address = option(
        Address("127.0.0.1", 6443),
        told=Option(
            "HOST:PORT; port 0 takes a free one.",
            document="Address and port; port 0 takes a free one. Where it is every address (`0.0.0.0`, `[::]`), the "
            "server's certificate names this machine's own, and follows them while it runs.",
            shown="`127.0.0.1:6443`",
            form="address",
        ),
    )
    tls_sans: tuple[str, ...] = option(
        (),
        told=Option(
            "A DNS name or address that the server's certificate names, too. Repeatable.",
            document="A DNS name or address that the server's certificate names, too; repeatable. The machine's own "
            "name, `localhost`, the address of `--listen` and the host of `--external-url` are named anyway.",
            name="--tls-san",
            metavar="NAME",
            form="name",
        ),
    )
    external_ca_file: str = option(
        "",
        told=Option(
            "What clients check `--external-url` by",
            document="What clients check the server by at `--external-url`, where a proxy ends TLS there: certificates "
            "in PEM, or `system` for what their machines trust. It stands in kubeconfigs and the line to clone with.",
            shown="the server's own CA, or that of `--tls-cert-file`",
            metavar="FILE|system",
        ),
    )
    kubeconfig: Path | None = option(
        None,
        told=Option("The administrators' kubeconfig, which is written.", shown="`DATA-DIR/admin.kubeconfig`"),
    )
    serving_files: Path | None = None
    """Where copies of the server's certificate, its CA behind it, and key are kept: this and `.crt`, `.key`."""

    command: tuple[str, ...] = ()
    """The command line that serves the same and takes options of `up`, where that is not the one that was typed."""

    certificate_seconds: float = option(
        60.0, told=Option("How often the certificate's names are looked at.", unit="s", hidden=True)
    )
    workers: int = option(
        1,
        told=Option(
            "API processes",
            document="API processes.",
            shown="cores - 1",
            least=1,
            otherwise=lambda _: default_workers(),
        ),
    )


@dataclass(frozen=True)
class LogSettings:
    """For the log of all processes."""

    log_level: str = option(
        "warning",
        told=Option(
            "The least that is logged.",
            document="The least that is logged: `debug`, `info`, `warning` or `error`. At `info` there is each commit "
            "that is loaded, and each request that took longer than a second. Libraries log warnings and errors. See "
            "[logs](logs.md).",
            choices=LEVELS,
        ),
    )
    log_format: str = option(
        "text",
        told=Option(
            "How a line of the log looks.",
            document="How a line of the log looks: `text` or `json`. As JSON it has what `up` prints, too.",
            choices=FORMATS,
        ),
    )
    log_file: Path | None = option(
        None,
        told=Option(
            "A file to log to, in place of standard error.",
            document="A file to log to, in place of standard error; what `up` prints is logged there, too. A full one "
            "is set aside as FILE.1, and so on. It is made for its owner alone, and its directory has to be there.",
            shown="standard error",
        ),
    )
    log_file_mib: int = option(50, told=Option("How large the file of the log becomes, in MiB.", unit="MiB", least=1))
    log_files: int = option(5, told=Option("How many full files of the log are kept; older ones are removed.", least=0))


@dataclass(frozen=True)
class Reconciling:
    """For the reconciler."""

    roles: str = option(
        "auto",
        told=Option(
            "Whether one process loads commits and does all the rest, or two; auto: two for a large fleet.",
            document="Whether one process loads commits and does all the rest (`together`), or two (`apart`), so that "
            "a load takes nothing from controllers, syncing and the status branch, and they nothing from it. The "
            "second takes about 45 MiB. `auto`: two from 10,000 workspaces on, or when a commit brings so many, and "
            "until the next start if there are less again.",
            choices=("auto", "together", "apart"),
        ),
    )
    take_over: str = option(
        "",
        told=Option(
            "Take the fleet over from the server that is called so, if that is the one that holds it.",
            document="Takes the fleet over from the server of this name (`<installation>/<start>`, as messages have "
            "it), if that is the one that holds it; else it does nothing. See [repositories](repositories.md).",
            metavar="HOLDER",
        ),
    )
    new_identities: str = option(
        "",
        told=Option(
            "Begin with new UIDs at this head of the branch, although the fleet was recorded before.",
            document="Begins with new UIDs although the fleet was recorded before and that record is gone, if this is "
            "the head of the branch; else it does nothing.",
            metavar="COMMIT",
        ),
    )
    status_repository: str = option(
        "",
        told=Option(
            "Where the status branch may be from now on, if a commit names that repository for it; own: the fleet's.",
            document="The address of a repository, or `own` for the fleet's. A commit that has the status branch there "
            "(`spec.status.repository` of `treeplane.yaml`) is not held for that; and a server that lost what it had "
            "looks for it there alone, among those that `treeplane.yaml` ever named. It does nothing else. See "
            "[repositories](repositories.md#moving-it).",
            metavar="URL",
        ),
    )
    poll: float = option(
        10.0,
        told=Option(
            "How often a repository that is a URL is looked at; one that does not answer at least every minute.",
            document="The time from one look at a repository that is a URL to the next. One that does not answer is "
            "asked less often, at least once a minute.",
            unit="s",
            least=1,
            metavar="SECONDS",
        ),
    )
    take_head: str = option(
        "",
        told=Option(
            "In an emergency: follow the branch to this head of it, although it does not contain what is served, or "
            "nobody who may stands for it.",
            document="In an emergency: a commit, as its id or the first seven digits of it or more. If the branch's "
            "head is this commit, it is followed although it does not contain the commit that is served (see [the "
            "branch](repositories.md#a-branch-that-goes-back)), is not signed, or touches what whoever pushed it may "
            "not ([owners](owners.md)). It does nothing for any other head, and nothing a second time.",
            metavar="COMMIT",
            form="commit",
        ),
    )
    trusted_targets: tuple[str, ...] = option(
        (),
        told=Option(
            "A workspace whose sync targets may be at any address, not only on the public internet. Repeatable.",
            document="Workspaces whose sync targets may be at any address (`root:infra:locations`, repeatable). All "
            "others have to be on the public internet; see [security](security.md).",
            name="--trust-targets",
            metavar="WORKSPACE",
            form="workspace",
        ),
    )
    trusted_sources: tuple[str, ...] = option(
        (),
        told=Option(
            "A workspace that may have its content, and that of those below it, from a repository at any address, not "
            "only on the public internet. Repeatable.",
            document="Workspaces that may have their content, and that of those below them, from repositories at any "
            "address (`root:tenants`, repeatable). Repositories of all others have to be on the public internet; see "
            "[security](security.md).",
            name="--trust-sources",
            metavar="WORKSPACE",
            form="workspace",
        ),
    )
    source_interval: float = option(
        60.0,
        told=Option(
            "How often a repository is looked at that a workspace has its content from; one with faults at least "
            "every ten minutes.",
            document="The time from one look at a repository that a workspace has its content from to the next, more "
            "or less. One that cannot be read is looked at less often, at least every ten minutes. A status that is "
            "written there is written once in that time at most.",
            unit="s",
            least=1,
            metavar="SECONDS",
        ),
    )
    source_mib: int = option(
        512,
        told=Option(
            "How large each repository may be here that a workspace has its content from.",
            document="How large each repository may be here that a workspace has its content from, as git packs it, "
            "with what was left behind and is served still. What would make it larger is not fetched, and the "
            "workspace says so.",
            name="--source-mib",
            unit="MiB",
            least=1,
        ),
    )
    sources_mib: int = option(
        16384,
        told=Option(
            "How large all repositories together may be here that workspaces have their content from.",
            document="How large all repositories together may be here that workspaces have their content from, with "
            "what is just coming counted twice. What would go beyond is not fetched, and the workspace says so; what "
            "is here stays and is served.",
            name="--sources-mib",
            unit="MiB",
            least=1,
        ),
    )
    rendering_kubectl: Path | None = option(
        None,
        told=Option(
            "The program kubectl, whose kustomize renders directories with a kustomization.yaml.",
            document="The program kubectl, whose kustomize renders directories with a kustomization.yaml. See "
            "[rendering](rendering.md).",
            shown="the one on `PATH`",
            exists=True,
        ),
    )
    rendering_helm: Path | None = option(
        None,
        told=Option(
            "The program helm, which renders directories with a Chart.yaml.",
            document="The program helm, which renders directories with a Chart.yaml. See [rendering](rendering.md).",
            shown="the one on `PATH`",
            exists=True,
        ),
    )
    forge: str | None = option(
        None,
        told=Option(
            "The kind of the forge that is told what became of each commit; a Forgejo is a gitea.",
            document="The kind of the forge that is told what became of each commit, with commit statuses (a Forgejo "
            "is a `gitea`). The token is in `keys/forges/token`. See "
            "[reviews](reviews.md#commit-statuses-and-the-webhook).",
            choices=("github", "gitlab", "gitea"),
        ),
    )
    forge_url: str = option(
        "",
        told=Option(
            "Where the forge is, like https://git.example.org.",
            document="Where the forge is (`https://git.example.org`); of `github` and `gitlab`, if not said, "
            "github.com and gitlab.com. Over TLS, or on this machine.",
            metavar="URL",
            form="forge",
        ),
    )
    forge_repository: str = option(
        "",
        told=Option(
            "The repository there: owner/name; of GitLab group/…/name, or its number.",
            metavar="REPOSITORY",
        ),
    )
    forge_target_url: str = option(
        "",
        told=Option(
            "Where a commit status leads; {workspace} and {commit} stand for those.",
            document="Where a commit status leads people; `{workspace}` and `{commit}` in it stand for those.",
            metavar="URL",
            form="forge-target",
        ),
    )
    notify_url: str = option(
        "",
        told=Option(
            "A URL to which what became of each commit is posted as JSON, signed.",
            document="A URL to which what became of each commit is posted as JSON, signed with the secret in "
            "`keys/forges/webhook-secret`. Over TLS, or on this machine. See "
            "[reviews](reviews.md#commit-statuses-and-the-webhook).",
            metavar="URL",
            form="forge",
        ),
        secret=True,
    )
    heartbeat: float = option(
        20.0, told=Option("Between two looks at a sync target.", name="--heartbeat-seconds", unit="s", hidden=True)
    )
    threshold: float = option(
        60.0,
        told=Option(
            "How long a sync target may not answer before it is not Ready.",
            name="--threshold-seconds",
            unit="s",
            hidden=True,
        ),
    )
    tolerance: float = option(
        300.0,
        told=Option(
            "How long a sync target may be not Ready before its placements move.",
            name="--tolerance-seconds",
            unit="s",
        ),
    )
    history: float = option(
        0.0,
        told=Option(
            "Forget past states after this time, up to twice as long; otherwise they stay while there is room.",
            document="How long past states stay, for watches that resume and lists that go on, up to twice "
            "that; 0: while there is room.",
            name="--history-seconds",
            unit="s",
            least=0,
        ),
    )
    events: float = option(
        3600.0,
        told=Option("How long an Event stays after it was last written.", name="--event-seconds", unit="s", least=1),
    )

    @property
    def announces(self) -> bool:
        """Whether somebody outside is told what becomes of commits."""
        return bool(self.forge or self.notify_url)


@dataclass(frozen=True, kw_only=True)
class UpSettings:
    """The tree. A group's options stand together in help and document, in this order."""

    KIND: ClassVar[str] = "ServerConfiguration"
    """Of the object that says them in a file."""

    starting: Starting
    common: Common
    logging: LogSettings = field(default_factory=LogSettings)
    serving: Serving = field(default_factory=Serving)
    access: RemoteAccess = field(default_factory=RemoteAccess)
    reconciling: Reconciling = field(default_factory=Reconciling)


@dataclass(frozen=True)
class ReconcileSettings(Reconciling, RemoteAccess, Common):
    """Of one of the reconciler's processes; it gets them as JSON. Paths are absolute. The data directory holds store/,
    mirror/, sources/, excerpts/, targets/ and push.sock, that of keys identities/ and secrets/ as well."""

    source: str = field(kw_only=True, repr=False)
    """The repository: a path or a URL."""

    url: str = field(kw_only=True)
    """The server's URL, as clients are told it."""

    local_url: str = field(kw_only=True)
    """The server's URL on this machine, for embedded targets."""

    among_proxies: bool = False
    """Whether the server takes connections that this machine makes there for a proxy's."""

    hosted: bool = False
    """Whether the repository is the server's own, which it hosts."""

    new_keys: bool = False
    """Whether the server's CA is new since this start: there was none."""

    restarted: bool = False
    """Whether this process takes the place of one that ended, in the same server."""

    command: tuple[str, ...] = ("treeplane", "up")
    """The command line of `up`, as messages may show it."""

    @property
    def access(self) -> RemoteAccess:
        """With what the repository is reached."""
        return options.part(RemoteAccess, vars(self))

    def to_json(self) -> str:
        return options.to_json(self)

    @staticmethod
    def from_json(text: str) -> ReconcileSettings:
        """Raises ValueError on a name that is not a setting."""
        return options.from_json(ReconcileSettings, text)
