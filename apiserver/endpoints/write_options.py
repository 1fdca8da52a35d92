"""Query parameters of writes, read and checked as kube-apiserver does."""

from __future__ import annotations

from apiserver.endpoints.exchange import Exchange
from apiserver.model.errors import Cause, invalid
from apiserver.registry.rest_options import IGNORE, STRICT, WARN, WriteOptions

_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


def write_options(exchange: Exchange, verb: str, *, applies: bool = False) -> WriteOptions:
    """Raises StatusError 400, 422."""
    causes = []
    dry = exchange.query.get("dryRun", [])
    if any(d != "All" for d in dry):
        listed = " ".join(f'"{d}"' for d in dry)
        why = f'Unsupported value: [{listed}]: supported values: "All"'
        causes.append(Cause("FieldValueNotSupported", why, "dryRun"))
    validation = exchange.parameter("fieldValidation") or WARN
    if validation not in (STRICT, WARN, IGNORE):
        why = f'Unsupported value: "{validation}": supported values: "", "Ignore", "Strict", "Warn"'
        causes.append(Cause("FieldValueNotSupported", why, "fieldValidation"))
    manager = exchange.parameter("fieldManager")
    if applies and not manager:
        causes.append(Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    if len(manager) > 128:
        causes.append(Cause("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"))
    if not applies and exchange.parameter("force"):
        causes.append(Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force"))
    if causes:
        raise invalid(_KINDS[verb], "meta.k8s.io", "", causes)
    manager = manager or exchange.header(b"user-agent").partition("/")[0][:128] or "unknown"
    return WriteOptions(manager, bool(dry), validation, exchange.flag("force") if applies else False)
