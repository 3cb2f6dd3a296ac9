"""Scenarios of the two phases of a call: what a caller may do in and between them, and the expected outcome.

A scenario is a sequence of actions (`poolproof.references.sequences`).

Scenarios that no source defines are left out: on a card they may end the process, or worse. They are:

- a workspace smaller than phase one requests, or one with a stated size of 0: kernels write past its end, or to address
  0
- an executor that runs after it was destroyed, or twice without being repeatable, or is made repeatable after its run:
  uses after free
- an executor of another API: any one runs
- descriptors destroyed before phase two, or device memory freed before the stream's work is done: uses after free
- a thread without a context: generations of the runtime differ

Sources:

    [run]         page of CommonOpExecutorRun, which is phase two of every API here: the executor may not be null, nor a
        workspace with a size above 0
    [codes]       page of aclnn return codes: 161001 is a null argument that may not be null
    [repeatable]  page of aclSetAclOpExecutorRepeatable: when it may be called, what it refuses, who then destroys; page
        of aclSetInputTensorAddr, by which an executor gets other addresses before a run
    [destroy]     page of aclDestroyAclOpExecutor
    [runtime]     pages of the runtime: NULL is the default stream; a stream runs work in order; threads share a
        context; a part of an allocation begins at a multiple of 64 bytes
    [base]        code of the base library: the checks of phase two, what an executor keeps, when it is deleted
    [adapter]     torch_npu, which queues calls: phase one runs in one thread before the inputs exist, phase two in
        another; descriptors are destroyed as soon as phase two has returned
"""

from __future__ import annotations

from dataclasses import dataclass

from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.sequences import RUN_FRESH, Actions, actions_of


@dataclass(frozen=True)
class ExecutorScenario:
    """One thing that a caller can do, in a sentence.

    ``expected`` is the status of the `asked` actions, or else of every action. After success, the result is that of a
    plain call. After a refusal, a later plain call is unaffected. None: sources disagree or say nothing, and a success
    gives the result of a plain call.
    """

    id: str
    statement: str
    source: str
    actions: Actions
    expected: ReturnCode | None = ReturnCode.SUCCESS


