"""Acceptance bundles: a run packed for the other party, and what that party can find out about it."""
