"""Whoever writes what is not enforced is told."""

from apiserver.admission.unenforced import UNENFORCED, warnings
from apiserver.registry.kinds import kubernetes_builtins


def test_every_kind_on_the_list_exists_and_warns() -> None:
    kinds = {k.qualified: k for k in kubernetes_builtins().all()}
    assert kinds.keys() >= UNENFORCED.keys()
    for name in UNENFORCED:
        [text] = warnings(kinds[name])
        assert text.startswith(f"{kinds[name].kind} is stored but not enforced yet: ")


def test_others_do_not() -> None:
    kind = kubernetes_builtins().preferred("", "configmaps")
    assert kind is not None
    assert warnings(kind) == ()
