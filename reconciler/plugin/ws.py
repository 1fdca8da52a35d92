"""`kubectl ws`: go from workspace to workspace, and make some. A kubectl plugin, installed as `kubectl-ws`; the same as
`treeplane ws`.

    kubectl ws [.|current]             where am I
    kubectl ws [use] root:shop:web     there: a path (from the root), a name below here, `..`, or `-` for the last one
    kubectl ws tree                    the workspaces from here down
    kubectl ws create NAME             a workspace below here; `kubectl create workspace NAME` does the same
    kubectl ws create-context [NAME]   a context for the workspace one is in
    kubectl ws --at REV [PATH]         the workspace as a commit has it, and from there others; back with --now or -
    kubectl ws -i                      picks one with the arrow keys

Texts and contexts are those of kcp's plugin, so that scripts work with either. This package imports nothing of the rest
of Treeplane: a plugin has to start at once.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

from reconciler.plugin.creating import WantedWorkspace, create
from reconciler.plugin.errors import USAGE, PluginError, ended
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.moving import use, use_at
from reconciler.plugin.picking import pick
from reconciler.plugin.places import children
from reconciler.plugin.saying import FORMS, say, saying, tell
from reconciler.plugin.session import Session, ShownWorkspace
from reconciler.plugin.tree import ShownTree

_COMMANDS = """\
commands:
  . | current              where am I
  [use] PATH               go there: a path from the root, a name below here, .., ~, or - for the workspace before
  tree                     the workspaces from here down
  create NAME              make a workspace below here
  create-context [NAME]    a context for the current workspace

