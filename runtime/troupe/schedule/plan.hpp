#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class schedule_kind : std::uint8_t { gpipe, one_f_one_b, forward_only };

/// The names users type: "gpipe", "1f1b" (also "one_f_one_b"), "forward_only". Throws bad_input listing them.
schedule_kind schedule_kind_from(std::string_view name);
std::string_view to_string(schedule_kind kind);

/// F, B (= I then W), I: input gradient, W: weight gradient, R: gradients combined with other stages'.
enum class action_kind : std::uint8_t { forward, backward, input_gradient, weight_gradient, reduce_gradient };

/// One computation of a plan, written "2F0": stage, kind, microbatch. Of an R the number is that of the
/// reduction.
struct action {
  int stage = 0;
  action_kind kind = action_kind::forward;
  int microbatch = 0;
  bool operator==(const action&) const = default;
};

std::string to_string(const action& op);
/// Throws bad_input naming the text and the notation.
action action_from(std::string_view text);

/// What every device does in one step, in order.
struct plan {
  schedule_kind kind = schedule_kind::gpipe;
  int num_stages = 0;
  int num_microbatches = 0;
  std::vector<int> device_of_stage;          ///< [num_stages]
  std::vector<std::vector<action>> devices;  ///< [num_devices][actions in order]
  /// What stages combine between the last weight gradient and the optimizer's step, one after the other: the
  /// stages that take part in each, ascending. Each stage's share of reduction r goes to the others as soon
  /// as the stage is done with what comes before its R of r, which waits for the shares of all.
  std::vector<std::vector<int>> reductions = {};
  int num_devices() const { return static_cast<int>(devices.size()); }
  bool operator==(const plan&) const = default;
};

struct plan_options {
  schedule_kind kind = schedule_kind::one_f_one_b;
  int num_stages = 1;
  int num_microbatches = 1;
  /// Stages lie on devices in contiguous blocks of nearly equal size. At most num_stages.
  int num_devices = 1;
  std::vector<std::vector<int>> reductions = {};  ///< see plan::reductions; none in a plan of forwards only
};

/// Builds the plan. Throws bad_input for impossible options.
/// GPipe: Huang et al. 2019 (arXiv:1811.06965). 1F1B: Narayanan et al. 2019, PipeDream-flush
/// (arXiv:2006.09503).
plan make_plan(const plan_options& options);

}  // namespace troupe
