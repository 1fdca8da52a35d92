"""Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController, Job, CronJob."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterable
from functools import cache

from apiserver.model import selectors
from apiserver.model.errors import Cause
from apiserver.registry.behaviours import pods, podwarnings
from apiserver.registry.behaviours.base import Behaviour, Object, at_least, fill, immutable, one_of, selector
from apiserver.schema import messages

_NO_LIMIT = 2**31 - 1
_STATEFUL = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _spec(obj: Object) -> Object:
    spec: Object = obj.setdefault("spec", {})
    pods.template_default(spec.setdefault("template", {}))
    return spec


def deployment_default(obj: Object) -> None:
    spec = _spec(obj)
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")


def replica_set_default(obj: Object) -> None:
    _spec(obj).setdefault("replicas", 1)


def controller_default(obj: Object) -> None:
    """ReplicationController: selector and labels come from the template."""
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    found = (spec["template"].get("metadata") or {}).get("labels")
    if found:
        spec["selector"] = spec.get("selector") or dict(found)
        obj["metadata"]["labels"] = obj["metadata"].get("labels") or dict(found)


def stateful_set_default(obj: Object) -> None:
    spec = _spec(obj)
    fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    spec["podManagementPolicy"] = spec["podManagementPolicy"] or "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim["status"] = {"phase": "Pending", **(claim.get("status") or {})}


def daemon_set_default(obj: Object) -> None:
    spec = _spec(obj)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)


def job_default(obj: Object) -> None:
    spec = _spec(obj)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    fill(
        spec,
        parallelism=1,
        backoffLimit=_NO_LIMIT if "backoffLimitPerIndex" in spec else 6,
        completionMode="NonIndexed",
        manualSelector=False,
        suspend=False,
        podReplacementPolicy="Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
    )
    found = (spec["template"].get("metadata") or {}).get("labels")
    if found and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(found)


def job_identified(obj: Object) -> None:
    """A Job selects the Pods that carry its own uid, unless it says otherwise."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    labels = (spec["template"].setdefault("metadata", {})).setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = metadata["uid"]
        labels[f"{prefix}job-name"] = metadata["name"]
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": metadata["uid"]}}
    if not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def cron_job_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    job = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    pods.template_default(job.setdefault("template", {}))


def template_check(
    path: str, template: Object, wanted: Object | None, check: bool = True, claims: Iterable[str] = ()
) -> list[Cause]:
    """A pod template that keeps running; `wanted` is the selector that has to match its labels (with `check`).
    `claims`: names of the volumes that its Pods get besides."""
    causes = pods.spec_check(f"{path}.spec", template["spec"], claims)
    policy = template["spec"].get("restartPolicy")
    if policy != "Always" and policy in ("OnFailure", "Never"):
        causes.append(messages.unsupported(f"{path}.spec.restartPolicy", policy, ["Always"]))
    found = (template.get("metadata") or {}).get("labels") or {}
    if check and not selectors.from_object(wanted).matches(found):
        text = "`selector` does not match template `labels`"
        causes.append(messages.invalid(f"{path}.metadata.labels", found, text))
    return causes


def _replicated_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = at_least("spec.replicas", spec.get("replicas")) + at_least(
        "spec.minReadySeconds", spec.get("minReadySeconds")
    )
    wanted = spec.get("selector")
    if wanted is None:
        causes.append(messages.required("spec.selector"))
    elif not wanted.get("matchLabels") and not wanted.get("matchExpressions"):
        text = "empty selector is invalid for " + obj["kind"].lower()
        causes.append(messages.invalid("spec.selector", wanted, text))
    wrong = selector("spec.selector", wanted)
    claims = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    return causes + wrong + template_check("spec.template", spec["template"], wanted, not wrong, claims)


def deployment_check(obj: Object) -> list[Cause]:
    strategy = obj["spec"]["strategy"]
    causes = one_of("spec.strategy.type", strategy["type"], ("Recreate", "RollingUpdate"))
    if strategy["type"] == "Recreate" and strategy.get("rollingUpdate"):
        text = "may not be specified when strategy `type` is 'Recreate'"
        causes.append(messages.forbidden("spec.strategy.rollingUpdate", text))
    return _replicated_check(obj) + causes


def job_check(obj: Object) -> list[Cause]:
    return _job_check("spec", obj["spec"])


def _job_check(path: str, spec: Object) -> list[Cause]:
    causes = []
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        causes += at_least(f"{path}.{field}", spec.get(field))
    causes += one_of(f"{path}.completionMode", spec.get("completionMode"), ("NonIndexed", "Indexed"))
    template = spec["template"]
    causes += pods.spec_check(f"{path}.template.spec", template["spec"])
    policy = template["spec"].get("restartPolicy")
    if policy == "Always":
        at = f"{path}.template.spec.restartPolicy"
        causes.append(messages.required(at, 'valid values: "OnFailure", "Never"'))
    return causes


