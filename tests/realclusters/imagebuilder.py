"""Builds the image of deploy/container/Containerfile, where the machine can: buildah does, and debootstrap its base.

Used by tests/e2e/test_image.py. Both programs are those on ``PATH``, or Debian's packages (debianpackages); root is
needed, since the steps of an image run in a root folder of their own. The base is Debian's smallest system without
manuals, as its published slim image is. Base, the packages of the lock file and the layers of the last build stay in
the cache, so a build fetches nothing but what has changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realclusters import binaries
from realclusters.binaries import Unavailable
from realclusters.debianpackages import unpacked

SUITE = "bookworm"
PYTHON = "3.11"
"""The suite's."""
TAG = "localhost/treeplane"
_BASE = f"localhost/{SUITE}"
_MIRROR = "http://deb.debian.org/debian"
_PACKAGES = ("buildah", "debootstrap", "golang-github-containers-common", "golang-github-containers-image",
             "libassuan0", "libdevmapper1.02.1", "libgpgme11", "libseccomp2", "libsubid4", "patchelf")  # fmt: skip
_REMEDY = "have buildah and debootstrap on PATH"
_POLICY = "policy.json"
_LEFT_OUT = ("man", "doc", "locale", "info", "lintian")
_SECONDS = 900


class ImageError(Exception):
    """buildah did not do what it was asked for; the text has its last words."""


@dataclass(frozen=True, slots=True)
class ImageBuilder:
    """`folder`: in the cache; all that it keeps is below."""

    folder: Path
    buildah: Path
    debootstrap: Path
    environment: dict[str, str] = field(default_factory=dict)

    def build(self, source: Path, wheel: Path) -> Image:
        """`source`: what is checked out; `wheel`: of the same. Several processes may ask at once: one builds. Raises
        ImageError."""
        with binaries.locked(self.folder / "lock"), tempfile.TemporaryDirectory() as scratch:
            context = Path(scratch)
            for each in ("deploy", "release", "requirements"):
                shutil.copytree(source / each, context / each, ignore=shutil.ignore_patterns("__pycache__"))
            for each in ("LICENSE", "NOTICE"):
                shutil.copy2(source / each, context)
            (context / "dist").mkdir()
            shutil.copy2(wheel, context / "dist")
            self._fetch(source / "requirements" / "run.txt")
            self._bud(context, "--target", "build", "--tag", f"{TAG}-build")
            self._bud(context, "--tag", TAG)
            self.run("rmi", "--prune")
        return Image(self)

    def run(self, *words: str) -> str:
        """What `buildah` answers."""
        done = subprocess.run(
            [self.buildah, *words], env=self.environment, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
        if done.returncode:
            raise ImageError(f"buildah {words[0]}: {done.stderr[-2000:]}")
        return done.stdout.strip()

    def _bud(self, context: Path, *words: str) -> None:
        """Without a network but for Debian's packages: Python's lie in a folder beside."""
        wheels, settings = self.folder / "wheels", self.folder / "pip.conf"
        settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
        mounts = ("--volume", f"{wheels}:/wheels:ro", "--volume", f"{settings}:/etc/pip.conf:ro")
        recipe = str(context / "deploy" / "container" / "Containerfile")
        how = ("--isolation", "chroot", "--layers", "--pull-never", "--build-arg", f"BASE={_BASE}")
        self.run("bud", *how, *mounts, *self.policy(), "--file", recipe, *words, str(context))

    def policy(self) -> tuple[str, str]:
        """Which images are taken: the base and what is made of it, which nobody signs."""
        return "--signature-policy", str(self.folder / _POLICY)

    def _fetch(self, lock: Path) -> None:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
        command += ["--require-hashes", "--only-binary=:all:", "--python-version", PYTHON]
        command += ["--requirement", str(lock), "--dest", str(self.folder / "wheels")]
        subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True)

    def make_base(self) -> None:
        """Once. Raises Unavailable."""
        if _BASE in self.run("images", "--format", "{{.Name}}"):
            return
        sys.stderr.write(f"making a base of images for the tests in {self.folder} (once)\n")
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            root = Path(scratch) / "root"
            command = [str(self.debootstrap), "--variant=minbase", SUITE, str(root), _MIRROR]
            done = subprocess.run(command, env=self.environment, capture_output=True, check=False, timeout=_SECONDS)
            if done.returncode:
                raise Unavailable(f"debootstrap: {done.stdout.decode(errors='replace')[-300:]}")
            _without_manuals(root)
            made = self.run("from", *self.policy(), "scratch")
            self.run("copy", "--quiet", made, str(root), "/")
            self.run("run", "--isolation", "chroot", made, "true")  # not every machine lets it
            self.run("commit", "--quiet", "--rm", *self.policy(), made, _BASE)


