"""Backends of others that are none, that cannot be loaded, or that say what no backend may."""

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
    "an exception of many lines": "raise RuntimeError('all\\n' * 100)",
    "an exception that paints": "raise RuntimeError('\\x1b[2J::error::lost')",
    "a missing module": "import surely_not_there",
    "an end of all": "import sys; sys.exit(0)",
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
    "unsupported wants less": _BACKEND.replace("operator, dtype, index_dtype", "operator"),
    "everything unsupported": _BACKEND.replace("return None", "return 'nothing at all'"),
    "environment raises": _BACKEND + "    def environment(self): raise OSError('no driver')\n",
    "environment gives a list": _BACKEND + "    def environment(self): return ['torch']\n",
    "environment is no method": _BACKEND + "    environment = {'torch': '2'}\n",
    "a product that is a text": _BACKEND + "    product = 'A2'\n",
    **{f"{name} is a number": f"{_BACKEND}    {name} = 5\n" for name in ("tags", "modes", "interface", "actions")},
}
"""What cannot be judged at all, by what the module ``mine`` does."""

_OUTCOMES: Mapping[str, str] = {
    "run raises": _BACKEND.replace("return Outcome", "raise RuntimeError; return Outcome"),
    "run gives nothing": _BACKEND.replace("return Outcome", "Outcome"),
    "run gives a number": _BACKEND.replace("return Outcome", "return 5; Outcome"),
    "run gives a status of its own": _BACKEND.replace("Status.REFUSED", "'fine'"),
    "run wants more": _BACKEND.replace('mode=""', "mode, device"),
    **{
        f"accumulation: {does}": _BACKEND.replace("REFUSED", "COMPLETED")
        + f"    def accumulation(self, call): {does}\n"
        for does in ("1 / 0", "return 'acc32'")
    },
    "results that are a list": _BACKEND.replace("message=", "results=[5], message="),
    "a message that is a number": _BACKEND.replace('"not today"', "5"),
    "a code that is a text": _BACKEND.replace('message="not', 'code="E1", message="not'),
    "seconds that are a text": _BACKEND.replace("message=", "seconds='1', message="),
    "guard_violations that are a number": _BACKEND.replace("message=", "guard_violations=5, message="),
    "actions that nothing does": _BACKEND + "    actions = ('destroy', 'hold_up', 'prepare', 'run')\n",
}
"""What an adapter does wrong in a call: nobody else is accused of it."""

_PRINTS = """
import sys
print("loading " * 1000)
sys.stderr.write("\\x1b[31mwarning")
import scatter
Mine = scatter.Scatter
"""


_NAMES = ("mine:Mine:More", "mine.Mine:", ":Mine", "mine:", "mine:Mi ne", "mine/x:Mine", "..mine:Mine", "mine:_", "5:5")

_ENTRY_POINTS = {
    "of a missing module": "[poolproof.backends]\nentered = surely_not_there:Mine\n",
    "of a missing name": "[poolproof.backends]\nentered = mine:Theirs\n",
    "of a module": "[poolproof.backends]\nentered = mine\n",
    "of another group": "[poolproof.backend]\nentered = mine:Mine\n",
}
_METADATA = "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n"


def listed() -> Iterator[Given]:
    for what, module in MODULES.items():
        yield _given(what, {"mine.py": module})
    for what, module in _OUTCOMES.items():
        yield _given(what, {"mine.py": module}, ending=Ending.INCOMPLETE)
    yield _given("prints while it is loaded", {"mine.py": _PRINTS}, ending=Ending.HARMLESS)
    for name in _NAMES:
        yield _given(f"named {name}", {"mine.py": _BACKEND}, name)
    for what, points in _ENTRY_POINTS.items():
        files = {"METADATA": _METADATA, "entry_points.txt": points}
        about = {f"mine-1.0.dist-info/{name}": text for name, text in files.items()}
        yield _given(f"an entry point {what}", {"mine.py": _BACKEND, **about}, "entered")


def _given(
    what: str, files: Mapping[str, str | bytes], backend: str = "mine:Mine", ending: Ending = Ending.REFUSED
) -> Given:
    arguments, names = small_session(backend=backend), (backend, "no backend has an operator")
    return Given(f"plugin: {what}", "pytest", arguments, names, ending, "pytest --backend", texts(files))
