// What the examples share: sizes in blocks of UB, rows of a copy, and a flag that is set and waited for at once.
#pragma once
#include "kernel_operator.h"

// Bytes of `count` elements, rounded up to the 256 that a vector instruction takes at once.
template <class T>
__aicore__ inline uint32_t BytesOf(uint32_t count)
{
    return (count * sizeof(T) + 255) / 256 * 256;
}

// `count` elements side by side, as DataCopyPad takes them: in bytes, so that a tail need not fill a block of 32.
template <class T>
__aicore__ inline AscendC::DataCopyExtParams Row(uint32_t count)
{
    return {1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
}

// What the second pipe does later begins after all that the first one was told to do until now.
template <AscendC::HardEvent event>
__aicore__ inline void Wait()
{
    const auto id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
    AscendC::SetFlag<event>(id);
    AscendC::WaitFlag<event>(id);
}

__aicore__ inline uint32_t Smaller(uint64_t a, uint64_t b)
{
    return static_cast<uint32_t>(a < b ? a : b);
}