@cache
def _zones() -> frozenset[str]:
    """Names that the machine's time zone database knows."""
    return frozenset(zoneinfo.available_timezones()) | {"UTC", "Etc/UTC"}


def cron_job_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = [] if spec.get("schedule") else [messages.required("spec.schedule")]
    if spec.get("schedule") and len(spec["schedule"].split()) != 5 and not spec["schedule"].startswith("@"):
        text = f"expected exactly 5 fields, found {len(spec['schedule'].split())}: [{spec['schedule']}]"
        causes.append(messages.invalid("spec.schedule", spec["schedule"], text))
    causes += one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    zone = spec.get("timeZone")
    if zone is not None and zone not in _zones():
        causes.append(messages.invalid("spec.timeZone", zone, f"unknown time zone {zone}"))
    return causes + _job_check("spec.jobTemplate.spec", spec["jobTemplate"]["spec"])


def _selector_update(old: Object, new: Object) -> list[Cause]:
    return immutable("spec.selector", old["spec"].get("selector"), new["spec"].get("selector"))


def stateful_set_update(old: Object, new: Object) -> list[Cause]:
    before = {k: v for k, v in old["spec"].items() if k not in _STATEFUL}
    after = {k: v for k, v in new["spec"].items() if k not in _STATEFUL}
    if before == after:
        return []
    named = ", ".join(f"'{field}'" for field in _STATEFUL[:-1])
    text = f"updates to statefulset spec for fields other than {named} and '{_STATEFUL[-1]}' are forbidden"
    return [messages.forbidden("spec", text)]


def job_update(old: Object, new: Object) -> list[Cause]:
    causes = _selector_update(old, new)
    if not old["spec"].get("suspend"):
        causes += immutable("spec.template", old["spec"].get("template"), new["spec"].get("template"))
    causes += immutable("spec.completionMode", old["spec"].get("completionMode"), new["spec"].get("completionMode"))
    if new["spec"].get("completionMode") != "Indexed":
        causes += immutable("spec.completions", old["spec"].get("completions"), new["spec"].get("completions"))
    return causes


def controller_check(obj: Object) -> list[Cause]:
    """Of a ReplicationController, whose template may be missing."""
    spec = obj["spec"]
    causes = at_least("spec.replicas", spec["replicas"])
    wanted, found = spec.get("selector") or {}, (spec["template"].get("metadata") or {}).get("labels") or {}
    if not wanted:
        causes.append(messages.required("spec.selector"))
    if not spec["template"]["spec"].get("containers"):
        return [*causes, messages.required("spec.template")] if not found else causes
    if wanted and not wanted.items() <= found.items():
        text = "`selector` does not match template `labels`"
        causes.append(messages.invalid("spec.template.metadata.labels", found, text))
    return causes + template_check("spec.template", spec["template"], None, check=False)


def revision_check(obj: Object) -> list[Cause]:
    causes = [] if obj.get("data") is not None else [messages.required("data", "data is mandatory")]
    return causes + at_least("revision", obj.get("revision"))


def revision_update(old: Object, new: Object) -> list[Cause]:
    return immutable("data", old.get("data"), new.get("data"))


_OF_TEMPLATES = podwarnings.of_template("spec", "template")
_OF_NAMED = podwarnings.of_template("spec", "template", named=True)
_OF_CRON_JOBS = podwarnings.of_template("spec", "jobTemplate", "spec", "template", named=True)

CONTROLLER_REVISION = Behaviour(check=revision_check, check_update=revision_update)
CRON_JOB = Behaviour(cron_job_default, cron_job_check, warnings=_OF_CRON_JOBS)
DAEMON_SET = Behaviour(daemon_set_default, _replicated_check, _selector_update, warnings=_OF_TEMPLATES)
DEPLOYMENT = Behaviour(deployment_default, deployment_check, _selector_update, warnings=_OF_NAMED)
JOB = Behaviour(job_default, job_check, job_update, identified=job_identified, warnings=_OF_NAMED)
REPLICA_SET = Behaviour(replica_set_default, _replicated_check, _selector_update, warnings=_OF_NAMED)
REPLICATION_CONTROLLER = Behaviour(controller_default, controller_check, warnings=_OF_NAMED)
STATEFUL_SET = Behaviour(stateful_set_default, _replicated_check, stateful_set_update, warnings=_OF_TEMPLATES)
