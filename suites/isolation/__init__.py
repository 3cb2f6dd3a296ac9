"""Where a backend lives while it is judged: a process of its own, the memory shared with it, and what becomes of it."""
