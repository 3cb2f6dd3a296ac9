// What each API accepts: its rules in the order in which the library applies them.
#pragma once

#include "rules.h"

namespace emulator {

struct Contract {
    Rules before_result_pointers;  // the mask APIs look at these even before workspaceSize and executor
    Rules rules;
};

struct Judgement {
    int status;
    bool is_empty;  // accepted, with nothing to compute
};

const Family& family_of(const std::string& api);
const Contract& contract_of(const Family& family);

// Judges the rules in turn and reports the text of the one that decides.
Judgement judge(const Rules& rules, const Call& call);

Contract windowed_backward_3d();
Contract windowed_backward_2d();
Contract mask_backward();
Contract adaptive_backward_2d();
Contract adaptive_backward_3d();
Contract windowed_forward_3d();
Contract windowed_forward_2d();
Contract mask_forward();
Contract adaptive_forward_2d();
Contract adaptive_forward_3d();

}  // namespace emulator
