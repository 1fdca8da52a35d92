"""What Kubernetes' own ClusterRoles allow, as a table: facts about Kubernetes 1.36, read by bootstrap.py.

One rule a line below the role's name: verbs, API groups (`core` for the group without a name), resources and, if the
rule has them, resource names; or verbs and URLs. Roles of controllers and nodes that do not run here are there too
where programs bind or check them; those of the controllers are in controller_roles.json.
"""

from __future__ import annotations

_READ, _WRITE = "get,list,watch", "create,delete,deletecollection,patch,update"

TABLE = f"""
cluster-admin
  * * *
  * *
system:aggregate-to-admin
  create authorization.k8s.io localsubjectaccessreviews
  {_READ},{_WRITE} rbac.authorization.k8s.io rolebindings,roles
system:aggregate-to-edit
  {_READ} core pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy
  impersonate core serviceaccounts
  {_WRITE} core pods,pods/attach,pods/exec,pods/portforward,pods/proxy
  create core pods/eviction
  {_WRITE} core configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets
  {_WRITE} core serviceaccounts,services,services/proxy
  create core serviceaccounts/token
  {_WRITE} apps daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale
  {_WRITE} apps statefulsets,statefulsets/scale
  {_WRITE} autoscaling horizontalpodautoscalers
  {_WRITE} batch cronjobs,jobs
  {_WRITE} policy poddisruptionbudgets
  {_WRITE} networking.k8s.io ingresses,networkpolicies
  {_WRITE} resource.k8s.io resourceclaims,resourceclaimtemplates
  {_READ},{_WRITE} coordination.k8s.io leases
system:aggregate-to-view
  {_READ} core configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers
  {_READ} core replicationcontrollers/scale,serviceaccounts,services,services/status
  {_READ} core bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status
  {_READ} core resourcequotas,resourcequotas/status
  {_READ} core namespaces
  {_READ} discovery.k8s.io endpointslices
  {_READ} apps controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status
  {_READ} apps replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status
  {_READ} autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status
  {_READ} batch cronjobs,cronjobs/status,jobs,jobs/status
  {_READ} policy poddisruptionbudgets,poddisruptionbudgets/status
  {_READ} networking.k8s.io ingresses,ingresses/status,networkpolicies
  {_READ} resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates
  {_READ} events.k8s.io events
system:auth-delegator
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
system:basic-user
  create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews
  create authentication.k8s.io selfsubjectreviews
system:certificates.k8s.io:certificatesigningrequests:nodeclient
  create certificates.k8s.io certificatesigningrequests/nodeclient
system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
  create certificates.k8s.io certificatesigningrequests/selfnodeclient
system:certificates.k8s.io:kube-apiserver-client-approver
  approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client
system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
  approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet
system:certificates.k8s.io:kubelet-serving-approver
  approve certificates.k8s.io signers kubernetes.io/kubelet-serving
system:certificates.k8s.io:legacy-unknown-approver
  approve certificates.k8s.io signers kubernetes.io/legacy-unknown
system:discovery
  get /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/
system:kube-aggregator
  {_READ} core endpoints,services
system:kube-controller-manager
  create,patch,update core,events.k8s.io events
  create coordination.k8s.io leases
  get,update coordination.k8s.io leases kube-controller-manager
  create core secrets,serviceaccounts
  delete core secrets
  get core configmaps,namespaces,secrets,serviceaccounts
  update core secrets,serviceaccounts
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
  list,watch * *
  create core serviceaccounts/token
system:kube-dns
  list,watch core endpoints,services
system:kube-scheduler
  create,patch,update core,events.k8s.io events
  create coordination.k8s.io leases
  {_READ},update coordination.k8s.io leases kube-scheduler
  {_READ},{_WRITE} coordination.k8s.io leasecandidates
  {_READ} core nodes
  delete,{_READ} core pods
  create core bindings,pods/binding
  patch,update core pods/status
  update core pods/finalizers
  {_READ} core replicationcontrollers,services
  {_READ} apps replicasets,statefulsets
  {_READ} policy poddisruptionbudgets
  {_READ} core persistentvolumeclaims,persistentvolumes
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
  {_READ} storage.k8s.io csidrivers,csinodes,csistoragecapacities,volumeattachments
  {_READ} core namespaces
  {_READ} resource.k8s.io deviceclasses,resourceslices
  create,delete,{_READ},patch,update resource.k8s.io resourceclaims
  {_READ},patch,update resource.k8s.io resourceclaims/status
  patch,update resource.k8s.io resourceclaims/binding
system:kubelet-api-admin
  {_READ},proxy core nodes
  * core nodes/configz,nodes/healthz,nodes/log,nodes/metrics,nodes/pods,nodes/proxy,nodes/stats
system:monitoring
  get /flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,/statusz
  get core nodes/metrics
system:node
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews
  {_READ} core services
  create,{_READ} core nodes
  patch,update core nodes,nodes/status
  create,patch,update core,events.k8s.io events
  {_READ},create,delete core pods
  patch,update core pods/status
  create core pods/eviction
  {_READ} core configmaps,secrets
  get core endpoints,persistentvolumeclaims,persistentvolumes
  create,{_READ} certificates.k8s.io certificatesigningrequests
  create,delete,get,patch,update coordination.k8s.io leases
  get storage.k8s.io volumeattachments
  create core serviceaccounts/token
  get,patch,update core persistentvolumeclaims/status
  {_READ} storage.k8s.io csidrivers
  create,delete,get,patch,update storage.k8s.io csinodes
  {_READ} node.k8s.io runtimeclasses
  get resource.k8s.io resourceclaims
  deletecollection resource.k8s.io resourceslices
  get core serviceaccounts
system:node-bootstrapper
  create,{_READ} certificates.k8s.io certificatesigningrequests
system:node-problem-detector
  get core nodes
  patch core nodes/status
  create,patch,update core,events.k8s.io events
system:node-proxier
  list,watch core endpoints,services
  {_READ} core nodes
  create,patch,update core,events.k8s.io events
  list,watch discovery.k8s.io endpointslices
  list,watch networking.k8s.io servicecidrs
system:persistent-volume-provisioner
  create,delete,{_READ} core persistentvolumes
  {_READ},update core persistentvolumeclaims
  {_READ} storage.k8s.io storageclasses
  watch core events
  create,patch,update core,events.k8s.io events
system:public-info-viewer
  get /healthz,/livez,/readyz,/version,/version/
system:service-account-issuer-discovery
  get /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/
system:volume-scheduler
  {_READ},patch,update core persistentvolumes
  {_READ} storage.k8s.io storageclasses
  {_READ},patch,update core persistentvolumeclaims
"""


def roles() -> dict[str, list[dict[str, list[str]]]]:
    """The table, read: rules by role, as objects have them."""
    found: dict[str, list[dict[str, list[str]]]] = {}
    name = ""
    for line in TABLE.strip().splitlines():
        if not line.startswith(" "):
            name = line
            found[name] = []
            continue
        found[name].append(_rule([part.split(",") for part in line.split()]))
    return found


def _rule(parts: list[list[str]]) -> dict[str, list[str]]:
    if len(parts) == 2:
        return {"verbs": parts[0], "nonResourceURLs": parts[1]}
    verbs, groups, resources, *names = parts
    rule = {"verbs": verbs, "apiGroups": ["" if g == "core" else g for g in groups], "resources": resources}
    return {**rule, "resourceNames": names[0]} if names else rule
