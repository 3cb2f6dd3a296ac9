"""Judging on the devices of many machines: blocks go to judges on the nodes of a Ray cluster, rows come back.

`node` runs on a device; `ray_pool` alone knows Ray; `session` replaces pytest's own loop.
"""
