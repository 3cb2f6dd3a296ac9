// What torch_npu's libraries are linked against and these operators never call: each aborts with its name.
#include "../ascendcl/errors.h"

#define STUB(name) \
    extern "C" void name() { emulator::fatal(#name " is not emulated"); }
#include "stubs.def"
#undef STUB
