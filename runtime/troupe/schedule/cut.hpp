#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// A position of a device in its list of actions, which it repeats step after step: before this action of
/// this step. The position after the last action of a step is that before the first one of the next.
struct plan_position {
  std::uint64_t step = 0;
  std::uint32_t action = 0;  ///< index in the device's list
  auto operator<=>(const plan_position&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, action);
  }
};

/// How far each device of a plan runs: all that comes before its position is inside the cut.
///
/// A cut is closed if each action inside has its inputs inside, and if it holds all or none of
/// - the Rs of all stages in a reduction of a step
/// - the Gs of all lanes in an all-reduce
/// - the Fs, Bs, Is or Ws that lanes run together (plan::joint_axes)
///
/// It has an action that reads parameters inside only with the Us of all lanes that give it shards. A U may
/// be inside alone: what it gives is held until it is read.
///
/// Devices that run up to a closed cut all get there. Of the tensors sent only those are not taken then whose
/// receiving action is outside.
struct cut {
  std::vector<plan_position> devices;  ///< [num_job_devices of the plan]
  bool operator==(const cut&) const = default;
};

/// All steps before `step`; closed.
cut step_cut(const plan& training, std::uint64_t step);

/// All forwards and backwards of `step` and the steps before, and of the reductions and optimizer steps of
/// `step` only those that the plan has before them; closed. Expects a sound plan.
cut gradients_cut(const plan& training, std::uint64_t step);

/// Why a cut is not closed: `inside`, on `device`, needs `outside` of the same step.
struct open_wait {
  std::uint64_t step = 0;
  int device = 0;
  action inside;
  int other_device = 0;
  action outside;
  bool is_together = false;  ///< see action_graph::together
  /// "device 1 runs 1F0 of step 3, which takes the tensor of edge 0.0 -> 1.0 from 0F0, but device 0 stops
  /// before 0F0".
  std::string text;
};

/// The first one in the order of devices and their lists; none: the cut is closed. This and all functions
/// below expect a sound plan (check_plan) and throw std::invalid_argument unless the cut has a position in
/// the list of each device.
std::optional<open_wait> find_open_wait(const plan& training, const cut& reached);
bool is_closed(const plan& training, const cut& reached);

/// The closed cut with the fewest actions that has all actions of `wanted` inside.
cut smallest_closed_cut(const plan& training, const cut& wanted);

/// What a single step adds to a cut.
enum class step_unit : std::uint8_t {
  step = 0,        ///< the rest of the first step that is not wholly inside
  microbatch = 1,  ///< the rest of the first microbatch that is not wholly inside, and what it waits for
  action = 2       ///< one action that waits for none outside, and those that run together with it
};

/// "step", "microbatch" or "action". Throws bad_input for another text.
step_unit step_unit_from(std::string_view text);

/// The closed cut that `count` single steps after `from`, which is closed, lead to.
cut advanced_cut(const plan& training, const cut& from, step_unit unit, std::uint64_t count = 1);

}  // namespace troupe
