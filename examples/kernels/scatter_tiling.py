"""How the scattering kernel is cut: planes are shared out to cores, and a plane is taken in one piece."""

from math import prod


def tiling(call):
    batch, channels, *plane = call.shapes["y"]
    planes = batch * channels
    blocks = min(planes, call.blocks)
    fields = {"planes": planes, "cells": prod(plane), "windows": prod(call.shapes["grad"][2:])}
    return {"fields": fields, "blocks": blocks}
