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
from poolproof.references.sequences import DEFAULT_STREAM, HOLD_UP, PREPARE, RUN, RUN_FRESH, Action, Actions


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
            (PREPARE, Action("need", "a workspace"), Action("run", "null workspace", asked=True)),
            expected=ReturnCode.NULL_POINTER,
        ),
        ExecutorScenario(
            "phase_two.workspace_unasked",
            "Where phase one asks for no workspace, phase two takes null.",
            "[run]",
            (PREPARE, Action("need", "no workspace"), RUN),
        ),
        ExecutorScenario(
            "phase_two.workspace_understated",
            "A workspace that is large enough, of which the caller says that it is smaller, does no harm.",
            "[base] does not look at the size of a workspace that is there; no page says what it owes",
            (PREPARE, Action("need", "a workspace"), Action("run", "understated")),
            expected=None,
        ),
        ExecutorScenario(
            "phase_two.executor_null",
            "The executor is not null.",
            "[run], [codes], [base]",
            (Action("pass_null", "phase two", asked=True),),
            expected=ReturnCode.NULL_POINTER,
        ),
        ExecutorScenario(
            "executor.repeatable_null",
            "An executor that is made repeatable is not null.",
            "[repeatable], [base]",
            (Action("pass_null", "aclSetAclOpExecutorRepeatable", asked=True),),
            expected=ReturnCode.INTERNAL_NULL,
        ),
        ExecutorScenario(
            "executor.destroy_null",
            "An executor that is destroyed is not null.",
            "[destroy], [base]",
            (Action("pass_null", "aclDestroyAclOpExecutor", asked=True),),
            expected=ReturnCode.INTERNAL_NULL,
        ),
        ExecutorScenario(
            "executor.repeatable_run_again",
            "A repeatable executor runs again.",
            "[repeatable]; it lets libraries refuse one that copies",
            (Action("prepare", "uncached"), Action("make_repeatable"), *RUN_FRESH * 3),
        ),
        ExecutorScenario(
            "executor.repeatable_from_cache",
            "The executor of a call that was made before is made repeatable, or runs once as usual.",
            "[base] answers 561000 where its cache is on; no page speaks of the cache",
            (
                *(PREPARE, *RUN_FRESH),
                *(Action("prepare", executor=1), Action("make_repeatable", executor=1, asked=True)),
                *(Action("fill", "outputs"), Action("run", executor=1)),
            ),
            expected=None,
        ),
        ExecutorScenario(
            "executor.destroyed_unused",
            "An executor that never ran is destroyed, and the next call is as ever.",
            "[base]; [destroy] speaks of repeatable executors alone",
            (PREPARE, Action("destroy", asked=True), PREPARE, RUN),
            expected=None,
        ),
        ExecutorScenario(
            "phase_two.default_stream",
            "A null stream is the default stream.",
            "[runtime], [base]",
            (PREPARE, Action("run", stream=DEFAULT_STREAM)),
        ),
        ExecutorScenario(
            "phase_two.stream_made_between",
            "The stream is made after phase one.",
            "[run]: phase one takes none",
            (PREPARE, Action("run", stream=2)),
        ),
        ExecutorScenario(
            "phase_two.other_thread",
            "Phase two runs in another thread with the same context.",
            "[runtime], [adapter]",
            (PREPARE, Action("run", thread=1)),
        ),
        ExecutorScenario(
            "phase_two.first_thread_gone",
            "Phase one ran in another thread with the same context, which has ended.",
            "[runtime], [adapter]",
            (Action("prepare", thread=1), Action("end_thread", thread=1), RUN),
        ),
        ExecutorScenario(
            "phase_two.data_after_phase_one",
            "The inputs get their values after phase one.",
            "[adapter], [base]: phase one looks at descriptions",
            (Action("fill", "inputs"), PREPARE, Action("upload"), RUN),
        ),
        ExecutorScenario(
            "phase_two.descriptors_destroyed_behind",
            "Tensors and lists are destroyed as soon as phase two has returned.",
            "[adapter], [base]",
            (PREPARE, HOLD_UP, RUN, Action("destroy_descriptors")),
        ),
        ExecutorScenario(
            "phase_one.two_threads",
            "Two threads run phase one of two calls at once.",
            "[runtime], [adapter]: each thread of a process may queue calls",
            (
                Action("prepare", "uncached", call=1, executor=1, thread=1, at_once=True),
                *(Action("prepare", "uncached"), RUN, Action("run", executor=1)),
            ),
        ),
        ExecutorScenario(
            "phase_two.interleaved",
            "Of two calls with different windows the one that came last to phase one comes first to phase two.",
            "[run]: what phase two needs it gets from its executor",
            (
                *(PREPARE, Action("prepare", call=1, executor=1)),
                *(Action("run", executor=1), Action("synchronise"), RUN),
            ),
        ),
    )
}
"""Every scenario by its id."""
