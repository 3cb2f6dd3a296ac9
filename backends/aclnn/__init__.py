"""The aclnn operators of an Ascend NPU through ctypes: two-phase calls on device memory that poolproof owns."""
