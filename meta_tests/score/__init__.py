"""How good the suite is: a plan put to an emulator with one seeded defect at a time, and how soon each is found."""
