"""Verification of bundles: cases are drawn again, rows held against them, and some cases judged again. Optional."""
