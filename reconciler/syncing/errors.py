"""What can go wrong between us and a sync target. The texts hold nothing secret, so they may be logged and shown."""

from __future__ import annotations

from reconciler.controllers.failures import Expected
from reconciler.controllers.targets import Denied


class TargetUnreachable(Expected):
    """No answer: refused, timed out, reset, or not what an API server answers. Nothing is known of the request."""


class Excessive(TargetUnreachable):
    """The answer is larger than any that an API server would give."""


class Unusable(Denied):
    """The kubeconfig cannot be used."""

    def __init__(self, why: str) -> None:
        super().__init__("KubeconfigRefused", why)


class TargetRefused(Expected):
    """The target answered with an error. `code`: HTTP's; `reason`: Kubernetes' (`NotFound`, `Invalid`, …)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.code, self.reason, self.message = code, reason, message


class Unseen(Expected):
    """A namespace of ours is empty, and its credentials do not let us see whether others keep something there."""

    def __init__(self, namespace: str, error: TargetRefused) -> None:
        super().__init__(
            f"the empty namespace {namespace} stays there, since it cannot be seen whether others keep something in it "
            f"({error}): give the credentials the right to list all that there is, as `treeplane target add` does"
        )


class NotServed(Expected):
    """The target does not serve the kind (in this version)."""


class NothingNew(Expected):
    """The object has no copy, and is to get none."""


class Foreign(Expected):
    """Something of this name is there and is not ours."""


class Unfit(Expected):
    """What the target says of an object cannot stand upstream."""
