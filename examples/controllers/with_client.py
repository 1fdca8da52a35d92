"""A provider's controller, with the official Python client: gives every Cowboy of every consumer its result.

    python with_client.py root:wildwest cowboys        # workspace and name of the export

One process, one list and one watch for all consumers. They go to the provider's view of the export; what is written
goes to the same view of the one workspace that the object is in, which its annotation kcp.io/cluster names.
"""

from __future__ import annotations

import copy
import sys
from typing import Any

from kubernetes import client, config, watch

GROUP, VERSION, PLURAL = "wildwest.dev", "v1alpha1", "cowboys"
GONE = 410
PAGE = 500

Object = dict[str, Any]


class View:
    """The provider's view of an export."""

    def __init__(self, workspace: str, export: str) -> None:
        self._settings = client.Configuration.get_default_copy()
        server = self._settings.host.partition("/clusters/")[0]
        self._base = f"{server}/services/apiexport/{workspace}/{export}/clusters"
        self.all = self._of("*")

    def _of(self, cluster: str) -> client.CustomObjectsApi:
        settings = copy.copy(self._settings)
        settings.host = f"{self._base}/{cluster}"
        made = client.ApiClient(settings)
        if cluster != "*":
            made.rest_client = self.all.api_client.rest_client  # all share the connections of the first
        return client.CustomObjectsApi(made)

    def say(self, obj: Object, status: Object) -> None:
        """Writes the status of an object, in its own workspace."""
        metadata = obj["metadata"]
        where = metadata["namespace"], PLURAL, metadata["name"]
        self._of(metadata["annotations"]["kcp.io/cluster"]).patch_namespaced_custom_object_status(
            GROUP, VERSION, *where, {"status": status}, _content_type="application/merge-patch+json"
        )


def reconcile(view: View, cowboy: Object) -> None:
    wanted = {"result": f"Yeehaw, {(cowboy.get('spec') or {}).get('intent', 'partner')}"}
    if cowboy.get("status") != wanted:
        try:
            view.say(cowboy, wanted)
        except client.ApiException as error:
            # It went, or its workspace takes the API no more; whatever else there is comes with the next event.
            print(f"{cowboy['metadata']['name']}: {error.status} {error.reason}", file=sys.stderr)


def listed(view: View) -> tuple[list[Object], str]:
    """All there are, page by page, and the resource version to watch from."""
    found: list[Object] = []
    token = ""
    while True:
        page = view.all.list_cluster_custom_object(GROUP, VERSION, PLURAL, limit=PAGE, _continue=token or None)
        found += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            return found, page["metadata"]["resourceVersion"]


def run(view: View) -> None:
    while True:
        cowboys, since = listed(view)
        for each in cowboys:
            reconcile(view, each)
        print(f"watching over {len(cowboys)} cowboys", flush=True)
        try:
            watches = watch.Watch().stream(
                view.all.list_cluster_custom_object, GROUP, VERSION, PLURAL, resource_version=since
            )
            for event in watches:
                if event["type"] in ("ADDED", "MODIFIED"):
                    reconcile(view, event["object"])
        except client.ApiException as error:
            if error.status != GONE:  # claims or consumers changed, or the log was cut: begin anew
                raise


if __name__ == "__main__":
    config.load_kube_config()
    run(View(*sys.argv[1:3]))
