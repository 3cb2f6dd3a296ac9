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
"""Number of a run's worker, from 0, in the environment of its process. Backends share out devices by it."""

SOURCES_VARIABLE = "POOLPROOF_ASCENDC_SOURCES"
"""Folder of paths of kernel sources."""

MODEL_VARIABLE = "POOLPROOF_ASCENDC_MODEL"
"""``cann`` runs kernel sources on the CPU library of CANN instead of poolproof's own model."""


class BackendUnavailable(Exception):
    """The backend cannot run here at all (a missing library, no device). The text says what to do about it."""


class UnknownBackend(Exception):
    """No backend has that name; the text lists the known ones."""


@dataclass(eq=False)
class Tensor:
    """A strided view of one storage between two guard bands.

    A backend may write only the elements of output views. The caller inspects gaps, guard bands and inputs afterwards.

    Attributes:
        buffer: The whole allocation in bytes. Between the guard bands is the storage, of exactly the view's extent.
        guard: Bytes of each guard band.
        array: The view as a numpy array that shares memory with the buffer.
        strides: In elements.
        offset: Elements from the start of the storage.
        tag: "NHWC" or "NDHWC" if an interface with format tags must get the axes in that order (`Backend.tags`); shape
            and strides stay in (N, C, [D,] H, W).
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
        """View the same memory with ``strides``; raise IndexError if they leave the storage."""
        if strides == self.strides:
            return self
        last = self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, strides))
        if 0 not in self.shape and not 0 <= last < self.storage_elements:
            raise IndexError(f"strides {list(strides)} leave a storage of {self.storage_elements} elements")
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
    """Return the windows of a call with one number per spatial axis, defaults filled in."""
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
    """Cache ``dtype.name``, which numpy composes again at each access."""
    return dtype.name


class Status(TextEnum):
    """How a call ended, as the backend sees it."""

    COMPLETED = "completed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Outcome:
    """The result of a call; the tensors' buffers hold the memory as the call left it.

    Attributes:
        status: ``completed``; ``refused``: the implementation reported an error; ``unavailable``: the environment is at
            fault, not the operator, so nothing can be concluded.
        code, message: The implementation's own status number and text, if any.
        seconds: Time of the call itself, without copies to and from a device.
        results: Output -> shape and dtype name that the implementation reports after the call.
        strides: Output -> strides, in elements, of the caller's tensor after the call, if the implementation may change
            them. An output that is not named has those of the call.
        guard_violations: Out-of-bounds writes that the backend found in memory that the caller cannot see, such as
            guard bands of a workspace, in words.
        sanitizer: Faults seen from inside the implementation, such as races, one sentence each; None without a
            sanitizer.
        changed: State of the process that the call changed, as (what, before, after); None if not compared. The host
            sets it, never a backend.
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

    Attributes:
        phase_two: None if it did not run.
        text: The library's own error message.
        outputs_untouched: After a refusal, the two results were not written.
        memory_untouched: After a refusal, the output tensors were not written.
        workspace: Size that phase one requests, in bytes.
    """

    phase_one: int
    phase_two: int | None
    text: str = ""
    outputs_untouched: bool = True
    memory_untouched: bool = True
    workspace: int | None = None


@dataclass(frozen=True)
class SequenceResult:
    """The outcome of a sequence of actions on calls (`poolproof.references.sequences`).

    Attributes:
        statuses: One per performed action, -1 for a failure without a number. Empty if the sequence is not
            ``applicable``
            to the calls, or if the environment is at fault.
        text: The reason, or the library's own error message.
        computed: Numbers of the calls with computed results in their tensors.
        guard_violations: As in `Outcome`.
    """

    statuses: tuple[int, ...] = ()
    text: str = ""
    computed: tuple[int, ...] = ()
    guard_violations: tuple[str, ...] = ()
    applicable: bool = True

    @property
    def status(self) -> int | None:
        """The last status other than success; None if nothing can be concluded."""
        return next((status for status in reversed(self.statuses) if status), 0) if self.statuses else None


@dataclass(frozen=True)
class MemoryInUse:
    """Bytes in use: of device memory by any process, and by malloc in the host; None if unknown."""

    device: int | None = None
    host: int | None = None


class Backend(ABC):
    """One implementation under test. Only `unsupported` and `run` have no default.

    Attributes:
        survives_fork: A process that created the backend may be forked, which a device context does not survive. A dead
            implementation is then replaced by a fork. Otherwise each worker of a session loads the backend itself. It
            can choose a device by its number (`WORKER_VARIABLE`).
        opens_late: It may be forked until `open` or a call. Each process that makes calls is forked first, and then
            opens.
        modes: Names of other ways to execute a call that must not change its result.
        variants: Names of ways to compute with other code, such as a compiler's. Each has the call's expected results
            and the backend's declarations, and is judged wherever the plain call is.
        tags: Further format tags for tensors of operators that list one for channels last.
        product: The product that it runs on; None for an interface without a contract. The contract says which calls
            may be refused.
        interface: The interface that it implements, if not aclnn itself. Its documentation says which calls may be
            refused (`poolproof.references.refusals`), unless they reach aclnn on a product. Without contract and
            interface, a refusal is no fault. It leaves a run incomplete unless `may_refuse` documents it.
        actions: Abilities of `run_sequence`: verbs of `poolproof.references.sequences`, "workspace" if calls can share
            workspaces, and "thread".
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
        """Return why no call of that operator and dtypes is possible here, or None.

        It need not name what a contract forbids: the judge looks that up.
        """

    def open(self) -> None:  # noqa: B027  (most have nothing to open)
        """Open what a fork does not survive, such as a device. It runs before every method except `__init__`.

        It raises `BackendUnavailable` if it is missing.
        """

    def abilities(self, operator: Operator) -> Abilities:
        """Declare which calls of that operator the implementation supports; with a contract, all."""
        return ALL

    @abstractmethod
    def run(self, call: Call, mode: str = "") -> Outcome:
        """Execute ``call`` in the tensors' own memory; ``mode`` is one of ``modes`` or ``variants``, or empty.

        Errors that the implementation reports are outcomes, not exceptions.
        """

    def attempt(self, call: ContractCall, *, runs: bool = True) -> Attempt:
        """Make a low-level call, which may be illegal in any way; run phase two only if ``runs``.

        Only called for a backend with a ``product`` and the action "destroy", which has aclnn's two phases.
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
        """Perform actions on calls in the tensors' own memory; by default, runs are plain calls."""
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
        """Declare how the gradients of one cell are added, for that call's operator, dtype and memory formats."""
        return ACC32

    def forward_rule(self, call: Call) -> ForwardRule:
        """Declare which of several cells a forward takes for that call, and how it treats NaN and -inf."""
        return FAMILY_RULE

    def may_refuse(self, call: Call) -> str:
        """Name the document, and its limit, by which the implementation may refuse ``call``; empty if it must run.

        A call that runs nevertheless is judged. A contract or a documented interface goes before it.
        """
        return ""

    def route(self, call: Call) -> str:
        """Name the implementation's branch for ``call``, the last one that ran; empty if unknown."""
        return ""

    def is_deterministic(self, call: Call) -> bool:
        """Declare whether repetitions of ``call`` must give the same bits."""
        return True

    def environment(self) -> Mapping[str, str]:
        """Return versions and devices that distinguish runs."""
        return {}

    def is_usable(self) -> bool:
        """Check whether this process can make further calls; false after a device context is lost."""
        return True

    def device_memory_in_use(self) -> int | None:
        """Return the bytes of device memory in use by any process; None if unknown."""
        return None

    def run_often(self, call: Call, count: int, refused: bool) -> None:
        """Execute ``call``, or have it refused, ``count`` times, and ignore the results."""
        if refused:
            self.run_sequence(REFUSED * count, [call])
        for _ in range(0 if refused else count):
            self.run(call)

    def memory_after(self, call: Call, count: int, refused: bool = False) -> MemoryInUse:
        """Return the memory in use after ``count`` executions, or refusals, of ``call``."""
        self.run_often(call, count, refused)
        return MemoryInUse(self.device_memory_in_use())


def can_run(backend: Backend, actions: Actions) -> bool:
    return abilities_for(actions) <= {*backend.actions}
