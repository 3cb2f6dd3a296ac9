"""The interface of backends: `Call`, `Outcome` and the `Backend` class.

To add a backend, write a subclass and name it in the entry point group ``poolproof.backends`` of your package, or pass
it as ``--backend your.module:YourClass``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import ALL, Abilities
from poolproof.references.accumulation import ACC32, AccumulationModel
from poolproof.references.contract.call import ContractCall
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule
from poolproof.references.geometry import expand
from poolproof.references.operators import Operator
from poolproof.references.products import Product
from poolproof.references.sequences import REFUSED, Actions, abilities_for
from poolproof.references.text_enum import TextEnum
from poolproof.references.windows import Adaptive, Windows

WORKER_VARIABLE = "POOLPROOF_WORKER"
"""The number, from 0, of a run's worker, by which backends share out devices; set in its process."""

SOURCES_VARIABLE = "POOLPROOF_ASCENDC_SOURCES"
"""The folder in which paths of kernel sources begin."""

MODEL_VARIABLE = "POOLPROOF_ASCENDC_MODEL"
"""``cann`` where kernel sources run on the CPU library of CANN, in place of the suite's own model."""


class BackendUnavailable(Exception):
    """The backend cannot run here at all (a missing library, no device). The text says what to do about it."""


class UnknownBackend(Exception):
    """No backend of that name; the text lists the known ones."""


@dataclass(eq=False)
class Tensor:
    """A strided view over one storage between two guard bands.

    ``buffer`` is the whole allocation in bytes; its first and last ``guard`` bytes are the guard bands, and between
    them lies the storage, of exactly the extent that the view needs. ``array`` is the view as a numpy array that shares
    memory with the buffer; its ``strides`` and ``offset`` (from the start of the storage) count elements. A backend may
    write the elements of output views alone: the caller inspects gaps, guard bands and inputs afterwards. ``tag`` is
    "NHWC" or "NDHWC" where an interface with format tags is to get the axes in that order (`Backend.tags`); shape and
    strides stay in (N, C, [D,] H, W).
    """

    buffer: NDArray[np.uint8]
    guard: int
    array: NDArray
    strides: tuple[int, ...]
    offset: int = 0
    tag: str = ""

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def storage(self) -> NDArray[np.uint8]:
        """The bytes between the guard bands."""
        return self.buffer[self.guard : len(self.buffer) - self.guard]

    @property
    def storage_elements(self) -> int:
        return (len(self.buffer) - 2 * self.guard) // self.dtype.itemsize

    def restrided(self, strides: tuple[int, ...]) -> Tensor:
        """View the same memory with ``strides``; IndexError where they lead out of the storage."""
        if strides == self.strides:
            return self
        last = self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, strides))
        if 0 not in self.shape and not 0 <= last < self.storage_elements:
            raise IndexError(f"strides {list(strides)} lead out of a storage of {self.storage_elements} elements")
        size = self.dtype.itemsize
        start, byte_strides = self.guard + self.offset * size, tuple(stride * size for stride in strides)
        array: NDArray = np.ndarray(self.shape, self.dtype, self.buffer, start, byte_strides)
        return replace(self, array=array, strides=strides)


@dataclass(frozen=True, eq=False)
class Call:
    """One call of one operator: its windows, and a tensor for each name in ``operator.tensors``."""

    operator: Operator
    attributes: Windows
    tensors: Mapping[str, Tensor]
    deterministic: bool = False

    @property
    def dtype(self) -> str:
        """Name of the data dtype, such as ``bfloat16``."""
        return dtype_name(self.tensors["self"].dtype)

    @property
    def index_dtype(self) -> str:
        return dtype_name(self.tensors["indices"].dtype)


def full_length(call: Call) -> dict[str, Any]:
    """Return the windows of a call with a number for each spatial axis, defaults filled in."""
    windows, rank = call.attributes, call.operator.spatial_rank
    if isinstance(windows, Adaptive):
        return {"output_size": expand(windows.output_size, rank)}
    kernel = expand(windows.kernel_size, rank)
    return {
        "kernel_size": kernel,
        "stride": expand(windows.stride, rank, kernel),
        "padding": expand(windows.padding, rank, (0,)),
        "dilation": expand(windows.dilation, rank, (1,)),
        "ceil_mode": windows.ceil_mode,
    }


