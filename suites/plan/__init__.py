"""What a run judges: aspects, the plans and blocks that they are cut into, and the selection of a session."""
