"""Copies of a correct backend whose calls with ceil_mode leave something of their process otherwise than it was."""

from host_backends import LEAVES
from scatter import Scatter


class Untidy(Scatter):
    """``leave`` is what it does besides."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        outcome = super().run(call, mode)
        if call.attributes.rounds_up:
            self.leave()
        return outcome

    def leave(self) -> None:
        raise NotImplementedError


_LEFT = {
    "rounding": ("rounding up", "rounding mode"),
    "flushing": ("flush-to-zero", "flush-to-zero"),
    "folder": ("folder", "working folder"),
    "mask": ("mask", "signal mask"),
    "handler": ("python handler", "signal handlers"),
    "umask": ("umask", "umask"),
    "limit": ("limit", "limit of"),
    "thread": ("thread", "threads"),
    "child": ("child", "children"),
}
"""By name: what of `LEAVES` a backend's calls do, and what they change."""

LEFT = {
    name: (type(name, (Untidy,), {"leave": lambda self, do=LEAVES[left]: do(), "__module__": __name__}), what)
    for name, (left, what) in _LEFT.items()
}
"""By name: a backend, and what its calls change."""

globals().update({name: backend for name, (backend, _) in LEFT.items()})
