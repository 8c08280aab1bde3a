#pragma once
#include <string>

namespace troupe {

/// Names the arithmetic of this process, for example "onednn-2.6.3-avx512_core_bf16" or "plain". Processes of
/// one class give equal bits for equal operations; of two classes they may not. The first call fixes the
/// instruction set: see cap_isa.
std::string numeric_class();

/// Limits the instruction set that operations may use to `name`: auto (leaves it as it is), sse41, avx2,
/// avx512_core or avx512_core_bf16. A machine that has less uses what it has. Throws bad_input, naming the
/// choices, for another name, and std::logic_error if more than `name` is in use already, because an
/// operation or numeric_class ran before. Plain kernels have one class under every limit.
void cap_isa(const std::string& name);

}  // namespace troupe
