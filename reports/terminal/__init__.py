"""Terminal output, and how every command behaves there."""