SCENARIOS: dict[str, ExecutorScenario] = {
    scenario.id: scenario
    for scenario in (
        ExecutorScenario(
            "phase_two.workspace_null",
            "A workspace that phase one requests is not null.",
            "[run], [codes], [base]",
            actions_of("prepare", "need a workspace", "run null workspace asked"),
            expected=ReturnCode.NULL_POINTER,
        ),
        ExecutorScenario(
            "phase_two.workspace_unasked",
            "If phase one requests no workspace, phase two accepts null.",
            "[run]",
            actions_of("prepare", "need no workspace", "run"),
        ),
        ExecutorScenario(
            "phase_two.workspace_understated",
            "A large enough workspace does no harm if the caller understates its size.",
            "[base] ignores the size of a workspace that is not null; no page defines the outcome",
            actions_of("prepare", "need a workspace", "run understated"),
            expected=None,
        ),
        ExecutorScenario(
            "phase_two.workspace_enlarged",
            "A workspace larger than phase one requested does no harm.",
            "[base]; no page requires that the stated size is the requested one",
            actions_of("prepare", "need a workspace", "run enlarged"),
            expected=None,
        ),
        ExecutorScenario(
            "phase_two.workspace_shifted",
            "A workspace begins at any multiple of 64 bytes.",
            "[runtime]",
            actions_of("prepare", "need a workspace", "run shifted"),
        ),
        ExecutorScenario(
            "phase_two.executor_null",
            "The executor is not null.",
            "[run], [codes], [base]",
            actions_of("pass_null phase two asked"),
            expected=ReturnCode.NULL_POINTER,
        ),
        ExecutorScenario(
            "executor.repeatable_null",
            "An executor that is made repeatable is not null.",
            "[repeatable], [base]",
            actions_of("pass_null aclSetAclOpExecutorRepeatable asked"),
            expected=ReturnCode.INTERNAL_NULL,
        ),
        ExecutorScenario(
            "executor.destroy_null",
            "An executor that is destroyed is not null.",
            "[destroy], [base]",
            actions_of("pass_null aclDestroyAclOpExecutor asked"),
            expected=ReturnCode.INTERNAL_NULL,
        ),
        ExecutorScenario(
            "executor.repeatable_run_again",
            "A repeatable executor runs again.",
            "[repeatable], which lets libraries refuse an executor that copies",
            (*actions_of("prepare uncached", "make_repeatable"), *RUN_FRESH * 3),
        ),
        ExecutorScenario(
            "executor.repeatable_from_cache",
            "The executor of a repeated call becomes repeatable, or runs once as usual.",
            "[base] answers 561000 if its cache is on; no page mentions the cache",
            actions_of(
                *("prepare", "fill outputs", "run", "synchronise"),
                *("prepare executor=1", "make_repeatable executor=1 asked", "fill outputs", "run executor=1"),
            ),
            expected=None,
        ),
        ExecutorScenario(
            "executor.addresses_set_twice",
            "Of addresses that are set twice before a run the last count.",
            "[repeatable]",
            actions_of("prepare uncached", "make_repeatable", *("set_addresses call=1", "set_addresses", "run")),
        ),
        ExecutorScenario(
            "executor.repeated_in_other_order",
            "Two repeatable executors run, and again in the other order.",
            "[repeatable]",
            actions_of(
                *("prepare uncached", "make_repeatable", "prepare uncached call=1 executor=1"),
                *("make_repeatable executor=1", "run", "run executor=1", "synchronise", "fill outputs"),
                *("fill outputs call=1", "run executor=1", "run"),
            ),
        ),
        ExecutorScenario(
            "phase_one.after_refusal",
            "A call that follows a refused one is as ever.",
            "[adapter]: an error is raised, and the process continues",
            actions_of("refuse asked", "prepare", "run"),
            expected=None,
        ),
        ExecutorScenario(
            "executor.destroyed_unused",
            "An executor that never ran is destroyed, and the next call works as usual.",
            "[base]; [destroy] mentions only repeatable executors",
            actions_of("prepare", "destroy asked", "prepare", "run"),
            expected=None,
        ),
        ExecutorScenario(
            "phase_two.default_stream",
            "A null stream is the default stream.",
            "[runtime], [base]",
            actions_of("prepare", "run stream=0"),
        ),
        ExecutorScenario(
            "phase_two.stream_made_between",
            "The stream is made after phase one.",
            "[run]: phase one takes none",
            actions_of("prepare", "run stream=2"),
        ),
        ExecutorScenario(
            "phase_two.other_thread",
            "Phase two runs in another thread with the same context.",
            "[runtime], [adapter]",
            actions_of("prepare", "run thread=1"),
        ),
        ExecutorScenario(
            "phase_two.first_thread_gone",
            "Phase one ran in another thread with the same context, which has ended.",
            "[runtime], [adapter]",
            actions_of("prepare thread=1", "end_thread thread=1", "run"),
        ),
        ExecutorScenario(
            "phase_two.data_after_phase_one",
            "The inputs get their values after phase one.",
            "[adapter], [base]: phase one looks at descriptions",
            actions_of("fill inputs", "prepare", "upload", "run"),
        ),
        ExecutorScenario(
            "phase_two.descriptors_destroyed_behind",
            "Tensors and lists are destroyed as soon as phase two has returned.",
            "[adapter], [base]",
            actions_of("prepare", "hold_up", "run", "destroy_descriptors"),
        ),
        ExecutorScenario(
            "phase_one.two_threads",
            "Two threads run phase one of two calls at once.",
            "[runtime], [adapter]: each thread of a process may queue calls",
            actions_of(
                "prepare uncached call=1 executor=1 thread=1 at_once", "prepare uncached", "run", "run executor=1"
            ),
        ),
        ExecutorScenario(
            "phase_two.interleaved",
            "Of two calls with different windows, the later one in phase one comes first in phase two.",
            "[run]: phase two gets all that it needs from its executor",
            actions_of("prepare", "prepare call=1 executor=1", "run executor=1", "synchronise", "run"),
        ),
    )
}
