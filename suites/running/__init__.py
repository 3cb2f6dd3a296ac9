"""Which cases are judged where: plans, the processes that may die of them, and the runner that hands blocks out."""
