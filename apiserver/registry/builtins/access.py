"""Who may do what: RBAC, the questions about it, certificates."""

from __future__ import annotations

from apiserver.registry import names
from apiserver.registry.behaviours import certificates as rules_certificates
from apiserver.registry.behaviours import rbac as rules_rbac
from apiserver.registry.builtins.entry import BuiltinKind, RbacPart, Review, Runtime
from apiserver.registry.printers import control as shown_control
from apiserver.registry.printers import core as shown_core

KINDS = (
    BuiltinKind(
        "SelfSubjectReview",
        "selfsubjectreviews.authentication.k8s.io",
        everywhere=True,
        review=Review.SELF,
    ),
    BuiltinKind(
        "TokenReview",
        "tokenreviews.authentication.k8s.io",
        everywhere=True,
        review=Review.TOKEN,
    ),
    BuiltinKind(
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews.authorization.k8s.io",
        everywhere=True,
        review=Review.LOCAL_ACCESS,
    ),
    BuiltinKind(
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews.authorization.k8s.io",
        everywhere=True,
        review=Review.SELF_ACCESS,
    ),
    BuiltinKind(
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews.authorization.k8s.io",
        everywhere=True,
        review=Review.RULES,
    ),
    BuiltinKind(
        "SubjectAccessReview",
        "subjectaccessreviews.authorization.k8s.io",
        everywhere=True,
        review=Review.ACCESS,
    ),
    BuiltinKind(
        "CertificateSigningRequest",
        "certificatesigningrequests.certificates.k8s.io",
        behaviour=rules_certificates.CERTIFICATE_SIGNING_REQUEST,
        names=names.path_segment,
        everywhere=True,
        selectable=("spec.signerName",),
        printer=shown_control.CERTIFICATE_SIGNING_REQUEST,
        unenforced="no certificate is signed for it",
        runtime=Runtime.OWN,
    ),
    BuiltinKind(
        "ClusterRoleBinding",
        "clusterrolebindings.rbac.authorization.k8s.io",
        behaviour=rules_rbac.BINDING,
        names=names.path_segment,
        everywhere=True,
        printer=shown_core.BINDING,
        put_creates=True,
        grants=RbacPart.BINDING,
    ),
    BuiltinKind(
        "ClusterRole",
        "clusterroles.rbac.authorization.k8s.io",
        behaviour=rules_rbac.CLUSTER_ROLE,
        names=names.path_segment,
        everywhere=True,
        printer=shown_core.AS_CREATED,
        put_creates=True,
        grants=RbacPart.ROLE,
    ),
    BuiltinKind(
        "RoleBinding",
        "rolebindings.rbac.authorization.k8s.io",
        behaviour=rules_rbac.BINDING,
        names=names.path_segment,
        everywhere=True,
        printer=shown_core.BINDING,
        put_creates=True,
        grants=RbacPart.BINDING,
    ),
    BuiltinKind(
        "Role",
        "roles.rbac.authorization.k8s.io",
        behaviour=rules_rbac.ROLE,
        names=names.path_segment,
        everywhere=True,
        printer=shown_core.AS_CREATED,
        put_creates=True,
        grants=RbacPart.ROLE,
    ),
)
