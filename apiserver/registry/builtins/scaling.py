"""How many run, and how many may be missing: autoscaling and policy."""

from __future__ import annotations

from apiserver.registry import autoscalers
from apiserver.registry.behaviours import limits as rules_limits
from apiserver.registry.builtins import conditiontypes
from apiserver.registry.builtins.entry import BuiltinKind, Sync
from apiserver.registry.printers import capacity as shown_capacity

KINDS = (
    BuiltinKind(
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers.autoscaling",
        behaviour=rules_limits.HORIZONTAL_POD_AUTOSCALER,
        other_versions=("v1",),
        converts=autoscalers.autoscaler,
        hashed_as="autoscaling/v2",
        printer=shown_capacity.HORIZONTAL_POD_AUTOSCALER,
        sync=Sync.BOUND,
    ),
    BuiltinKind(
        "PodDisruptionBudget",
        "poddisruptionbudgets.policy",
        behaviour=rules_limits.POD_DISRUPTION_BUDGET,
        generation=True,
        printer=shown_capacity.POD_DISRUPTION_BUDGET,
        put_revised=True,
        sync=Sync.BOUND,
        conditions=conditiontypes.DISRUPTION_BUDGET,
    ),
)
