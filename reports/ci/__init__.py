"""A run in the forms that CI services show."""
