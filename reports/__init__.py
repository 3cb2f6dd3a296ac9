"""What is said: rows, tables, pages. Nothing here imports the other rooms; rows are the only input."""
