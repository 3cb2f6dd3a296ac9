"""Runs in the forms that CI services show."""

SERVICES = {"github": "GITHUB_ACTIONS", "gitlab": "GITLAB_CI", "none": ""}
"""CI services, with the variable that is "true" in their jobs; "none" stands for none of them."""
