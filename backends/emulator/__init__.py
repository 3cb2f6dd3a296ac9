"""aclnn's ABI implemented on the CPU, so that everything above it runs without an NPU.

The library answers as the real one does: same symbols, same statuses, same life cycles, one choice of kernel per
geometry and product. It is not the real one: timing, device memory and numbers of cores are made up, and private
formats are missing. It can be made wrong on purpose, one seeded defect at a time.
"""

from poolproof.backends.emulator.build import BuildFailed, CompilerMissing, library, sanitizer_runtime

__all__ = ["BuildFailed", "CompilerMissing", "library", "sanitizer_runtime"]
