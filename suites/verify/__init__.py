"""Verification of bundles: draw the cases again, check the rows, and judge some cases again. Optional."""
