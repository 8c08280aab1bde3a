#pragma once
#include <memory>
#include <string>
#include <vector>

#include "troupe/parallel/comm_hook.hpp"

namespace troupe::bench {

/// "none", "bf16", "topk", "powersgd"
const std::vector<std::string>& bench_hook_names();

/// topk: 1 % of the elements; powersgd: rank 4. `momentum` is topk's momentum correction; "none" is a null
/// pointer. The first `dense_steps` are not compressed, where the hook has such.
std::shared_ptr<comm_hook> make_bench_hook(const std::string& name, double momentum,
                                           std::int64_t dense_steps);

}  // namespace troupe::bench
