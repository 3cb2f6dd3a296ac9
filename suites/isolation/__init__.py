"""How a backend is isolated while it is judged: its own process, the memory shared with it, and its end."""
