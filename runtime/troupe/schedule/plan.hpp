#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/layout/mesh_shape.hpp"
#include "troupe/schedule/action.hpp"
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
  pipedream_2bw = 9,
  looped_bfs = 10
};

/// The names users type: "gpipe", "1f1b" (also "one_f_one_b"), "forward_only", "interleaved_1f1b", "zb_h1",
/// "zb_h2", "zb_v", "dualpipe_v", "pipedream_2bw", "looped_bfs". Throws bad_input listing them.
schedule_kind schedule_kind_from(std::string_view name);
std::string_view to_string(schedule_kind kind);

namespace schedule {

/// What stages combine between the last weight gradient of an optimizer step and its A. Each stage's partial
/// goes to the others as soon as the stage is done with what comes before its R, which waits for all.
struct reduction {
  reduction() = default;
  /// In reductions that come after the sums over replicas.
  reduction(std::initializer_list<int> of_stages) : stages(of_stages) {}
  reduction(std::vector<int> of_stages, bool comes_before_sums = false,
            std::vector<layout::mesh_axis> along = {})
      : stages(std::move(of_stages)), before_sums(comes_before_sums), axes(std::move(along)) {}

  std::vector<int> stages = {};  ///< that take part, ascending
  /// Comes before a stage's G over dp, since each replica combines its own (tied weights); else after it
  /// (norms of summed gradients).
  bool before_sums = false;
  /// Ascending. The stages of all lanes along these take part, not only those of one lane.
  std::vector<layout::mesh_axis> axes = {};
  bool operator==(const reduction&) const = default;
};

/// "0 2, before sums over replicas, along dp"
std::string to_string(const reduction& shown);

/// Actions of a stage that the lanes along an axis run together, since something goes from lane to lane
/// within them (statistics of SyncBatchNorm, the products of sliced weights).
struct joint_kind {
  int stage = 0;
  action_kind kind = action_kind::forward;  ///< F, B, I or W
  layout::mesh_axis axis = layout::mesh_axis::dp;
  auto operator<=>(const joint_kind&) const = default;
};

/// "0F along dp"
std::string to_string(const joint_kind& shown);

/// F, B and I of the stages, ascending.
std::vector<joint_kind> joint_passes(const std::vector<int>& stages, layout::mesh_axis axis);

/// Those that a plan of the kind on the mesh has: none along an axis with a single lane, and in a plan of
/// forwards only the forwards of slices.
std::vector<joint_kind> joint_in(schedule_kind kind, const layout::mesh_shape& mesh,
                                 std::vector<joint_kind> joint);

/// When a stage whose replicas own shards of its parameters lets go of the others'.
enum class reshard_point : std::uint8_t {
  pass,  ///< when a pass of another stage of the device comes next (FSDP's reshard_after_forward)
  step   ///< after the last backward of the step
};

std::string_view to_string(reshard_point point);
/// Throws bad_input naming what is known.
reshard_point reshard_point_from(std::string_view name);
/// More would hold all stages of a device.
inline constexpr int most_gather_ahead = 64;

/// Where the Us and Ss of a plan are that has none itself.
struct gather_options {
  bool gathers = false;                          ///< with several replicas each stage has a U
  bool frees = false;                            ///< and Ss: parameters are whole between these only
  reshard_point reshards = reshard_point::pass;  ///< if it frees
  int ahead = 1;  ///< if it frees: so many passes of the device a U comes before the one that needs it
  bool operator==(const gather_options&) const = default;
};

}  // namespace schedule

