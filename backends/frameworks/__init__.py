"""Backends of frameworks with their own arrays: a common base, and a small file for each."""
