"""Packs as somebody makes them who has no git, and no scruples: any objects, whatever they say of each other.

git's own programs write no tree whose entries are not there.
"""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st

TREE, FILE, LINK, SUBMODULE = b"40000", b"100644", b"120000", b"160000"
Content = dict[str, "str | Content"]
"""A directory: names, and texts or directories."""
_NAMES = st.sampled_from("pqr")
_BELOW = st.recursive(st.text("xyz", max_size=3), lambda b: st.dictionaries(_NAMES, b, min_size=1, max_size=3))
CONTENTS: st.SearchStrategy[Content] = st.dictionaries(_NAMES, _BELOW, min_size=1, max_size=3)
_NUMBERS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_WHO = "t <t@example.org> 1700000000 +0000"


@dataclass
class Objects:
    """What was made so far, by id: its kind and its bytes."""

    made: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def add(self, kind: str, data: bytes) -> str:
        name = hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
        self.made[name] = kind, data
        return name

    def blob(self, text: str) -> str:
        return self.add("blob", text.encode())

    def tree(self, entries: Iterable[tuple[bytes, str, str]]) -> str:
        """Of (mode, name, id), in git's order."""
        ordered = sorted(entries, key=lambda e: e[1] + "/" if e[0] == TREE else e[1])
        return self.add("tree", b"".join(m + b" " + n.encode() + b"\0" + bytes.fromhex(i) for m, n, i in ordered))

    def commit(self, tree: str, *parents: str, message: str = "one") -> str:
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {_WHO}", f"committer {_WHO}"]
        return self.add("commit", "\n".join([*lines, "", message, ""]).encode())

    def tag(self, target: str, kind: str) -> str:
        return self.add("tag", f"object {target}\ntype {kind}\ntag t\ntagger {_WHO}\n\none\n".encode())

    def planted(self, content: Content) -> str:
        """A tree of directories and files."""
        return self.tree(
            (FILE, name, self.blob(each)) if isinstance(each, str) else (TREE, name, self.planted(each))
            for name, each in content.items()
        )

    def reachable(self, name: str) -> set[str]:
        """What a commit or tree needs of what was made, with itself."""
        if name not in self.made:
            return set()
        kind, data = self.made[name]
        found = {name}
        if kind == "commit":
            for line in data.decode().partition("\n\n")[0].splitlines():
                if line.startswith(("tree ", "parent ")):
                    found |= self.reachable(line.split()[1])
        while kind == "tree" and data:
            rest = data.partition(b"\0")[2]
            found, data = found | self.reachable(rest[:20].hex()), rest[20:]
        return found

    def pack(self, names: Iterable[str], doubled: Iterable[tuple[str, int]] = ()) -> bytes:
        """A pack of these; and of what objects are that stand elsewhere (id and size, below 32 KiB) twice in a row, as
        deltas."""
        parts = [*(self._packed(name) for name in names), *(_doubled(*each) for each in doubled)]
        data = b"PACK" + (2).to_bytes(4, "big") + len(parts).to_bytes(4, "big") + b"".join(parts)
        return data + hashlib.sha1(data, usedforsecurity=False).digest()

    def store(self, git_dir: Path, names: Iterable[str]) -> None:
        """Puts these into a repository as they are, unchecked."""
        for name in names:
            kind, data = self.made[name]
            file = git_dir / "objects" / name[:2] / name[2:]
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(zlib.compress(f"{kind} {len(data)}\0".encode() + data))

    def _packed(self, name: str) -> bytes:
        kind, data = self.made[name]
        size, first = len(data) >> 4, _NUMBERS[kind] << 4 | len(data) & 15
        head = bytearray()
        while size:
            head.append(first | 0x80)
            first, size = size & 0x7F, size >> 7
        head.append(first)
        return bytes(head) + zlib.compress(data)


def push_body(changes: Iterable[tuple[str, str, str]], pack: bytes) -> bytes:
    """What a client sends that moves refs: (old id, new id, full name) of each, ids of zeros for none."""
    out = b""
    for old, new, ref in changes:
        line = f"{old} {new} {ref}".encode() + (b"" if out else b"\0report-status side-band-64k")
        out += f"{len(line) + 4:04x}".encode() + line
    return out + b"0000" + pack


def wide(git_dir: Path, directories: int, branch: str = "main") -> str:
    """One commit of so many directories, by hundreds, in a pack of the bare repository `git_dir`; its id."""
    lines = ["feature done", f"commit refs/heads/{branch}", f"committer {_WHO}", "data 3", "one"]
    for number in range(directories):
        text = f"{number} of {directories}"
        path = f"{number // 100:05d}/{number % 100:02d}"
        lines += [f"M 100644 inline fleet/{path}/a.yaml", f"data {len(text)}", text]
    given = "\n".join([*lines, "done", ""]).encode()
    command = ["git", "-c", "fastimport.unpackLimit=1", "--git-dir", str(git_dir), "fast-import", "--quiet"]
    subprocess.run(command, input=given, check=True)
    command = ["git", "--git-dir", str(git_dir), "rev-parse", f"refs/heads/{branch}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def edited(made: Objects, git_dir: Path, tip: str, path: str, text: str) -> str:
    """A commit upon `tip`, which the bare repository `git_dir` has, with another text in a file that is there."""
    *directories, file = path.split("/")
    entry = (FILE, file, made.blob(text))
    for depth in range(len(directories), -1, -1):
        at = f"{tip}:{'/'.join(directories[:depth])}"
        command = ["git", "--git-dir", str(git_dir), "ls-tree", at]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        found = [(line.split()[0].lstrip("0").encode(), line.split("\t")[1], line.split()[2]) for line in listed]
        tree = made.tree([*(each for each in found if each[1] != entry[1]), entry])
        if depth:
            entry = (TREE, directories[depth - 1], tree)
    return made.commit(tree, tip, message=text)


def bomb(made: Objects, text: str, depth: int = 12) -> str:
    """A tree that names one directory ten times, which does the same, and so on: few objects, and paths without end."""
    tree = made.tree([(FILE, "f", made.blob(text))])
    for _ in range(depth):
        tree = made.tree([(TREE, str(name), tree) for name in range(10)])
    return tree


def _doubled(base: str, size: int) -> bytes:
    delta = _number(size) + _number(2 * size) + (b"\xb0" + size.to_bytes(2, "little")) * 2
    return bytes([7 << 4 | len(delta)]) + bytes.fromhex(base) + zlib.compress(delta)


def _number(left: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    return bytes([left]) if left < 128 else bytes([left & 127 | 128]) + _number(left >> 7)
