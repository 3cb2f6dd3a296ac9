// Slips: seeded defects with which one check of one API judges one value wrongly, and every other value rightly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../ascendcl/defects.h"
#include "call.h"

namespace emulator {

// Whether the check of that tensor or list lets through what it should refuse: this rank, dtype or length.
bool slips_on_rank(const Call& call, Role role, size_t rank);
bool slips_on_dtype(const Call& call, Role role, aclDataType dtype);
bool slips_on_length(const Call& call, ListRole list, size_t length);

// Whether the comparison of two shapes leaves out the axis in which these differ.
bool slips_on_shape(const Call& call, Role role, Role as);

// The least value that the check of that entry of a list lets through; `least` where it does not slip.
int64_t slipped_least(const Call& call, ListRole list, size_t entry, int64_t least);

// What phase one refuses unless a defect lets it through, and no kernel could be run on; empty where it is fit.
std::string unfit_for_kernels(const Call& call);

}  // namespace emulator
