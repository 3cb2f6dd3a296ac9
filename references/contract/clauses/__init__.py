"""Clause tables of all APIs."""
