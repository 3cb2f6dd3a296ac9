"""Scenarios of the two phases of a call: what a caller may do in and between them, and the expected outcome.

A scenario is a sequence of actions (`poolproof.references.sequences`).

Those that no source defines are not here, for on a card they may end the process, or worse: a workspace smaller than
phase one asked for, or one whose size the caller calls 0 (kernels write past its end, or to address 0); an executor
that runs though it is destroyed, or for a second time though it is not repeatable, or is made repeatable after its run
(uses after free); one that another API made (any is run); descriptors destroyed before phase two, or device memory
freed before the work on the stream is done (uses after free); a thread without a context (generations of the runtime
differ). Sources:

[run]         page of CommonOpExecutorRun, which is phase two of every API here: the executor may not be null, and a
              workspace may not be null where its size is more than 0
[codes]       page of aclnn return codes: 161001 is a null argument that may not be null
[repeatable]  page of aclSetAclOpExecutorRepeatable: when it may be called, what it refuses, who then destroys
[destroy]     page of aclDestroyAclOpExecutor
[runtime]     pages of the runtime: NULL is the default stream; work on a stream runs in order; threads share a context
[base]        code of the base library: the checks of phase two, what an executor keeps, when it is deleted
[adapter]     torch_npu, which queues calls: phase one in one thread before the inputs are there, phase two in another,
              descriptors destroyed as soon as phase two has returned
"""

from __future__ import annotations

from dataclasses import dataclass

from poolproof.references.contract.vocabulary import ReturnCode
from poolproof.references.sequences import RUN_FRESH, Actions, actions_of


@dataclass(frozen=True)
class ExecutorScenario:
    """One thing that a caller can do, in a sentence.

    ``expected`` of what is asked, or else of every action: success, with which comes what the plain call gives; the
    status of a refusal, after which a plain call gives what it gave before; None where sources disagree or leave it
    open, and a success gives what the plain call does.
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
            "A workspace that phase one asked for is not null.",
            "[run], [codes], [base]",
            actions_of("prepare", "need a workspace", "run null workspace asked"),
            expected=ReturnCode.NULL_POINTER,
        ),
        ExecutorScenario(
            "phase_two.workspace_unasked",
            "Where phase one asks for no workspace, phase two takes null.",
            "[run]",
            actions_of("prepare", "need no workspace", "run"),
        ),
        ExecutorScenario(
            "phase_two.workspace_understated",
            "A workspace that is large enough, of which the caller says that it is smaller, does no harm.",
            "[base] does not look at the size of a workspace that is there; no page says what it owes",
            actions_of("prepare", "need a workspace", "run understated"),
            expected=None,
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
            "[repeatable]; it lets libraries refuse one that copies",
            (*actions_of("prepare uncached", "make_repeatable"), *RUN_FRESH * 3),
        ),
        ExecutorScenario(
            "executor.repeatable_from_cache",
            "The executor of a call that was made before is made repeatable, or runs once as usual.",
            "[base] answers 561000 where its cache is on; no page speaks of the cache",
            actions_of(
                *("prepare", "fill outputs", "run", "synchronise"),
                *("prepare executor=1", "make_repeatable executor=1 asked", "fill outputs", "run executor=1"),
            ),
            expected=None,
        ),
        ExecutorScenario(
            "executor.destroyed_unused",
            "An executor that never ran is destroyed, and the next call is as ever.",
            "[base]; [destroy] speaks of repeatable executors alone",
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
            "Of two calls with different windows the one that came last to phase one comes first to phase two.",
            "[run]: what phase two needs it gets from its executor",
            actions_of("prepare", "prepare call=1 executor=1", "run executor=1", "synchronise", "run"),
        ),
    )
}
"""Every scenario by its id."""
