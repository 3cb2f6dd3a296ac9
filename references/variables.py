"""The environment variables that poolproof reads, each with its meaning, for the reference.

`meta_tests/project/test_reference.py` searches the sources for variables that are not here.
"""

from __future__ import annotations

from collections.abc import Mapping

VARIABLES: Mapping[str, Mapping[str, str]] = {
    "Runs": {
        "POOLPROOF_<NAME>_PYTHON": "Python interpreter, or other program, that hosts the backend of this name.",
        "POOLPROOF_MEMORY_BUDGET": "Bytes that one process may use; a case that needs more is not run. "
        "`--memory-budget` sets it. Default: the free memory.",
        "POOLPROOF_WRITABLE": "Further folders that a backend may write to, separated by colons.",
        "POOLPROOF_WORKER": "Number of the worker, from 0. A run sets it; backends choose their device by it.",
        "POOLPROOF_UNCOMPILED": "If set, the compiled loops run as plain Python, for debugging. Slow.",
    },
    "Implementations": {
        "POOLPROOF_NPU": "Number of the NPU. Default: the number of the worker.",
        "POOLPROOF_ACLNN_LIBRARY": "Libraries, or folders of libraries, of aclnn. `--aclnn-library` sets it.",
        "POOLPROOF_ASCENDC_SOURCES": "Folder of the kernel sources. `--sources` sets it.",
        "POOLPROOF_ASCENDC_MODEL": "`cann` runs kernel sources on CANN's CPU library. `--model` sets it.",
    },
    "Emulated NPU, its machine": {
        "POOLPROOF_EMULATOR_PRODUCT": "A2, A3, 950, 910, 310P or 310B. The last three refuse what they refuse on a "
        "card. Default: A2.",
        "POOLPROOF_EMULATOR_MEMORY": "Bytes of memory of each device. Default: 8 GiB.",
        "POOLPROOF_EMULATOR_DEVICES": "Number of devices. Default: 1.",
        "POOLPROOF_EMULATOR_VERSION": "Version of CANN to report. Default: 9.0.0.",
        "POOLPROOF_EMULATOR_SYSTEM_WORKSPACE": "Bytes that the runtime of the 950 adds to each workspace. "
        "Default: 16 MiB, for a backend of poolproof less.",
        "POOLPROOF_EMULATOR_DEFECTS": "Seeded defects, separated by commas; `seeds.def` lists them. Default: none.",
        "POOLPROOF_EMULATOR_SANITIZER": "`address` or `thread`: build with this sanitizer.",
    },
    "Emulated NPU, how it computes": {
        "POOLPROOF_EMULATOR_ORDER": "Order of additions: `route` (that of the kernel), `forward`, `reverse`, `random` "
        "or `pairwise`. Default: `route`.",
        "POOLPROOF_EMULATOR_ACCUMULATION": "Precision of partial sums: `acc32` or `native`. "
        "Default: that of the kernel.",
        "POOLPROOF_EMULATOR_NARROWING": "Rounding to half precision: `even`, `away`, `truncate`, `up` or `down`. "
        "Default: `even`.",
        "POOLPROOF_EMULATOR_SUBNORMALS": "`keep` or `flush`, in half precision. Default: `keep`.",
        "POOLPROOF_EMULATOR_OVERFLOW": "`inf` or `saturate`, in half precision. Default: `inf`.",
        "POOLPROOF_EMULATOR_TIES": "Which of equal maxima a forward takes: `first` or `last`. Default: `first`.",
        "POOLPROOF_EMULATOR_NANS": "Which NaN a forward takes: `last`, `first` or `ignore`. Default: `last`.",
    },
    "Other programs' variables": {
        "ASCEND_HOME_PATH": "Where CANN is installed; its `set_env.sh` sets it.",
        "ASCEND_OPP_PATH": "CANN's folder of operators, in which custom operators may be installed.",
        "ASCEND_CUSTOM_OPP_PATH": "Folders of custom operators, separated by colons.",
        "ACLNN_CACHE_LIMIT": "Limit of aclnn's cache of executors, also in the emulated NPU.",
        "DISABLE_L2_CACHE": "Switches that cache off, also in the emulated NPU.",
        "CXX": "Compiler of the emulated NPU and of kernel sources. Default: c++, g++ or clang++.",
        "XDG_CACHE_HOME": "Folder of compiled loops and libraries, which `poolproof cache` lists. Default: `~/.cache`.",
        "NUMBA_CACHE_DIR": "Another folder for compiled loops.",
        "COLUMNS": "Width of tables when the output is no terminal. Default: 140.",
        "TMPDIR": "Folder of temporary files. The host of a backend gets one of its own.",
        "PYTHONPATH": "Where `module:attribute` of a backend is found.",
        "OMP_NUM_THREADS": "Threads of a host. A run sets 1.",
        "GITHUB_STEP_SUMMARY": "On GitHub Actions, the file that gets the summary of a run.",
        "_POOLPROOF_COMPLETE": "Completion of commands: `bash_source`, `zsh_source` or `fish_source`.",
    },
    "Tests of poolproof": {
        "POOLPROOF_WORKERS": "Worker processes of each tox environment. Default: 2; of `tests`, 4.",
        "POOLPROOF_RACES": "How often a test of concurrent writers repeats. Default: 4.",
        "POOLPROOF_TEST_PYTHON39": "A Python 3.9 with numpy 1.22, for tests of hosts.",
    },
}
"""Title of a group -> name -> meaning, in Markdown."""
