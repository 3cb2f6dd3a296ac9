"""Judging on the devices of many machines: a driver assigns blocks, judges on the nodes return rows.

`node` runs on a device; `dispatch` assigns work, again if a judge dies; `ray_pool` alone knows Ray; `session` replaces
pytest's own loop.
"""
