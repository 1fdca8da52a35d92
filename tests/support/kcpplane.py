"""A running `treeplane kcp start`, as somebody has it who knows kcp, and programs that are run against it."""

from __future__ import annotations

import os
import subprocess

from support.plane import COMMAND, Plane, PlaneError, environment, kubectl_program


class KcpPlane(Plane):
    """`treeplane kcp start --root-directory DATA …`."""

    def words(self) -> list[str]:
        where = ["--root-directory", str(self.data), "--bind-address=127.0.0.1", "--secure-port", str(self.port)]
        return [str(self.command), "kcp", "start", *where, *self.arguments]

    def run(self, program: str, *arguments: str, stdin: str = "", token: str = "") -> str:
        """What it prints: kubectl, treeplane, or a program by its path. `token`: whose, instead of the
        administrator's."""
        path = f"{COMMAND.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        variables = environment(KUBECONFIG=str(self.kubeconfig), PATH=path)
        named = {"kubectl": kubectl_program, "treeplane": lambda: str(COMMAND)}
        words = [named[program]() if program in named else program, *arguments]
        if token:
            authority = str(self.data / "apiserver.crt")
            words += ["--kubeconfig", os.devnull, "--certificate-authority", authority, "--token", token]
        done = subprocess.run(
            words, input=stdin, env=variables, capture_output=True, text=True, check=False, timeout=60
        )
        if done.returncode != 0:
            raise PlaneError(f"{program} {' '.join(arguments)}: {done.stderr}")
        return done.stdout
