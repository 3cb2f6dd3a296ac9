"""Calls for the emulator's own tests: a case as what the plain caller takes."""

from contract_calls import MP3
from emulator_driver import Emulator, PreparedCall, View
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import allocate
from poolproof.suites.cases.operands import make_operands

_NAMES = {"grad_output": "gradOutput", "grad_input": "gradInput"}


def prepared_case(emulator: Emulator, case: Case) -> PreparedCall:
    """The case's call, its operands on the device."""
    operator, views = case.api, {}
    for name, tensor in allocate(make_operands(case)).tensors.items():
        storage = tensor.storage.copy().view(tensor.dtype)
        views[_NAMES.get(name, name)] = View(storage, tensor.shape, tensor.strides, tensor.offset)
    passed = operator.passed(case.attributes)
    lists = {str(number): values for number, values in enumerate(passed) if not isinstance(values, bool)}
    return PreparedCall(emulator, f"aclnn{operator.name}", views, lists, True in passed)


def prepared(emulator: Emulator) -> PreparedCall:
    """A legal call of the 3-D backward: windows that overlap in a plane too large for one tile."""
    windows = {"kernel_size": (1, 3, 3), "stride": (1, 2, 2), "index_dtype": "int32"}
    return prepared_case(emulator, Case.of(MP3.removeprefix("aclnn"), shape=(1, 2, 16, 9, 9), **windows))
