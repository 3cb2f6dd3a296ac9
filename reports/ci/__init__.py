"""Runs in the forms that CI services show."""

SERVICES = ("github", "gitlab", "none")
"""CI services; "none" stands for none of them."""
