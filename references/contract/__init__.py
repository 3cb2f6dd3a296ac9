"""Which low-level calls are legal, and what a library answers to those that are not, per API and product."""
