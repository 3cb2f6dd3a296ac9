"""Backends that anybody could plug in, each with one way not to be judged: it refuses, dies, raises or is killed."""

import os
import sys
import time
from pathlib import Path

import dying_backends as dying
from dying_backends import crashes_always, doing, raises_always  # noqa: F401  (named on command lines)
from poolproof.backends.base import Call, Outcome, Status
from scatter import Scatter, fault
from scatter_backends import first_cell_for_empty_window, lost

raises_at_ceiling = dying.raising


def _is_three_wide(call: Call) -> bool:
    return call.operator.is_backward and 3 in call.attributes.sizes


dies_of_threes = doing(os.abort, _is_three_wide, "dies_of_threes")
unforkable_dies_of_threes = doing(os.abort, _is_three_wide, "unforkable_dies_of_threes", survives_fork=False)
"""One kernel, for windows three wide, kills its process; all others are right."""


@fault("objection")
def refuses_everything(self, call):
    return "not today"


@fault("objection")
def refuses_padding(self, call):
    """Has no padding, as some frameworks have none, and says so."""
    return "padding is not supported" if call.attributes.is_padded else Scatter.objection(self, call)


@fault("may_refuse")
def takes_the_mode(self, call):
    return "limits.md: no deterministic mode" if call.deterministic else ""


takes_the_mode_and_loses = type("takes_the_mode_and_loses", (takes_the_mode,), {"route_terms": lost.route_terms})


@fault("objection", base=takes_the_mode)
def refuses_the_mode(self, call):
    return self.may_refuse(call) or Scatter.objection(self, call)


@fault("may_refuse", base=refuses_padding)
def refuses_padding_by_its_document(self, call):
    return "limits.md: no padding" if call.attributes.is_padded else ""


@fault("objection", may_refuse=lambda self, call: "limits.md: not today")
def refuses_everything_by_its_document(self, call):
    return "not today"


@fault("run")
def names_a_stranger(self, call, mode=""):
    """The adapter tells of a tensor that the call does not put out."""
    return Outcome(Scatter.run(self, call, mode).status, results={"gradient": ((1,), "float32")})


@fault("run")
def status_is_text(self, call, mode=""):
    """The adapter gives a status of its own."""
    return Outcome("ok")


@fault("run", lost=False, is_usable=lambda self: not self.lost)
def loses_its_device(self, call, mode=""):
    """Reports as a refusal that its device is lost."""
    self.lost = True
    return Outcome(Status.REFUSED, code=507015, message="507015 (AI Core exception)")


@fault("route_terms")
def loses_threes(self, call, cells, terms):
    """One kernel, for windows three wide, loses the last gradient."""
    return (cells[:-1], terms[:-1]) if _is_three_wide(call) else (cells, terms)


class RemembersCeiling(Scatter):
    """Every call is right by itself, and one without ceil_mode is wrong after one with it."""

    trampled = False

    def run(self, call: Call, mode: str = "") -> Outcome:
        self.trampled |= call.attributes.rounds_up
        return super().run(call, mode)

    def narrow(self, call, sums):  # type: ignore[no-untyped-def]
        return super().narrow(call, sums) + (self.trampled and not call.attributes.rounds_up)


@fault("run", base=RemembersCeiling)
def tramples_at_ceiling(self, call, mode=""):
    """One kernel, for windows with ceil_mode, writes past its output, and into what others read."""
    outcome = RemembersCeiling.run(self, call, mode)
    if call.attributes.rounds_up:
        call.tensors["grad_input"].buffer[-1] = 1
    return outcome


class LosesThreesAndRemembers(loses_threes, RemembersCeiling):
    """One kernel is wrong by itself, and another after a third that is right."""


@fault("run", loaded=False)
def slow_at_first(self, call, mode=""):
    """Loads in every process, at its first call, for longer than a case may take."""
    if not self.loaded:
        time.sleep(3.0)
        self.loaded = True
    return Scatter.run(self, call, mode)


@fault("route")
def tells_what_is_imported(self, call):
    """Names as its route the packages that its process has imported."""
    return " ".join(sorted({name.partition(".")[0] for name in sys.modules}))


@fault("route")
def tells_its_card(self, call):
    """Names as its route the card that its process was given."""
    return f"card {os.environ.get('ASCEND_RT_VISIBLE_DEVICES')}"


@fault("route_terms", process=0, loses=False)
def loses_now_and_then(self, call, cells, terms):
    """Loses in those processes that draw the letter L from a file; each takes the letter that it draws."""
    if self.process != os.getpid():
        lots = Path(os.environ["LOTS"])
        letters = lots.read_text()
        lots.write_text(letters[1:])
        self.process, self.loses = os.getpid(), letters[:1] == "L"
    return (cells[:-1], terms[:-1]) if self.loses else (cells, terms)


@fault("forward", base=first_cell_for_empty_window)
def dies_in_forward(self, call):
    """Its forward kills its process; its backward is right."""
    os.abort()