/// What every device does between two flushes, in order: in one step, or with pipedream_2bw in several.
///
/// A job runs a mesh of lanes, copies of the pipeline, each on devices of its own. All have the same lists,
/// which are kept once. The job's devices are numbered lane by lane; the functions at the end translate. In a
/// plan of forwards only (evaluation, prediction) each replica runs another batch, or replica 0 runs all
/// (num_evaluating_replicas).
struct plan {
  schedule_kind kind = schedule_kind::gpipe;
  int num_stages = 0;
  int num_microbatches = 0;                  ///< of all its optimizer steps
  std::vector<int> device_of_stage;          ///< [num_stages] the logical device
  std::vector<schedule::edge> edges;         ///< see stage_graph; ascending by from, output, to, input
  std::vector<std::vector<action>> devices;  ///< [num_devices][actions in order]
  /// One after the other, those of all optimizer steps, step after step.
  std::vector<schedule::reduction> reductions = {};
  /// How many optimizer steps there are, each with num_microbatches / flush_every microbatches. Step t of
  /// them computes its gradients with the weights that the plan begins with, if t is 0 or 1, else with those
  /// that step t - 2 makes.
  int flush_every = 1;
  /// With several replicas each stage has a G over dp in each optimizer step.
  layout::mesh_shape mesh = {};
  /// All replicas have the same weights and buffers between two optimizer steps.
  bool has_equal_replicas = false;
  /// Ascending. None along an axis in which one lane runs the plan, or in which each runs another batch.
  std::vector<schedule::joint_kind> joint = {};
  /// Of the stages that were given Us and Ss by these; default: none was.
  schedule::gather_options gathers = {};
  int num_devices() const { return static_cast<int>(devices.size()); }  ///< devices of one lane
  int microbatches_per_step() const { return num_microbatches / flush_every; }
  int reductions_per_step() const { return static_cast<int>(reductions.size()) / flush_every; }
  bool operator==(const plan&) const = default;

  /// Replicas that run the plan's forward_projection: they share the batches of an evaluation.
  int num_evaluating_replicas() const { return has_equal_replicas ? mesh.num_replicas : 1; }
  /// Replicas that run the lists.
  int num_running_replicas() const {
    return kind == schedule_kind::forward_only ? num_evaluating_replicas() : mesh.num_replicas;
  }
  int num_running_lanes() const { return num_running_replicas() * mesh.num_slices; }
  /// The axes along which lanes run it together; those with a single lane are left out.
  std::vector<layout::mesh_axis> joint_axes(const action& op) const;
  /// The lanes that run the action together with `lane`, which is one of them, ascending: of a G those along
  /// its axis, of an R those along the reduction's, of others those along joint_axes.
  std::vector<int> lanes_together(const action& op, int lane) const;
  int num_job_devices() const { return mesh.num_lanes() * num_devices(); }
  int job_device(int lane, int device) const { return lane * num_devices() + device; }
  int lane_of(int job_device) const { return job_device / num_devices(); }
  /// The device's index among those of its lane.
  int device_of(int job_device) const { return job_device % num_devices(); }
  /// Empty for a lane that runs nothing.
  const std::vector<action>& actions_of(int job_device) const;
};

namespace schedule {

/// Whether a stage has Us and Ss.
bool shards_parameters(const plan& training);
/// Whether a stage has Ss.
bool frees_parameters(const plan& training);

/// Whether each replica steps with its own gradients, and G over dp, which comes after A, averages their
/// weights.
bool averages_weights(const plan& training);

}  // namespace schedule

struct plan_options {
  schedule_kind kind = schedule_kind::one_f_one_b;
  int num_stages = 1;
  int num_microbatches = 1;  ///< microbatches of one optimizer step
  int num_devices = 1;       ///< logical devices; at most num_stages
  std::vector<schedule::reduction> reductions =
      {};                                  ///< of one optimizer step; none in a plan of forwards only
  std::vector<schedule::edge> edges = {};  ///< see plan::edges, in any order; empty: a chain
  /// [num_stages]; empty: as the kind says, else stages lie on devices in contiguous blocks of nearly equal
  /// size.
  std::vector<int> device_of_stage = {};
  int flush_every = 1;  ///< see plan::flush_every; more than 1 with pipedream_2bw only
  int num_replicas = 1;
  int num_slices = 1;
  bool averages_weights = false;    ///< see schedule::averages_weights
  bool has_equal_replicas = false;  ///< plan::has_equal_replicas
  /// plan::joint; those along an axis with a single lane are left out.
  std::vector<schedule::joint_kind> joint = {};
  /// Stages, ascending, whose slices have gradients of the same parameters: with several slices they have a
  /// G over tp in each optimizer step, before all other sums and reductions.
  std::vector<int> stages_with_common_parameters = {};
  schedule::gather_options gathers = {};
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
/// another number of microbatches (at least 1). Stages on one device are interleaved as make_plan does. What
/// slices run together they run together here too; the forwards of replicas have nothing to do with each
/// other. If `training` has Us, the lists begin with them.
/// Throws bad_input for what is no number of microbatches or no plan.
plan forward_projection(const plan& training, int num_microbatches);

}  // namespace troupe
