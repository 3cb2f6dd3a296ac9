"""Judges the cases that it reads on torch-npu, each alone in a process; prints what became of each as JSON.

The object also has how many processes loaded torch.
"""

import json
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from holding import holding
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.judging.checks import USUAL
from poolproof.suites.run.sandbox import Sandbox

if __name__ == "__main__":
    rows, loaded = [], set()
    with TemporaryDirectory() as folder, closing(Sandbox("torch-npu", Path(folder), "npu", 20.0)) as sandbox:
        for case in json.load(sys.stdin):
            question = CaseQuestion(Case.from_record(case), holding(*USUAL))
            rows.append(sandbox.judge_alone(question))
            loaded.add(sandbox.worker._host._guardian)
    columns = ("verdict", "reason", "model", "product", "checks_violated")
    told = [{name: row.get(name) for name in columns} for row in rows]
    sys.stdout.write(json.dumps({"rows": told, "loaded": len(loaded)}) + "\n")
