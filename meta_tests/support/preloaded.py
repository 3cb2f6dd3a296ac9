"""What commands import, compile and plan late, done once in the fork server; sandboxes are forked from its children.

Every session counts the cases of the whole plan. Most of that time goes into stored lists, and on the emulator into the
contract of all APIs.
"""

import gc
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.util import find_spec

import forked
from poolproof.references.contract.vocabulary import SIGNATURES
from poolproof.references.kernels.compiled import compile_all
from poolproof.references.products import PRODUCTS
from poolproof.reports.pages.render import read_template
from poolproof.reports.rows.environment import suite_identity
from poolproof.suites.cases.calls import call_parts
from poolproof.suites.isolation import supervision
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.plan.plans import PLANS, blocks, subjects
from scatter_backends import honest

_LATE = (
    *("scatter_backends", "dying_backends", "hypothesis.internal.observability", "pandas", "pyarrow.acero"),
    *("pyarrow.dataset", "pyarrow.parquet", "poolproof.reports.commands", "poolproof.reports.pages.publishing"),
    *("poolproof.reports.rows.arrow", "poolproof.reports.terminal.run", "poolproof.suites.plugin"),
    *("poolproof.suites.verify.rerun", "xdist.dsession"),
)

for _point in entry_points(group="pytest11"):
    _point.load()
if find_spec("torch"):
    import_module("torch")
for _name in _LATE:
    import_module(_name)
compile_all()
suite_identity()
for _api in SIGNATURES:
    list(call_parts(PRODUCTS["A2"], _api, cases=1, seed=0))
for _block in blocks(subjects("honest", honest()), ASPECTS.values(), PLANS["smoke"], 0):
    _block.groups()
for _template in files("poolproof.reports.pages").iterdir():
    if _template.name.endswith(".j2"):
        read_template(_template.name)
assert "launched" in vars(supervision), "what starts a host has moved, and would not be forked"
supervision.launched = forked.launched
gc.collect()
gc.freeze()
