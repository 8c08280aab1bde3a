#pragma once
#include <cstdint>
#include <string_view>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// In which order stages add up the weight gradients of a step's microbatches. Sums of floats depend on it,
/// so all stages of a plan have one order, and jobs whose plans have another one have other bits.
enum class gradient_order : std::uint8_t { ascending, descending };

std::string_view to_string(gradient_order order);

/// Descending if each stage has its Bs and Ws so, as in PyTorch's ScheduleLoopedBFS (breadth-first pipeline,
/// Lamy-Poirier 2022, arXiv:2211.05953), and the plan has one optimizer step. Else ascending, which
/// check_plan holds the plan to.
gradient_order gradient_order_of(const plan& training);

}  // namespace troupe::schedule
