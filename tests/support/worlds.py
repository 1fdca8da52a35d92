"""A place of a running server that a client takes for a cluster: its path, and a kubeconfig of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from support.plane import Credentials, Plane, environment


class World:
    """`path`: of the URL. `kubeconfig`: as its user would have it."""

    def __init__(self, plane: Plane, path: str, folder: Path) -> None:
        self.plane = plane
        self.path = path
        self.kubeconfig = folder / "kubeconfig"
        config = yaml.safe_load(plane.kubeconfig.read_text())
        current = next(c for c in config["contexts"] if c["name"] == config["current-context"])["context"]
        for cluster in config["clusters"]:
            if cluster["name"] == current["cluster"]:
                cluster["cluster"]["server"] = Credentials.read(plane.kubeconfig).url + path
        _absolute(config, plane.kubeconfig.parent)
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def environment(self) -> dict[str, str]:
        return environment(KUBECONFIG=str(self.kubeconfig), HOME=str(self.kubeconfig.parent))

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """The decoded answer; AssertionError for an error that is not 404, None for that."""
        answer = self.plane.request(method, self.path + path, body, content_type)
        assert answer.status in (200, 201, 404), answer
        return answer.body if answer.status != 404 else None


def _absolute(config: dict[str, Any], folder: Path) -> None:
    """Files that a kubeconfig names beside itself."""
    for section in ("clusters", "users"):
        for entry in config[section]:
            content = entry[section[:-1]]
            for key in ("certificate-authority", "client-certificate", "client-key"):
                if key in content:
                    content[key] = str(folder / content[key])
