"""Kinds that are stored, served and watched but that this server does not act upon: whoever writes one is told so.

A later version takes kinds off this list as it learns to enforce them.
"""

from __future__ import annotations

from apiserver.registry.served import ServedKind

_ADMISSION = "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

UNENFORCED: dict[str, str] = {
    f"mutatingadmissionpolicies.{_ADMISSION}": "no write is changed by it",
    f"mutatingadmissionpolicybindings.{_ADMISSION}": "no write is changed by its policy",
    f"mutatingwebhookconfigurations.{_ADMISSION}": "its webhooks are not called",
    f"validatingadmissionpolicies.{_ADMISSION}": "no write is refused by it",
    f"validatingadmissionpolicybindings.{_ADMISSION}": "no write is refused by its policy",
    f"validatingwebhookconfigurations.{_ADMISSION}": "its webhooks are not called",
    "certificatesigningrequests.certificates.k8s.io": "no certificate is signed for it",
    f"flowschemas.{_FLOW}": "requests are not sorted by it",
    f"prioritylevelconfigurations.{_FLOW}": "requests are not limited by it",
    "limitranges": "its defaults and limits are not applied",
    "resourcequotas": "nothing is counted or refused by it",
}
"""By qualified resource: what does not happen."""


def warnings(kind: ServedKind) -> tuple[str, ...]:
    """What the answer to a write of this kind says in Warning headers."""
    why = UNENFORCED.get(kind.qualified)
    return (f"{kind.kind} is stored but not enforced yet: {why}",) if why else ()
