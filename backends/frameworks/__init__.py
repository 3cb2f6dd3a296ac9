"""Backends of frameworks with arrays of their own: a common base, and a small file for each."""
