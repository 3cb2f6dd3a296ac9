"""Backends of others that are none, that cannot be loaded, or that say what no backend may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bad_inputs import Ending, Given, small_session
from bad_inputs.materials import texts

_BACKEND = """
from poolproof.backends.base import *
from poolproof.backends.base import Backend, Outcome, Status

class Mine(Backend):
    survives_fork = True
    def unsupported(self, operator, dtype, index_dtype):
        return None
    def run(self, call, mode=""):
        return Outcome(Status.REFUSED, message="not today")
"""

MODULES: Mapping[str, str] = {
    "a syntax error": "def (",
    "an exception": "1 / 0",
    "an exception of its own": "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
    "an exception without a text": "raise RuntimeError",
    "an exception of many lines": "raise RuntimeError('all\\n' * 100)",
    "an exception that paints": "raise RuntimeError('\\x1b[2J::error::lost')",
    "an assertion": "assert False",
    "a missing module": "import surely_not_there",
    "a missing name": "from os import surely_not_there",
    "an end of all": "import sys; sys.exit(0)",
    "an end with a text": "import sys; sys.exit('I am no backend')",
    "an end at once": "import os; os._exit(0)",
    "an end as if it violated": "import os; os._exit(1)",
    "an interruption": "raise KeyboardInterrupt",
    "an abort": "import os; os.abort()",
    "a kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "a hang": "import time\nwhile True: time.sleep(1)",
    "endless recursion": "def deeper(): deeper()\ndeeper()",
    "too much memory": "x = bytearray(1 << 62)",
    "null characters": "x = 1\0",
    "no text": "\udcff\udcfe",
    "no Mine": "x = 1",
    "Mine is a number": "Mine = 5",
    "Mine is None": "Mine = None",
    "Mine is a module": "import os as Mine",
    "Mine gives nothing": "def Mine(): pass",
    "Mine gives a text": "def Mine(): return 'backend'",
    "Mine gives a class": _BACKEND.replace("Mine", "Other") + "\ndef Mine(): return Other",
    "Mine wants more": "def Mine(device): pass",
    "Mine raises": "def Mine(): raise OSError(5, 'no card')",
    "Mine raises nothing known": "class Odd(BaseException): pass\ndef Mine(): raise Odd('odd')",
    "Mine ends all": "import sys\ndef Mine(): sys.exit(0)",
    "Mine is no Backend": "class Mine: pass",
    "Mine looks like a Backend": _BACKEND.replace("(Backend)", ""),
    "Mine has no methods": "from poolproof.backends.base import Backend\nclass Mine(Backend): pass",
    "Mine has no run": _BACKEND.replace("def run", "def runs"),
    "unsupported raises": _BACKEND.replace("return None", "raise KeyError(dtype)"),
    "unsupported is no method": _BACKEND + "    unsupported = 5\n",
    "unsupported gives a number": _BACKEND.replace("return None", "return 5"),
    "unsupported gives a list": _BACKEND.replace("return None", "return []"),
    "unsupported gives false": _BACKEND.replace("return None", "return False"),
    "unsupported wants less": _BACKEND.replace("operator, dtype, index_dtype", "operator"),
    "everything unsupported": _BACKEND.replace("return None", "return 'nothing at all'"),
    "environment raises": _BACKEND + "    def environment(self): raise OSError('no driver')\n",
    "environment gives nothing": _BACKEND + "    def environment(self): return None\n",
    "environment gives a list": _BACKEND + "    def environment(self): return ['torch']\n",
    "environment is no method": _BACKEND + "    environment = {'torch': '2'}\n",
    "a product that is a text": _BACKEND + "    product = 'A2'\n",
    "tags that are a number": _BACKEND + "    tags = 5\n",
    "modes that are a number": _BACKEND + "    modes = 5\n",
    "an interface that is a number": _BACKEND + "    interface = 5\n",
}
"""What cannot be judged at all, by what the module ``mine`` does."""

_OUTCOMES: Mapping[str, str] = {
    "run raises": _BACKEND.replace("return Outcome", "raise RuntimeError; return Outcome"),
    "run gives nothing": _BACKEND.replace("return Outcome", "Outcome"),
    "run gives a number": _BACKEND.replace("return Outcome", "return 5; Outcome"),
    "run gives a status of its own": _BACKEND.replace("Status.REFUSED", "'fine'"),
    "run wants more": _BACKEND.replace('mode=""', "mode, device"),
    "accumulation raises": _BACKEND.replace("REFUSED", "COMPLETED") + "    def accumulation(self, call): 1 / 0\n",
    "accumulation gives a text": _BACKEND.replace("REFUSED", "COMPLETED")
    + "    def accumulation(self, call): return 'acc32'\n",
    "results that are a list": _BACKEND.replace("message=", "results=[5], message="),
    "a message that is a number": _BACKEND.replace('"not today"', "5"),
    "a code that is a text": _BACKEND.replace('message="not', 'code="E1", message="not'),
    "seconds that are a text": _BACKEND.replace("message=", "seconds='1', message="),
    "guard_violations that are a number": _BACKEND.replace("message=", "guard_violations=5, message="),
    "streams that are a number": _BACKEND + "    streams = 5\n",
    "phases that are a number": _BACKEND + "    phases = 5\n",
}
"""What an adapter does wrong in a call: nobody else is accused of it."""

_PRINTS = """
import sys
print("loading " * 1000)
sys.stderr.write("\\x1b[31mwarning")
import scatter
Mine = scatter.Scatter
"""


def listed() -> Iterator[Given]:
    for what, module in MODULES.items():
        yield _given(f"plugin: {what}", module)
    for what, module in _OUTCOMES.items():
        yield _given(f"plugin: {what}", module, Ending.INCOMPLETE)
    yield _given("plugin: prints while it is loaded", _PRINTS, Ending.HARMLESS)
    for name in (
        "mine:Mine:More",
        "mine.Mine:",
        ":Mine",
        "mine:",
        "mine:Mi ne",
        "mine/x:Mine",
        "..mine:Mine",
        "mine:_",
        "5:5",
    ):
        yield _named(f"plugin: named {name}", name, _BACKEND)
    for what, module in ENTRY_POINTS.items():
        lay = texts({"mine.py": _BACKEND, "mine-1.0.dist-info/METADATA": _METADATA, _POINTS: module})
        arguments = small_session(backend="entered")
        yield Given(
            f"plugin: an entry point {what}", "pytest", arguments, ("entered",), about="pytest --backend", lay=lay
        )


_METADATA = "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n"
_POINTS = "mine-1.0.dist-info/entry_points.txt"

ENTRY_POINTS: Mapping[str, str] = {
    "of a missing module": "[poolproof.backends]\nentered = surely_not_there:Mine\n",
    "of a missing name": "[poolproof.backends]\nentered = mine:Theirs\n",
    "of a module": "[poolproof.backends]\nentered = mine\n",
    "of another group": "[poolproof.backend]\nentered = mine:Mine\n",
}


def _given(name: str, module: str, ending: Ending = Ending.REFUSED) -> Given:
    return _named(name, "mine:Mine", module, ending)


def _named(name: str, backend: str, module: str, ending: Ending = Ending.REFUSED) -> Given:
    arguments = small_session(backend=backend)
    return Given(
        name,
        "pytest",
        arguments,
        (backend, "no backend has an operator"),
        ending,
        "pytest --backend",
        texts({"mine.py": module}),
    )
