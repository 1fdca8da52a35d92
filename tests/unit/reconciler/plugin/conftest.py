from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakeworkspaces import Fake, fresh, serving

from apiserver.auth.kubeconfig import write_admin_kubeconfig
from apiserver.auth.pki import Keys, ensure_keys


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return ensure_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def fake() -> type[Fake]:
    return fresh()


@pytest.fixture
def url(keys: Keys, fake: type[Fake]) -> Iterator[str]:
    with serving(keys, fake) as found:
        yield found


@pytest.fixture
def config(tmp_path: Path, keys: Keys, url: str) -> Path:
    path = tmp_path / "kubeconfig"
    write_admin_kubeconfig(path, url, keys)
    return path
