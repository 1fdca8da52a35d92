"""Settings travel to a worker as JSON."""

from pathlib import Path

import pytest

from apiserver.settings import ServerSettings


def test_round_trip() -> None:
    settings = ServerSettings(Path("/d"), Path("/k"), port=7, token_auth_file=Path("/t"), git_dir=Path("/g"))
    assert ServerSettings.from_json(settings.to_json()) == settings
    without = ServerSettings(Path("/d"), Path("/k"), disabled_admission=("ServiceAccount",),
                             webhook_networks=("10.0.0.0/8",))  # fmt: skip
    assert ServerSettings.from_json(without.to_json()) == without
    assert ServerSettings.from_json(ServerSettings(Path("/d"), Path("/k")).to_json()).git_dir is None


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="nope"):
        ServerSettings.from_json('{"data_dir": "d", "keys_dir": "k", "nope": 1}')


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "https://127.0.0.1:6443"), ("0.0.0.0", "https://127.0.0.1:6443"), ("::", "https://[::1]:6443")],
)
def test_url(host: str, url: str) -> None:
    assert ServerSettings(Path("d"), Path("k"), host=host).url == url
    assert ServerSettings(Path("d"), Path("k"), host=host, external_url="https://x/").url == "https://x"