@dataclass(frozen=True, slots=True)
class Image:
    """What was built."""

    builder: ImageBuilder

    def settings(self) -> dict[str, Any]:
        """User, entry point, environment and ports, as the image carries them."""
        told: dict[str, Any] = json.loads(self.builder.run("inspect", "--type", "image", TAG))["OCIv1"]["config"]
        return told

    def compressed(self) -> int:
        """Bytes that whoever pulls it fetches, the base's with it."""
        with tempfile.TemporaryDirectory() as scratch:
            policy = self.builder.policy()
            self.builder.run("push", "--quiet", *policy, TAG, f"oci:{scratch}/image:pushed")
            return sum(each.stat().st_size for each in Path(scratch, "image", "blobs", "sha256").iterdir())

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Its root folder, for as long as the block lasts."""
        container = self.builder.run("from", *self.builder.policy(), "--pull-never", TAG)
        try:
            yield Path(self.builder.run("mount", container))
        finally:
            self.builder.run("umount", container)
            self.builder.run("rm", container)


def _without_manuals(root: Path) -> None:
    """As Debian's slim image is, with what keeps dpkg from bringing them back."""
    rules = "".join(f"path-exclude /usr/share/{each}/*\n" for each in _LEFT_OUT)
    (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(f"{rules}path-include /usr/share/doc/*/copyright\n")
    for each in _LEFT_OUT:
        for path in (root / "usr/share" / each).rglob("*"):
            if not path.is_dir() and path.name != "copyright":
                path.unlink()
    for each in ("var/cache/apt", "var/lib/apt/lists", "var/log"):
        shutil.rmtree(root / each)
        (root / each).mkdir()


def find() -> ImageBuilder:
    """With its base made (several processes may ask at once: one makes it). Raises Unavailable."""
    if os.geteuid():
        raise Unavailable("only root builds images here")
    folder = binaries.cache_home().with_name("images") / f"{SUITE}-1"
    (folder / "wheels").mkdir(parents=True, exist_ok=True)
    try:
        builder = _builder(folder)
        with binaries.locked(folder / "lock"):
            builder.make_base()
    except (OSError, ImageError, subprocess.SubprocessError) as error:
        raise Unavailable(f"no image can be built: {error}") from error
    return builder


def _builder(folder: Path) -> ImageBuilder:
    (folder / _POLICY).write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    storage = folder / "storage.conf"
    storage.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n')
    environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(storage)}
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    buildah, debootstrap = (shutil.which(name, path=path) for name in ("buildah", "debootstrap"))
    if buildah is None or debootstrap is None:
        there = unpacked("buildah", _PACKAGES, _REMEDY)
        environment["DEBOOTSTRAP_DIR"] = str(there / "usr/share/debootstrap")
        environment["CONTAINERS_REGISTRIES_CONF"] = str(there / "etc/containers/registries.conf")
        buildah, debootstrap = str(_with_libraries(there)), str(there / "usr/sbin/debootstrap")
    return ImageBuilder(folder, Path(buildah), Path(debootstrap), environment)


def _with_libraries(there: Path) -> Path:
    """The program, told where its libraries lie: it starts itself anew without its environment for each step."""
    program = there / "usr/bin/buildah-there"
    with binaries.locked(there.parent / "patching.lock"):
        if not program.exists():
            [libraries] = there.glob("usr/lib/*-linux-gnu")
            made = Path(shutil.copy2(there / "usr/bin/buildah", there / "usr/bin/buildah-patched"))
            command = [there / "usr/bin/patchelf", "--force-rpath", "--set-rpath", libraries, made]
            subprocess.run(command, check=True, timeout=_SECONDS)
            made.rename(program)
    return program


def main() -> None:
    """`python -m realclusters.imagebuilder`: make the base and fetch ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"image: built by {find().buildah}\n")
    except Unavailable as error:
        sys.stdout.write(f"image: none, its tests will be skipped: {error}\n")


if __name__ == "__main__":
    main()
