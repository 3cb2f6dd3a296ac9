"""What can be asked: cases, their data in memory, the strategies that draw them. Knows no backend, no verdict."""
