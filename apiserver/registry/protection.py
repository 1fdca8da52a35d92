"""The finalizers by which objects of storage stay while they are used: set when one is made through the API
(admission/completion.py), taken away by a controller when nothing uses it any more."""

from __future__ import annotations

from apiserver.registry.builtins.catalogue import ENTRIES

FINALIZERS = {name: kind.finalizer for name, kind in ENTRIES.items() if kind.finalizer}
"""By store name."""
