#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/schedule/stage_graph.hpp"

namespace troupe {

/// Each but `custom`, a plan that was read from a file, has a row in schedule_table.hpp.
enum class schedule_kind : std::uint8_t {
  gpipe = 0,
  one_f_one_b = 1,
  forward_only = 2,
  interleaved_1f1b = 3,
  zb_h1 = 4,
  zb_h2 = 5,
  zb_v = 6,
  dualpipe_v = 7,
  custom = 8,
  pipedream_2bw = 9
};

/// The names users type: "gpipe", "1f1b" (also "one_f_one_b"), "forward_only", "interleaved_1f1b", "zb_h1",
/// "zb_h2", "zb_v", "dualpipe_v", "pipedream_2bw". Throws bad_input listing them.
schedule_kind schedule_kind_from(std::string_view name);
std::string_view to_string(schedule_kind kind);

/// F, B (= I then W), I: input gradient, W: weight gradient, R: gradients combined with other stages', A: the
/// optimizer's step, G: gradients added up, or weights averaged, over replicas. The numbers go over the wire.
enum class action_kind : std::uint8_t {
  forward = 0,
  backward = 1,
  input_gradient = 2,
  weight_gradient = 3,
  reduce_gradient = 4,
  apply = 5,
  all_reduce = 6
};

/// One computation of a plan, written "2F0": stage, kind, microbatch. Of an R the number is that of the
/// reduction, of an A or a G that of the optimizer's step among plan::flush_every, which is 0 where there is
/// one ("2A", then "2A1").
struct action {
  int stage = 0;
  action_kind kind = action_kind::forward;
  int microbatch = 0;
  bool operator==(const action&) const = default;
};

/// F, B, I and W, whose number is a microbatch's.
constexpr bool is_of_microbatch(const action& op) {
  return op.kind != action_kind::reduce_gradient && op.kind != action_kind::apply &&
         op.kind != action_kind::all_reduce;
}

/// The number 0 of an A or a G is left out.
std::string to_string(const action& op);
/// Throws bad_input naming the text and the notation.
action action_from(std::string_view text);

/// What every device does between two flushes, in order: in one step, or with pipedream_2bw in several.
///
/// A job runs `num_replicas` copies of the pipeline, each on devices and microbatches of its own. All have
/// the same lists, which are kept once. The job's devices are numbered replica by replica; the functions at
/// the end translate. In a plan of forwards only (evaluation, prediction) each replica runs another batch,
/// or replica 0 runs all (num_evaluating_replicas).
struct plan {
  schedule_kind kind = schedule_kind::gpipe;
  int num_stages = 0;
  int num_microbatches = 0;                  ///< of all its optimizer steps
  std::vector<int> device_of_stage;          ///< [num_stages] the logical device
  std::vector<schedule::edge> edges;         ///< see stage_graph; ascending by from, output, to, input
  std::vector<std::vector<action>> devices;  ///< [num_devices][actions in order]
  /// What stages combine between the last weight gradient and A, one after the other: the
  /// stages that take part in each, ascending. Each stage's share of reduction r goes to the others as soon
  /// as the stage is done with what comes before its R of r, which waits for the shares of all. Those of all
  /// optimizer steps, step after step.
  std::vector<std::vector<int>> reductions = {};
  /// How many optimizer steps there are, each with num_microbatches / flush_every microbatches. Step t of
  /// them computes its gradients with the weights that the plan begins with, if t is 0 or 1, else with those
  /// that step t - 2 makes.
  int flush_every = 1;
  int num_replicas = 1;  ///< of the pipeline; more than 1: each stage has a G in each optimizer step
  /// How many of a step's reductions come before G, since each replica adds up tied weights by itself. The
  /// others, of gradient norms, come after it.
  int reductions_before_all_reduce = 0;
  /// Each replica steps with its own gradients, and G, which comes after A, averages their weights.
  bool averages_weights = false;
  /// All replicas have the same weights and buffers between two optimizer steps.
  bool has_equal_replicas = false;
  /// Stages, ascending, whose F and B or I all replicas run together, since they add up something over the
  /// replicas within them (statistics of SyncBatchNorm). None in a plan of one replica or of forwards only.
  std::vector<int> synchronized_stages = {};
  int num_devices() const { return static_cast<int>(devices.size()); }  ///< devices of one replica
  int microbatches_per_step() const { return num_microbatches / flush_every; }
  int reductions_per_step() const { return static_cast<int>(reductions.size()) / flush_every; }
  bool operator==(const plan&) const = default;

