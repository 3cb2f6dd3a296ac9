"""A run as pandas frames: where it spent its time, and the sums that came closest to their bounds.

python examples/library/read_a_run.py poolproof-report
"""

import sys

from poolproof import reports

run = reports.load(sys.argv[1])
print(f"{run.overall} (exit status {run.exit_status})")

conforming = run.rows[run.rows["verdict"] == "conforms"]
print(conforming.groupby(["operator", "aspect"])["seconds"].agg(["count", "sum"]))
print(conforming.nsmallest(3, "margin_min")[["case_id", "operator", "dtype", "margin_min"]])

told = run.columns.loc[["margin_min", "seconds"]]
print(told[["unit", "meaning"]].to_string())
