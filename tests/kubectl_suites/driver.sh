#!/usr/bin/env bash
# driver.sh FUNCTION PORT: one function of kubectl's suite, against a server that runs already on this machine.
#
# Started by __main__.py in a copy of the parts of Kubernetes' tree that the suite uses. It stands for what
# hack/make-rules/test-cmd.sh and `setup` do around the functions, without building and starting anything. FUNCTION is one
# of test/cmd/*.sh, or `inline`: what legacy-script.sh itself checks between the functions.

set -o errexit -o nounset -o pipefail

function_to_run=$1
export SECURE_API_PORT=$2 TERM=xterm

source hack/lib/init.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh

# The suite looks for it with a pipe that breaks now and then.
kube::util::ensure-gnu-sed() { SED=sed; }

kube::util::trap_add stop-proxy EXIT
kube::util::ensure-temp-dir
export HOME="${KUBE_TEMP}" TMPDIR="${KUBE_TEMP}" KUBE_JUNIT_REPORT_DIR="${KUBE_TEMP}"
export SUPPORTED_RESOURCES=("*")
export ALLOW_SKEW=true  # the server is not of the version that kubectl is

CONTEXT="test"
kubectl config set-credentials test-admin --token admin-token
kubectl config set-cluster local --insecure-skip-tls-verify --server "https://127.0.0.1:${SECURE_API_PORT}"
kubectl config set-context "${CONTEXT}" --user test-admin --cluster local
kubectl config use-context "${CONTEXT}"

# The suite's server writes its certificate there, and allows everything to everybody.
openssl s_client -connect "127.0.0.1:${SECURE_API_PORT}" </dev/null 2>/dev/null | openssl x509 > "${TMPDIR}/apiserver.crt"
kubectl get clusterrolebinding everybody >/dev/null 2>&1 || kubectl create clusterrolebinding everybody \
  --clusterrole=cluster-admin --group=system:authenticated --group=the-group

# There is no kubelet, and some functions want a node of this name.
if ! kubectl get node 127.0.0.1 >/dev/null 2>&1; then
  kubectl create -f - <<NODE
{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}},
 "status": {"capacity": {"memory": "1Gi"}}}
NODE
fi

# runTests sets the variables that all functions need, then records either what WHAT names or everything in turn. Nothing
# here may stand in a condition: that would suspend errexit in the function.
if [[ "${function_to_run}" == inline ]]; then
  record_command() { :; }
else
  WHAT="the-function-chosen"
  record_command() {
    create_and_use_new_namespace  # whatever ran before in the suite did so
    "${function_to_run}"
  }
fi
runTests
