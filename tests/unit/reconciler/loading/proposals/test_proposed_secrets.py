"""Secrets that are proposed: encrypted as `.sops.yaml` says, or not at all."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.loadedfleet import A
from support.proposalfleet import ProposalFleet
from support.sealing import AgeKey

from apiserver.model.errors import StatusError
from reconciler.repository.difference import walk
from reconciler.repository.objects import Repository

PLAIN = "correct-horse-battery"
PLACE = f"{A}/_objects/default/secrets/pw.yaml"
KEY = AgeKey()
RULES = yaml.safe_dump({"creation_rules": [{"age": KEY.recipient, "encrypted_regex": "^(data|stringData)$"}]})


def a_secret(**data: str) -> dict[str, Any]:
    values = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pw"}, "data": values}


@pytest.fixture
def sealing(idle: ProposalFleet) -> ProposalFleet:
    """With a key for root:a, and rules for all files."""
    KEY.write(idle.keys / "age" / "root:a")
    idle.recheck(idle.secrets.changed())
    idle.commit({".sops.yaml": RULES})
    idle.serve()
    return idle


def said(fleet: ProposalFleet) -> str:
    """All that any branch has, and its messages."""
    repo, texts = Repository(fleet.repo.path), list[str]()
    for ref in fleet.branches_there():
        head = repo.ref(ref)
        assert head is not None
        texts += [commit.message for commit in repo.new_commits(head, fleet.repo.head)]
        texts += [repo.blob(entry.id).decode() for _, entry in walk(repo, repo.commit(head).tree)]
    return "\n".join(texts)


def test_it_is_proposed_so_that_nobody_reads_the_values(sealing: ProposalFleet) -> None:
    for _ in range(2):
        sealing.made("root:a", "secrets", a_secret(password=PLAIN))
    assert [*sealing.proposed()] == [PLACE]
    assert len(sealing.subjects()) == 1, "the same write again adds nothing"
    text = said(sealing)
    assert "ENC[AES256_GCM" in text and PLAIN not in text
    assert base64.b64encode(PLAIN.encode()).decode() not in text
    assert sealing.find("root:a", "secrets", "pw") is None
    sealing.merge()
    assert sealing.get("root:a", "secrets", "pw")["data"]["password"] == base64.b64encode(PLAIN.encode()).decode()


def test_a_change_is_proposed_in_its_file(sealing: ProposalFleet) -> None:
    sealing.made("root:a", "secrets", a_secret(password=PLAIN, user="me"))
    before = sealing.proposed()[PLACE] or ""
    sealing.made("root:a", "secrets", a_secret(password="another", user="me"))
    after = sealing.proposed()[PLACE] or ""
    assert lines(after, "user") == lines(before, "user") and lines(after, "password") != lines(before, "password")
    sealing.merge()
    sealing.patched("root:a", "secrets", "pw", data=a_secret(password=PLAIN, user="me")["data"])
    assert lines(sealing.proposed()[PLACE] or "", "user") == lines(before, "user")
    assert PLAIN not in said(sealing)
    sealing.merge()
    assert sealing.get("root:a", "secrets", "pw")["data"] == a_secret(password=PLAIN, user="me")["data"]


def lines(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip().startswith(f"{name}:")]


def test_a_deletion_of_one_is_proposed(sealing: ProposalFleet) -> None:
    sealing.made("root:a", "secrets", a_secret(password=PLAIN))
    sealing.merge()
    with pytest.raises(StatusError, match="proposed on branch"):
        sealing.deleted("root:a", "secrets", "pw")
    assert sealing.proposed() == {PLACE: None}


@pytest.mark.parametrize("path", ["root:b", "root"])
def test_nothing_is_proposed_that_the_server_could_not_read(sealing: ProposalFleet, path: str) -> None:
    with pytest.raises(StatusError) as told:
        sealing.made(path, "secrets", a_secret(password=PLAIN))
    assert told.value.code in (403, 409) and "keys/age/" in told.value.message
    assert sealing.branches_there() == []


def test_what_somebody_pushed_in_plain_text_is_not_gone_on_with(sealing: ProposalFleet, tmp_path: Path) -> None:
    from tests.unit.reconciler.loading.proposals.test_proposal_sequences import pushed

    sealing.made("root:a", "secrets", a_secret(password=PLAIN))
    text = yaml.safe_dump(a_secret(password="theirs"))
    pushed(sealing, {PLACE: text})
    with pytest.raises(StatusError) as told:
        sealing.made("root:a", "secrets", a_secret(password=PLAIN, more="x"))
    assert told.value.code == 409 and "plain text" in told.value.message
    assert PLAIN not in said(sealing)