example: kubectl ws root:shop:web"""


def main() -> None:
    """`kubectl-ws`."""
    sys.exit(run(sys.argv[1:], "kubectl ws"))


def main_create() -> None:
    """`kubectl-create-workspace`, which kubectl calls for `kubectl create workspace`."""
    sys.exit(ended(lambda: _create(sys.argv[1:], "kubectl create workspace")))


def run(arguments: list[str], program: str) -> int:
    """The exit code. `program`: how it was called."""
    others = {"create": _create, "create-context": _create_context}
    # Where a kubeconfig is named first, as kubectl's own options may be.
    leading = 2 if arguments[:1] == ["--kubeconfig"] else sum(a.startswith("--kubeconfig=") for a in arguments[:1])
    word = arguments[leading] if len(arguments) > leading else ""
    if word in others:
        rest = [*arguments[:leading], *arguments[leading + 1 :]]
        return ended(lambda: others[word](rest, f"{program} {word}"))
    return ended(lambda: _move(arguments, program))


def _move(arguments: list[str], program: str) -> None:
    parser = _parser(program, "Shows, changes, lists and makes workspaces.", _COMMANDS)
    parser.add_argument("what", nargs="*", metavar="COMMAND", help="(default: current)")
    parser.add_argument("--short", action="store_true", help="print the path alone")
    parser.add_argument("-f", "--full", action="store_true", help="tree: full paths")
    parser.add_argument("-i", "--interactive", action="store_true", help="pick a workspace with the arrow keys")
    _output(parser, "where one is, or the tree, as data")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--at", default="", metavar="REV", help="as a commit has it: an id, a branch, a tag, pull/NUMBER")
    when.add_argument("--now", action="store_true", help="as it is served")
    options = parser.parse_args(arguments)
    session = _session(options)
    if options.at or options.now:
        _tell(use_at(session, options.at, _target(options.what, program)), options)
        return
    if options.interactive:
        _pick(session, options, program)
        return
    match options.what:
        case [] | ["."] | ["current"] | ["use", "."]:
            place = session.current()
        case ["tree"] if options.output != "table":
            tell(ShownTree(session).listed(), options.output)
            return
        case ["tree"]:
            say("\n".join(ShownTree(session).lines(options.full)) + "\n")
            return
        case ["use" | "cd", target] | [target]:
            place = use(session, target)
        case what:
            raise PluginError(f"unexpected arguments: {' '.join(what)}; see {program} --help", USAGE)
    _tell(place, options)


def _pick(session: Session, options: argparse.Namespace, program: str) -> None:
    if options.what not in ([], ["use"]):
        raise PluginError(f"-i goes without: {' '.join(options.what)}; see {program} --help", USAGE)
    path = pick(session.path(), lambda path: children(session, path))
    _tell(use(session, f":{path}") if path else session.current(), options)


def _tell(place: ShownWorkspace, options: argparse.Namespace) -> None:
    if options.output != "table":
        tell({"path": place.path, "cluster": place.cluster, "type": place.type, "at": place.at}, options.output)
    else:
        say(place.path if options.short else place.told())


def _target(what: list[str], program: str) -> str:
    """Of a move to a commit; "" for the current workspace."""
    match what:
        case [] | ["."] | ["use"]:
            return ""
        case ["use" | "cd", target] | [target] if target not in ("-", "tree", "current"):
            return target
    raise PluginError(f"unexpected arguments: {' '.join(what)}; see {program} --help", USAGE)


def _create(arguments: list[str], program: str) -> None:
    make(creation_parser(program).parse_args(arguments))


def creation_parser(program: str) -> argparse.ArgumentParser:
    """Of `create`."""
    parser = _parser(program, "Makes a workspace below the current one, and waits until it can be used.")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--type", default="", help="its type: NAME, or PATH:NAME (default: as the parent's type says)")
    parser.add_argument("--enter", action="store_true", help="go there")
    parser.add_argument("--ignore-existing", action="store_true", help="one that is there is as good")
    parser.add_argument("--location-selector", default="", metavar="SELECTOR", help="labels of the Shard that it is on")
    parser.add_argument("--create-context", default="", metavar="CONTEXT", help="a context of that name for it")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="how long to wait (default: 60)")
    _output(parser, "the workspace as data")
    return parser


def wanted_workspace(options: argparse.Namespace) -> WantedWorkspace:
    """What was asked for, as `creation_parser` gives it."""
    return WantedWorkspace(
        options.name, options.type, options.ignore_existing, options.timeout, options.location_selector
    )


def make(options: argparse.Namespace) -> None:
    """Through the API. Raises PluginError."""
    session, says = _session(options), saying(options.output)
    made = create(session, wanted_workspace(options), says)
    if options.create_context:
        server = session.url(f"{session.path()}:{options.name}")
        context = NewContext(options.create_context, server, options.ignore_existing, options.enter)
        says(context.said(*context.add(session.config)))
    elif options.enter:
        place: ShownWorkspace = use(session, options.name)
        says(place.told())
    if options.output != "table":
        tell(made, options.output)


def _create_context(arguments: list[str], program: str) -> None:
    parser = _parser(program, "Writes a context for the current workspace into the kubeconfig, and goes there.")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="(default: the workspace's path)")
    parser.add_argument("--overwrite", action="store_true", help="change the one that is there")
    _output(parser, "what was done, as data")
    options = parser.parse_args(arguments)
    session = _session(options)
    session.within("")
    context = NewContext(options.name or session.here, session.url(session.here), options.overwrite, enter=True)
    there, moved = context.add(session.config)
    if options.output == "table":
        say(context.said(there, moved))
    else:
        done = {"context": context.name, "server": context.server, "created": not there, "switched": moved}
        tell(done, options.output)


class NewContext(NamedTuple):
    """`overwrite`: one that is there may be changed. `enter`: it is the current one then."""

    name: str
    server: str
    overwrite: bool
    enter: bool

    def add(self, config: KubeconfigFiles) -> tuple[bool, bool]:
        """Whether it was there, and whether another one was the current one."""
        return config.add(self.name, self.server, overwrite=self.overwrite, enter=self.enter)

    def said(self, there: bool, moved: bool) -> str:
        return f'{"Updated" if there else "Created"} context "{self.name}"{" and switched to it" if moved else ""}.'


def _output(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("-o", "--output", choices=FORMS, default="table", help=what)


def _parser(program: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--kubeconfig", default="", help="the file to read and change instead of $KUBECONFIG")
    return made


def _session(options: argparse.Namespace) -> Session:
    return Session(KubeconfigFiles.load(options.kubeconfig))


if __name__ == "__main__":
    main()
