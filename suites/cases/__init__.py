"""Cases, their data in memory, and the strategies that draw them; without backends and verdicts."""
