"""The plan of a run: aspects, plans and their blocks, and the selection of a session."""
