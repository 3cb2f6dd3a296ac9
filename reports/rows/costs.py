"""Usual cost of a case of each aspect, to estimate a run's time and to cut shards of equal time."""

_USUAL = {"huge": 60.0, "models": 50.0, "endurance": 20.0, "scale": 11.0, "targets": 5.0, "state": 3.5, "memory": 2.5}
_USUAL |= {"values": 1.0, "contract": 0.6}


def usual_cost(aspect: str) -> float:
    """Return the cost in cases of the aspect ``values``, as measured on torch-cpu and an emulator."""
    return _USUAL.get(aspect, 1.5)
