#pragma once
#include <functional>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Durations in any one unit. A backward takes input_gradient + weight_gradient.
struct action_costs {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
  double communication = 0;  ///< added between dependent actions on devices of a lane; senders do not wait
  double reduction = 0;      ///< cost of one R
  double apply = 0;          ///< cost of one A
  /// A B hands its input gradients on as soon as it has them, as plan_interpreter does; otherwise, as the
  /// papers count, with its weight gradients.
  bool hands_on_early = false;
  double all_reduce = 0;        ///< cost of one G to its device, once the others' gradients are there
  double sum_transfer = 0;      ///< for how long one G occupies its device's link to the other lanes
  int num_buckets = 1;          ///< of a G: they become complete one after the other in the action before it
  double unshard_transfer = 0;  ///< for how long one U occupies its device's link
};

/// The link of a device to those of the other lanes.
struct link_model {
  double bytes_per_time;  ///< in each direction, more than 0
  double latency = 0;     ///< from the last byte sent to its arrival
};

/// For how long a G or U among `num_lanes` lanes occupies the link of each. `bytes`: of a stage's gradients,
/// or of its whole parameters. Sums are a reduce-scatter and an all-gather, in each of which a lane sends (n
/// - 1) / n of the bytes; a U is the latter alone. Throws bad_input for what is no link or no number of
/// bytes.
double transfer_time(action_kind kind, double bytes, int num_lanes, const link_model& link);

/// Throws bad_input unless all are numbers from 0 to 1e300.
void check_costs(const action_costs& costs);

/// How long an action takes.
double duration_of(action_kind kind, const action_costs& costs);

/// How long one action takes, and after what part of that it hands its results on: at the end, but for a B
/// that hands its input gradients on early.
struct action_time {
  double duration = 0;
  double hands_on_after = 0;
  double transfer = 0;  ///< of a G or U, see action_costs::sum_transfer
  int num_buckets = 1;  ///< of a G
};

using time_of_action = std::function<action_time(const action&)>;

struct timed_action {
  action op;
  double begin = 0;
  double end = 0;
};

struct timeline {
  std::vector<std::vector<timed_action>> devices;  ///< [num_devices], in plan order
  double makespan = 0;
  std::vector<double> idle;           ///< [num_devices]: makespan minus the device's work
  std::vector<int> peak_activations;  ///< [num_devices]: most saved microbatches at once, in stage units
};

/// The most microbatches whose activations one device keeps at once, summed over its stages: from F until B,
/// or until W where the backward is split. 0 where there are only forwards: nothing is kept for a backward.
int peak_activations(const std::vector<timed_action>& device);

/// Simulates the plan: each action starts when its device is free and its inputs have arrived. What a G or U
/// sends to other lanes (action_graph::transfer) is under way while the device does other things; a device's
/// link takes one bucket after the other. A tensor for another device of the lane waits for the one that is
/// under way, and goes before the others. Throws bad_input with check_plan's findings if the plan is not
/// sound, or if a cost is negative or not finite, or if they add up to more than 1e300.
timeline simulate(const plan& simulated, const action_costs& costs);

/// The same with costs of each stage's own. A stage's `communication` is that of what it takes from earlier
/// stages, and of the gradients that go back to them. Throws bad_input also unless there are costs for each
/// stage.
timeline simulate_stages(const plan& simulated, const std::vector<action_costs>& costs_of_stage);

/// The same with a time for each action, as measured, say. `communication` as in action_costs. Throws
/// bad_input for a plan that is not sound, and for times that are negative or not finite.
timeline simulate_with(const plan& simulated, const time_of_action& time_of, double communication = 0);

}  // namespace troupe
