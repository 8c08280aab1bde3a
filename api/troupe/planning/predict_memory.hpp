#pragma once
#include <cstdint>
#include <vector>

#include "troupe/placement/cost_profile.hpp"
#include "troupe/placement/layer_map.hpp"
#include "troupe/schedule/simulation/memory_ledger.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

/// What a device is to hold, in bytes. `parameters` to `buffers` last, but for parameters and gradients that
/// are freed; of those, and of the others, it is the most.
struct held_memory {
  std::uint64_t parameters = 0, gradients = 0, optimizer = 0, buffers = 0;
  /// Kept for backward passes, with the values that come in from other stages.
  std::uint64_t activations = 0;
  std::uint64_t messages = 0;  ///< samples, and what arrives from other devices before it is used
  std::uint64_t working = 0;   ///< temporary in a pass, beside what is kept after it or was before
  std::uint64_t peak = 0;      ///< of the sum, at most the sum of the above
  /// What is held after each action of the step, by use (buffers count as parameters), and at most within it.
  std::vector<schedule::device_ledger::entry> ledger = {};
  bool operator==(const held_memory&) const = default;
};

/// Where a device of a plan computes. What devices of one place send each other stays where it is.
struct compute_place {
  device where = {};
  int process = 0;
  bool operator==(const compute_place&) const = default;
};

/// What the replicas of a stage divide among themselves (Pipeline::shard).
struct divided_state {
  int num_shards = 1;             ///< of the optimizer's state; 1: each replica holds all
  bool frees_gradients = false;   ///< held in the stage's backwards, then their sums to A; false: always
  bool frees_parameters = false;  ///< whole parameters are held from a U to the next S
};

/// Predicts what each device of a plan holds in a training step after the first one. Follows the passes of
/// its stages in the order of the plan, and counts messages from the end of the pass that sends them on
/// (`ran`). Copies of the state, and what libraries hold by themselves, are left out. `stages`: the layers of
/// each stage of the plan. `places`: [device of the plan], by default all on the CPU. On a GPU it is the
/// GPU's memory that is predicted: messages from other places are elsewhere until they are used.
/// `divided`: each replica is predicted an equal share.
std::vector<held_memory> predict_memory(const cost_profile& profile, const std::vector<layer_run>& stages,
                                        const plan& made, const timeline& ran,
                                        const std::vector<compute_place>& places = {},
                                        const divided_state& divided = {});

}  // namespace troupe
