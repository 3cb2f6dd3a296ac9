"""The score of the suite: which seeded defects of an emulator a plan finds, and how soon."""
