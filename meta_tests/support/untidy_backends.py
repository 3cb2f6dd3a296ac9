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


def untidy(name: str, left: str) -> type[Untidy]:
    return type(name, (Untidy,), {"leave": lambda self: LEAVES[left](), "__module__": __name__})


LEFT = {
    "rounding": (untidy("rounding", "rounding up"), "rounding mode"),
    "flushing": (untidy("flushing", "flush-to-zero"), "flush-to-zero"),
    "folder": (untidy("folder", "folder"), "working folder"),
    "mask": (untidy("mask", "mask"), "signal mask"),
    "handler": (untidy("handler", "python handler"), "signal handlers"),
    "umask": (untidy("umask", "umask"), "umask"),
    "limit": (untidy("limit", "limit"), "limit of"),
    "thread": (untidy("thread", "thread"), "threads"),
    "child": (untidy("child", "child"), "children"),
}
"""By name: a backend, and what its calls change."""

globals().update({name: backend for name, (backend, _) in LEFT.items()})
