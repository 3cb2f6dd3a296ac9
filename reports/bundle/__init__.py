"""Acceptance bundles: a run packed for another party, and what that party can find out about it."""
