"""What can go wrong between us and a sync target. The texts hold nothing secret, so they may be logged and shown."""

from __future__ import annotations

from reconciler.controllers.runtime import Expected


class Unreachable(Expected):
    """No answer: refused, timed out, reset, or not a certificate that we trust. Nothing is known of the request."""


class Unusable(Expected):
    """The kubeconfig cannot be used."""


class Refused(Expected):
    """The target answered with an error. `code`: HTTP's; `reason`: Kubernetes' (`NotFound`, `Invalid`, …)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.code, self.reason, self.message = code, reason, message


class NotServed(Expected):
    """The target does not serve the kind (in this version)."""


class Foreign(Expected):
    """Something of this name is there and is not ours."""
