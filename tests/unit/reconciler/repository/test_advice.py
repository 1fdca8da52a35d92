"""What is said to do about what git, ssh and forges say."""

from __future__ import annotations

import pytest

from reconciler.repository import advice

URL = "https://git.example.org/archived/read-only-429.git"
AWAY = {
    "No user exists for uid 12345": "nss_wrapper",
    f"fatal: unable to access '{URL}/': The requested URL returned error: 429": "limits how often",
    f"fatal: unable to access '{URL}/': The requested URL returned error: 403": "--git-token-file",
    f"fatal: could not read Username for '{URL}': terminal prompts disabled": "--git-token-file",
    f"fatal: Authentication failed for '{URL}/'": "--git-token-file",
    "git@git.example.org: Permission denied (publickey).": "--git-ssh-key-file",
    "ERROR: The key you are authenticating with has been marked as read only.": "write there",
    "remote: This deploy key does not have write access to this project.": "write there",
    "remote: Write access to repository not granted.\nfatal: … returned error: 403": "write there",
    "remote: This repository was archived so it is read-only.\nfatal: … returned error: 403": "write there",
    f"fatal: unable to access '{URL}/': server certificate verification failed. CAfile: none": "--git-ca-file",
    f"fatal: unable to access '{URL}/': SSL certificate problem: unable to get local issuer": "--git-ca-file",
    f"fatal: unable to access '{URL}/': CONNECT tunnel failed, response 407": "--git-proxy",
    f"fatal: unable to access '{URL}/': Received HTTP code 403 from proxy after CONNECT": "--git-proxy",
    f"fatal: unable to access '{URL}/': Could not resolve proxy: none.example.org": "--git-proxy",
    f"fatal: unable to access '{URL}/': Could not resolve host: git.example.org": "check the URL, the network",
}
REFUSED = {
    "remote rejected (pre-receive hook declined)": "a rule of the forge",
    "remote rejected (protected branch hook declined)": "a rule of the forge",
    "remote: error: GH006: Protected branch update failed for refs/heads/treeplane/status.": "a rule of the forge",
    "remote: GitLab: You are not allowed to push code to protected branches on this project.": "a rule of the forge",
    "remote: This deploy key does not have write access to this project.": "write there",
    "stale info": "see the source's rules",
}


@pytest.mark.parametrize("said", AWAY)
def test_what_does_not_answer(said: str) -> None:
    assert AWAY[said] in advice.away(said)


@pytest.mark.parametrize("said", REFUSED)
def test_what_takes_no_push(said: str) -> None:
    assert REFUSED[said] in advice.refused(said)
