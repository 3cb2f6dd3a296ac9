// Status codes that callers see. 1xxxxx to 5xxxxx below 561000 are AscendCL's (error code page of the runtime),
// 161xxx, 361xxx and 561xxx are aclnn's (return code page of the operator library).
#pragma once

namespace emulator::status {

constexpr int kSuccess = 0;

constexpr int kInvalidParam = 100000;
constexpr int kUninitialised = 100001;
constexpr int kRepeatInitialise = 100002;
constexpr int kRepeatFinalise = 100037;
constexpr int kHostAllocation = 200000;

constexpr int kRtInvalidValue = 107000;
constexpr int kRtInvalidDevice = 107001;
constexpr int kRtNoContext = 107002;
constexpr int kRtStreamContext = 107003;
constexpr int kRtInvalidHandle = 107017;
constexpr int kRtSysParamNeverSet = 107021;
constexpr int kRtMemoryAllocation = 207001;
constexpr int kRtMemoryFree = 207002;
constexpr int kRtDeviceOutOfMemory = 207018;
constexpr int kRtStreamSyncTimeout = 507046;
constexpr int kRtDeviceMemoryError = 507053;

constexpr int kNullPointer = 161001;
constexpr int kParamInvalid = 161002;
constexpr int kRuntimeError = 361001;
constexpr int kInner = 561000;
constexpr int kKernelNotFound = 561003;
constexpr int kInnerNullPointer = 561103;

}  // namespace emulator::status
