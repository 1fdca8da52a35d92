"""Asks a real kube-apiserver with its controllers how deletions go, and writes answers.json beside it.

    cd tests && python golden/deletion/record.py [story …]

Starts a cluster of its own (see realclusters). What the stories are, support/deletions.py says.
"""

from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from realclusters import binaries
from realclusters.cluster import RealCluster
from support.deletions import STORIES, play

ANSWERS = Path(__file__).parent / "answers.json"


def main(*stories: str) -> None:
    answers = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    wanted = stories or tuple(STORIES)
    with (
        tempfile.TemporaryDirectory() as folder,
        RealCluster("golden", Path(folder), binaries.find()) as cluster,
        ThreadPoolExecutor(4) as pool,
    ):
        played = pool.map(lambda story: play(cluster.request, story), wanted)
        answers.update(zip(wanted, played, strict=True))
    ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
