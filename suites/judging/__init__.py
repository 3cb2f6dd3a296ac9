"""From one case on one backend to one row: runs, checks, findings and evidence. Knows no plan and no pytest."""
