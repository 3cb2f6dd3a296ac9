"""How a session judges: the runner of a process, repetitions, the time budget, and the diagnosis at the end."""
