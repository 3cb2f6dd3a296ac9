"""Judging on the devices of many machines: a Ray cluster's nodes judge blocks and return rows.

`node` runs on a device. Only `ray_pool` uses Ray. `session` replaces pytest's own loop.
"""
