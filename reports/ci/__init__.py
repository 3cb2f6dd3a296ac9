"""Runs in the forms that CI services show."""

SERVICES = ("github", "gitlab", "none")
"""What can be told; none stands for none of them."""
