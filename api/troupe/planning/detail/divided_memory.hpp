#pragma once
#include <map>
#include <utility>
#include <vector>

#include "troupe/planning/predict_memory.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::detail {

/// The weights, gradients and optimizer's states of a plan's stages, as its replicas divide them.
class divided_memory {
 public:
  /// As predict_memory.
  divided_memory(const cost_profile& profile, const std::vector<layer_run>& stages, const plan& made,
                 const divided_state& divided);

  /// Adds what a stage holds between two steps.
  void add_lasting(int stage, held_memory& held) const;
  /// How much more is held from the beginning of an action on, and from its end on.
  std::pair<schedule::bytes_by_use, schedule::bytes_by_use> changes(const action& op) const;

 private:
  struct stage_bytes {
    std::uint64_t parameters = 0, gradients = 0, optimizer = 0, buffers = 0;
  };

  std::uint64_t share_of(std::uint64_t bytes) const;

  divided_state divided_;
  std::vector<stage_bytes> whole_;      ///< [stage] of a replica that divides nothing
  std::map<int, action> first_, last_;  ///< [stage] backwards or weight gradients
};

}  // namespace troupe::detail
