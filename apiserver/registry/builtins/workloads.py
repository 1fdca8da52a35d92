"""What runs: apps and batch."""

from __future__ import annotations

from apiserver.registry import names
from apiserver.registry.behaviours import workloads as rules_workloads
from apiserver.registry.builtins.entry import BuiltinKind, Dependents, Health, Reading, Sync
from apiserver.registry.printers import workloads as shown_workloads

KINDS = (
    BuiltinKind(
        "Deployment",
        "deployments.apps",
        behaviour=rules_workloads.DEPLOYMENT,
        generation=True,
        printer=shown_workloads.DEPLOYMENT,
        status_takes=("annotations",),
        sync=Sync.BOUND,
        health=Health.DEPLOYMENT,
        autoscaled=True,
    ),
    BuiltinKind(
        "StatefulSet",
        "statefulsets.apps",
        behaviour=rules_workloads.STATEFUL_SET,
        generation=True,
        printer=shown_workloads.STATEFUL_SET,
        sync=Sync.BOUND,
        health=Health.STATEFUL_SET,
        stateful=True,
        autoscaled=True,
    ),
    BuiltinKind(
        "DaemonSet",
        "daemonsets.apps",
        behaviour=rules_workloads.DAEMON_SET,
        generation=True,
        printer=shown_workloads.DAEMON_SET,
        sync=Sync.BOUND,
        health=Health.DAEMON_SET,
    ),
    BuiltinKind(
        "ReplicaSet",
        "replicasets.apps",
        behaviour=rules_workloads.REPLICA_SET,
        generation=True,
        selectable=("status.replicas",),
        readings={"status.replicas": Reading(("status.replicas",), "0")},
        printer=shown_workloads.REPLICA_SET,
        sync=Sync.BOUND,
        health=Health.REPLICA_SET,
        autoscaled=True,
    ),
    BuiltinKind(
        "Job",
        "jobs.batch",
        behaviour=rules_workloads.JOB,
        generation=True,
        selectable=("status.successful",),
        unselectable='field label "{}" not supported for Job',
        readings={"status.successful": Reading(("status.succeeded",), "0")},
        printer=shown_workloads.JOB,
        dependents=Dependents.ORPHANED,
        sync=Sync.BOUND,
        health=Health.JOB,
    ),
    BuiltinKind(
        "CronJob",
        "cronjobs.batch",
        behaviour=rules_workloads.CRON_JOB,
        names=names.cron_job,
        generation=True,
        printer=shown_workloads.CRON_JOB,
        sync=Sync.BOUND,
    ),
    BuiltinKind(
        "ControllerRevision",
        "controllerrevisions.apps",
        behaviour=rules_workloads.CONTROLLER_REVISION,
        printer=shown_workloads.CONTROLLER_REVISION,
    ),
)