  /// Replicas that run the plan's forward_projection: they share the batches of an evaluation.
  int num_evaluating_replicas() const { return has_equal_replicas ? num_replicas : 1; }
  /// Replicas that run the lists.
  int num_running_replicas() const {
    return kind == schedule_kind::forward_only ? num_evaluating_replicas() : num_replicas;
  }
  /// Whether all replicas run it together, since it is an F, B or I of a synchronized stage.
  bool is_synchronized(const action& op) const;
  int num_job_devices() const { return num_replicas * num_devices(); }
  int job_device(int replica, int device) const { return replica * num_devices() + device; }
  int replica_of(int job_device) const { return job_device / num_devices(); }
  /// The device's index among those of its replica.
  int device_of(int job_device) const { return job_device % num_devices(); }
  /// Empty for a replica that runs nothing.
  const std::vector<action>& actions_of(int job_device) const;
};

struct plan_options {
  schedule_kind kind = schedule_kind::one_f_one_b;
  int num_stages = 1;
  int num_microbatches = 1;                       ///< microbatches of one optimizer step
  int num_devices = 1;                            ///< logical devices; at most num_stages
  std::vector<std::vector<int>> reductions = {};  ///< of one optimizer step; none in a plan of forwards only
  std::vector<schedule::edge> edges = {};         ///< see plan::edges, in any order; empty: a chain
  /// [num_stages]; empty: as the kind says, else stages lie on devices in contiguous blocks of nearly equal
  /// size.
  std::vector<int> device_of_stage = {};
  int flush_every = 1;  ///< see plan::flush_every; more than 1 with pipedream_2bw only
  int num_replicas = 1;
  int reductions_before_all_reduce = 0;       ///< plan::reductions_before_all_reduce
  bool averages_weights = false;              ///< plan::averages_weights
  bool has_equal_replicas = false;            ///< plan::has_equal_replicas
  std::vector<int> synchronized_stages = {};  ///< see plan; left out where there is one replica
};

/// How many stages a device has with the kind unless the user says otherwise: 1, or 2 where the kind places
/// the stages itself.
int usual_chunks(schedule_kind kind);

/// How many of at most `most_devices` devices share `num_stages` stages: as many as have one, or half as many
/// where each has two. Whether the kind can run on them, make_plan says.
int devices_for(schedule_kind kind, int num_stages, int most_devices);

/// Builds the plan with the generator of its kind (schedule_table.hpp, which names the papers).
/// Throws bad_input for impossible options: numbers of stages, devices or microbatches that the kind does
/// not allow, another placement than it has.
///
/// In GPipe, 1F1B, ZB-H1, ZB-H2 and PipeDream-2BW the order of a stage's own actions depends on the graph
/// alone, never on the devices, and stages may lie anywhere. Interleaved 1F1B, ZB-V and DualPipeV place the
/// stages themselves, and run those of any graph in the order of a chain.
plan make_plan(const plan_options& options);

/// What evaluation and prediction run: the forwards of `training`, with its stages, edges and devices, for
/// another number of microbatches (at least 1). Stages on one device are interleaved as make_plan does.
/// Throws bad_input for what is no number of microbatches or no plan.
plan forward_projection(const plan& training, int num_microbatches);

}  // namespace troupe
