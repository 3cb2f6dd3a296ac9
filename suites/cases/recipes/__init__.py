"""Recipes: named, deterministic ways to fill grad_output, indices and self.

A recipe sees geometry and a `RandomStream` of random numbers derived from the case's seed, never a layout, an index
dtype or a backend: the same case has the same data everywhere.
"""
