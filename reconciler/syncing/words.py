"""What a sync target says of an object, in words for the object's tenant: with the names that things have upstream, and
without those of others, whose copies are on the same cluster.

Called by target, for conditions and Events. What is told to nobody stands in the log of who runs the server.
"""

from __future__ import annotations

import re

from reconciler.controllers.failures import Expected
from reconciler.syncing.errors import TargetRefused
from reconciler.syncing.homes import Homes
from reconciler.syncing.upstream import Item

_NAME = re.compile(r"[a-z0-9][-a-z0-9]{0,62}")
_WITHHELD = "what the cluster says of it names what is not of this namespace, and stands in the server's log alone"


def upstream_words(text: str, item: Item, homes: Homes) -> str:
    """Nothing where it names another workspace's namespace on the cluster: who is there too, and what he has, is not
    told."""
    strange = set(homes.strange())
    for name in set(_NAME.findall(text)):
        place = homes.origin(name)
        if name in strange or (place is not None and place != (item.cluster, item.namespace)):
            return ""
    home = homes.get(item.cluster, item.namespace)
    return re.sub(rf"(?<![-a-z0-9]){re.escape(home.name)}(?![-a-z0-9])", item.namespace, text) if home else text


def warned(text: str, item: Item, homes: Homes) -> str:
    """What the target warns of."""
    return upstream_words(text, item, homes) or _WITHHELD


def why(error: Expected, item: Item, homes: Homes) -> str:
    """Why an object is not there as it should be."""
    told = upstream_words(str(error), item, homes)
    return told or (f"{error.reason}: {_WITHHELD}" if isinstance(error, TargetRefused) else _WITHHELD)