@cache
def dtype_name(dtype: np.dtype) -> str:
    """Cache ``dtype.name``, which numpy composes anew for each access."""
    return dtype.name


class Status(TextEnum):
    """How a call ended, as the backend sees it."""

    COMPLETED = "completed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Outcome:
    """The result of a call; the tensors' buffers hold the memory as the call left it.

    status
        ``completed``; ``refused``: the implementation reported an error; ``unavailable``: the environment, not the
        operator, is at fault, so that nothing can be concluded.
    code, message
        The implementation's own status number and text, where it has them.
    seconds
        Time of the call itself, copies to and from a device excluded.
    results
        Shape and dtype name that the implementation reports for each output after the call.
    strides
        By output: the strides in elements of the tensor through which the caller reads it after the call, where the
        implementation may give the caller's tensor others. Those of the call where an output is not named.
    guard_violations
        Out-of-bounds writes that the backend itself found in memory that the caller cannot see (guard bands of a
        workspace), in words.
    sanitizer
        What was seen from inside that the implementation does wrong, such as a race, each in a sentence. None where
        nobody watches it.
    changed
        What the call left otherwise than it was in its process, each as (what, before, after). None where nobody
        looked: who runs the backend's process says it, never a backend.
    """

    status: Status
    code: int | None = None
    message: str = ""
    seconds: float = 0.0
    results: Mapping[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    strides: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    guard_violations: tuple[str, ...] = ()
    sanitizer: tuple[str, ...] | None = None
    changed: tuple[tuple[str, str, str], ...] | None = None


@dataclass(frozen=True)
class Attempt:
    """The outcome of a low-level call.

    ``phase_two`` is None where it was not run. ``text`` is the library's own error message. After a refusal
    ``outputs_untouched`` says whether the two results, and ``memory_untouched`` whether the output tensors were left
    alone. ``workspace`` is the size that phase one asked for, in bytes.
    """

    phase_one: int
    phase_two: int | None
    text: str = ""
    outputs_untouched: bool = True
    memory_untouched: bool = True
    workspace: int | None = None


@dataclass(frozen=True)
class SequenceResult:
    """What comes of a sequence of actions on calls (`poolproof.references.sequences`).

    ``statuses`` has one for each action that was performed, -1 for a failure without a number; none where the sequence
    is not ``applicable`` to the calls, or the environment is at fault. ``text`` is the reason, or the library's own
    error message. ``computed`` are the numbers of the calls whose tensors hold what was computed, ``guard_violations``
    are as in `Outcome`.
    """

    statuses: tuple[int, ...] = ()
    text: str = ""
    computed: tuple[int, ...] = ()
    guard_violations: tuple[str, ...] = ()
    applicable: bool = True

    @property
    def status(self) -> int | None:
        """The last that is not success; None where nothing can be concluded."""
        return next((status for status in reversed(self.statuses) if status), 0) if self.statuses else None


@dataclass(frozen=True)
class MemoryInUse:
    """Bytes in use: of device memory by anyone, and what malloc gave out in the host; None where unknown."""

    device: int | None = None
    host: int | None = None


class Backend(ABC):
    """One implementation under test. Only `unsupported` and `run` have no default.

    survives_fork
        A process that has created the backend may be forked; a device context, for one, does not survive that. A dead
        implementation is then replaced by a fork. Each worker of a session loads the backend itself; one that shares
        out devices sees that worker's number (`WORKER_VARIABLE`).
    opens_late
        It may be forked until `open` or a call: each process that makes calls is forked first, and opens it then.
    modes
        Names of ways to execute a call, besides the plain one, that must not change its result.
    variants
        Names of ways in which other code computes, such as a compiler's. Each has the call's expected results and the
        backend's declarations, and is judged wherever the plain call is.
    tags
        Format tags, besides the usual one, under which operators that list one for channels last take their tensors.
    product
        The one that it runs on, None for an interface without a contract. Its contract says what may be refused.
    interface
        The interface that it implements, if that is not aclnn itself. Its documentation says which calls may be refused
        (`poolproof.references.refusals`), unless they reach aclnn on a product. Without contract and interface a
        refusal accuses nobody and leaves a run incomplete.
    actions
        What `run_sequence` can do: verbs of `poolproof.references.sequences`, besides "workspace" where calls can be
        given each other's, and "thread".
    """

    product: Product | None = None
    interface: str = ""
    survives_fork: bool = False
    opens_late: bool = False
    modes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    actions: tuple[str, ...] = ("prepare", "run")

    @abstractmethod
    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        """Return the reason why no call of that operator and dtypes can be made here, or None.

        What a contract forbids need not be named: the judge looks that up.
        """

    def open(self) -> None:  # noqa: B027  (most have nothing to open)
        """Open what a fork does not survive, such as a device, before anything but `__init__` is called.

        `BackendUnavailable` if it is missing.
        """

    def abilities(self, operator: Operator) -> Abilities:
        """Declare which calls of that operator the implementation has; all where a contract says which it must have."""
        return ALL

    @abstractmethod
    def run(self, call: Call, mode: str = "") -> Outcome:
        """Execute ``call`` in the tensors' own memory, in the named one of ``modes`` or ``variants`` if any.

        Errors that the implementation reports are outcomes, not exceptions.
        """

    def attempt(self, call: ContractCall, *, runs: bool = True) -> Attempt:
        """Make a low-level call that may be illegal in any way; phase two only if it ``runs``.

        Only of a backend with a ``product`` and the action "destroy", which has aclnn's two phases.
        """
        raise NotImplementedError

    def run_all(self, calls: Sequence[Call]) -> list[Outcome]:
        """Execute calls in order, up to the first that does not complete."""
        outcomes = []
        for call in calls:
            outcomes.append(self.run(call))
            if outcomes[-1].status is not Status.COMPLETED:
                break
        return outcomes

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        """Do these on calls of one operator, in the tensors' own memory; by default make plain calls where they run."""
        executors: dict[int, int] = {}
        completed: dict[int, Outcome] = {}
        for number, action in enumerate(actions):
            if action.do == "prepare":
                executors[action.executor] = action.call
                continue
            call = executors[action.executor]
            outcome = completed[call] = self.run(calls[call])
            if outcome.status is Status.UNAVAILABLE:
                return SequenceResult(text=outcome.message)
            if outcome.status is Status.REFUSED:
                return SequenceResult((*(0,) * number, outcome.code or -1), outcome.message)
        violations = (violation for outcome in completed.values() for violation in outcome.guard_violations)
        return SequenceResult((0,) * len(actions), "", tuple(sorted(completed)), tuple(violations))

    def accumulation(self, call: Call) -> AccumulationModel:
        """Declare how gradients that meet in one cell are added for that call's operator, dtype and memory formats."""
        return ACC32

    def forward_rule(self, call: Call) -> ForwardRule:
        """Declare which of several cells a forward takes for that call, and how it treats NaN and -inf."""
        return FAMILY_RULE

    def route(self, call: Call) -> str:
        """Name the branch of the implementation that ``call``, the last one run, took; empty if unknown."""
        return ""

    def is_deterministic(self, call: Call) -> bool:
        """Declare whether repeating ``call`` must give the same bits."""
        return True

    def environment(self) -> Mapping[str, str]:
        """List versions and devices that distinguish runs."""
        return {}

    def is_usable(self) -> bool:
        """Check whether this process can make further calls; false once a device context is lost."""
        return True

    def device_memory_in_use(self) -> int | None:
        """Count the bytes of device memory in use by anyone; None where unknown."""
        return None

    def run_often(self, call: Call, count: int, refused: bool) -> None:
        """Execute ``call`` so many times, or have it refused, whatever comes of it."""
        if refused:
            self.run_sequence(REFUSED * count, [call])
        for _ in range(0 if refused else count):
            self.run(call)

    def memory_after(self, call: Call, count: int, refused: bool = False) -> MemoryInUse:
        """Count what is in use once ``call`` was executed, or refused, so many times."""
        self.run_often(call, count, refused)
        return MemoryInUse(self.device_memory_in_use())


def can_run(backend: Backend, actions: Actions) -> bool:
    return abilities_for(actions) <= {*backend.actions}
