"""Frameworks with arrays of their own: what they have in common, and a small file for each."""
