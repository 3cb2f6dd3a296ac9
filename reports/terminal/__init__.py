"""What people read in a terminal, and how every command behaves there."""
