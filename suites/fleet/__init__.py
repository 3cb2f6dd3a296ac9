"""Judging on the devices of many machines: a driver deals out blocks, judges on the nodes hand their rows back.

`node` is what runs on a device, `dispatch` who gets what and what becomes of it when somebody dies, `ray_pool` the
only module that knows Ray, and `session` where a session of pytest uses them in the place of its own loop.
"""
