#pragma once
#include <filesystem>
#include <optional>

#include "troupe/config/job_options.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/graph.hpp"
#include "troupe/nn/loss.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/optim/optimizer.hpp"
#include "troupe/pipeline/device_map.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/pipeline/partition.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Describes pipeline-parallel training: a model, its partition into stages, microbatches, schedule, loss and
/// optimizer. Nothing is allocated until a Trainer runs it.
///
///     auto pipeline = Pipeline(model).stages(4).microbatches(8).schedule(schedule_kind::one_f_one_b)
///                         .loss(nn::CrossEntropy()).optimizer(optim::Adam({.lr = 1e-3}));
///
/// or with the values of the command line:
///
///     auto pipeline = Pipeline(model, options).optimizer(optim::Adam({.lr = options.learning_rate}));
class Pipeline {
 public:
  /// `model`: a Sequential, or a Graph with one input and one output, since samples are one tensor and a loss
  /// takes one; throws std::invalid_argument for another graph, and for one that is not complete.
  ///
  /// A materialized model starts from its weights (as with initial_weights, independent of --seed), any other
  /// from initial values that depend on --seed. Throws bad_input for a partly materialized model.
  explicit Pipeline(nn::Graph model);
  /// Takes stages or device_map_file, microbatches, replicas, schedule, flush_every, plan, precision,
  /// clip_grad_norm, gradient_sync, top_k_gradients, power_sgd_rank, average_every and loss_scale from
  /// `options`. Throws as the setters do.
  Pipeline(nn::Graph model, const job_options& options);

  /// Number of contiguous stages of about equal cost; 0 (the default): one per device, or two in the
  /// schedules that place stages themselves (interleaved_1f1b, zb_v, dualpipe_v, looped_bfs).
  Pipeline& stages(int count);
  /// Lets a stage begin with each of these nodes (of a Sequential: "3", or the child's name) instead, besides
  /// the first one: cut_before({"block2.conv1", "head"}) gives three stages. Throws bad_input as partition_at
  /// does.
  Pipeline& cut_before(std::vector<std::string> nodes);
  /// Lets the map say what the stages are and on which devices, instead of stages or cut_before: the last of
  /// the three counts. With one microbatch this is model parallelism without a pipeline. Throws bad_input as
  /// place_layers does; the Trainer also for more devices than the job has, and for a schedule that places
  /// stages otherwise.
  Pipeline& device_map(DeviceMap map);
  /// The same with the map in this file, the same in every process. A Trainer reads it (read_device_map), so
  /// that it can tell the other processes what is wrong with it.
  Pipeline& device_map_file(std::filesystem::path file);
  /// Reads the file of device_map_file, if one is set. Throws bad_input as DeviceMap::read and device_map do.
  Pipeline& read_device_map();
  /// Number of equal parts of each batch; must divide the batch size. More: less idle time (bubble), but
  /// smaller matrices. Throws bad_input below 1.
  Pipeline& microbatches(int count);
  /// Data parallelism: how many copies of the pipeline train together, each with microbatches() microbatches
  /// of its own, so that a batch is cut into count * microbatches() equal parts; 1 (the default): none.
  /// Before the optimizer's step the replicas' gradients are added up in a fixed tree, so that all keep the
  /// same weights. The bits depend on the number of replicas, not on the processes that host them (but over
  /// the backends gloo, mpi and nccl: docs/tutorials/replicas.md).
  ///
  /// Buffers such as running means belong to each replica; evaluate, predict, state_dict and save use those
  /// of replica 0. Without such buffers all replicas share the batches of evaluate and predict. They share
  /// the job's devices, as many each, if need be with several devices in a process, each on a thread of its
  /// own. Throws bad_input below 1; the Trainer for a batch that the replicas' microbatches do not divide.
  Pipeline& replicas(int count);
  /// The bits are the same with every one but pipedream_2bw with flush_every of more than 1. The Trainer
  /// throws bad_input for numbers of stages, devices or microbatches that the schedule does not allow
  /// (docs/how_to/add_a_schedule.md).
  Pipeline& schedule(schedule_kind kind);
  /// Optimizer steps between two flushes of pipedream_2bw; 1 (the default): as 1f1b. With K of them only one
  /// in K has the idle time of 1f1b, and a device keeps a second version of its weights. The gradients of all
  /// but the first step after a flush are those at the weights of one step before (Narayanan et al. 2021,
  /// arXiv:2006.09503): the bits depend on K, on nothing else that they do not depend on in 1f1b.
  ///
  /// Steps of fit must be a multiple of K. Callbacks of fit come, and state copies and snapshots are made, at
  /// flushes: step_event::loss is the mean over K steps. An optimizer of your own must ask parameters for
  /// their tensors in each step anew. Throws bad_input for less than 1, and the Trainer for more than 1 with
  /// another schedule.
  Pipeline& flush_every(int steps);
  /// Runs the plan in this file instead of a schedule: one in the CSV form of torch.distributed.pipelining
  /// (plan_csv.hpp), which says how many stages and devices there are. The same in every process; one that is
  /// started again reads it too. The bits are those of every schedule, unless all stages have their backwards
  /// in descending order of microbatches (PyTorch's LoopedBFS): then they are those of this order, and rank 0
  /// warns of it. A Trainer throws bad_input for a file that is no plan, or whose number of microbatches is
  /// not microbatches().
  Pipeline& plan_file(std::filesystem::path file);
  /// Default: CrossEntropy. Throws std::invalid_argument for an empty function.
  Pipeline& loss(nn::Loss loss);
  /// Default: Adam. Throws std::invalid_argument for an empty function.
  Pipeline& optimizer(optim::Optimizer optimizer);
  /// Sets the initial weights, instead of the model's: all parameters and buffers of the model (its
  /// state_dict), equal in every process. PyTorch's num_batches_tracked are skipped. bf16 and f16 are
  /// converted to f32, in which weights are kept. A job that resumes uses the weights of its snapshot
  /// instead.
  Pipeline& initial_weights(std::vector<named_tensor> weights);
  /// The dtype of matrix products: f32 (the default), bf16, or f16 with loss scaling. Throws bad_input for
  /// another dtype.
  Pipeline& precision(dtype type);
  /// Maximum norm over all gradients of the model; 0 (the default): no clipping. Throws bad_input for
  /// negative and infinite numbers.
  Pipeline& clip_grad_norm(double max_norm);
  /// The dtype in which replicas exchange gradients: f32 (the default), or bf16 or f16, which send half as
  /// many bytes. With the latter each replica rounds its gradients, they are added up in f32, and the sums
  /// are rounded once, so that all replicas keep the same weights. In f16 gradients above 65504 become
  /// infinite (job_options::on_non_finite), and those below 6e-8 are lost. Throws bad_input for another
  /// dtype, and the Trainer for bf16 or f16 without replicas.
  Pipeline& gradient_sync(dtype type);
  /// The fraction in (0, 1] of the elements of each large weight's gradient (of 16384 elements or more) that
  /// a replica sends, those of largest magnitude; 0 (the default): all. It adds the others to its gradient of
  /// the next step (error feedback, as in hooks/top_k_gradients.hpp), and keeps them in its snapshots.
  /// Each replica sends 8 bytes for each element to each other one; with 1 it is as with 0. Throws bad_input
  /// for other numbers; the Trainer without replicas, with gradient_sync, and where steps may be skipped: in
  /// f16 and with on_non_finite `skip`.
  Pipeline& top_k_gradients(double fraction);
  /// PowerSGD (hooks/power_sgd.hpp): replicas exchange the gradient of each large weight matrix (as in
  /// top_k_gradients) as two factors of this rank, if these have at most half as many elements. The first
  /// axis of a weight are the rows, the others the columns. 0 (the default): whole gradients. Each replica
  /// adds what its factors lack to its gradient of the next step, and keeps that and the factors in its
  /// snapshots. Throws bad_input for a negative rank; the Trainer without replicas, with gradient_sync or
  /// top_k_gradients, and where steps may be skipped, as for top_k_gradients.
  Pipeline& power_sgd_rank(int rank);
  /// Local SGD (weight_average.hpp): replicas exchange no gradients. Each steps with its own, the
  /// mean over its own samples, clipped by its own norm, and after every so many optimizer steps they average
  /// their weights, not the optimizers' states. 0 (the default): they exchange gradients in each step.
  ///
  /// Between two averages the replicas' weights differ, and evaluate, predict, save, state_dict and
  /// weights_sha256 are about those of replica 0. Throws bad_input for a negative number; the Trainer without
  /// replicas, with what is about exchanged gradients (gradient_sync, top_k_gradients, power_sgd_rank), and
  /// with flush_every above 1; fit, if it would not end at an average.
  Pipeline& average_every(int num_steps);
  /// What replicas divide among themselves; `none` (the default): each holds all. With `optimizer` (ZeRO,
  /// stage 1) each steps a part of the weights, and holds the optimizer's state of these alone. It gets the
  /// other weights when the next step begins. Parts have equally many elements, up to a block of 16384. An
  /// optimizer that is not by element (optimizer_state::is_elementwise) gets whole parameters, so that parts
  /// differ more. With `grad` (ZeRO, stage 2) a replica also frees gradients when the owners of a weight's
  /// pieces have read them, at the latest in G, and gets memory for them in the next step's backward. Shared
  /// memory, between processes on CPUs, is kept for later gradients of the device.
  /// With `full` (ZeRO, stage 3) it holds the weights that it steps. It has the others of a stage between a U
  /// and an S of the plan alone, for the stage's passes: FSDP, whose units are the stages. Several stages on
  /// a device hold one or two of them whole at a time. The weights have the bits of replicas that divide
  /// nothing.
  ///
  /// The Trainer throws bad_input without replicas, with top_k_gradients, power_sgd_rank, average_every or
  /// flush_every above 1, and with backends that carry the sums of replicas. Likewise for buffers that may
  /// differ from replica to replica (BatchNorm2d, modules of one's own; SyncBatchNorm is possible).
  Pipeline& shard(shard_strategy strategy);
  /// With `full`: when a stage lets go of weights that others own. `pass` (the default): whenever a pass of
  /// another stage of the device comes next. `step`: after its last backward of the step, which gathers once.
  Pipeline& reshard_after(schedule::reshard_point point);
  /// With `full`: a U comes so many passes of the device before the pass that needs it, from 0 to 64, so that
  /// weights travel meanwhile; 1 by default. Each holds one stage more. Throws bad_input for another number.
  Pipeline& gather_ahead(int num_passes);
  /// Options of the dynamic loss scale in f16. Throws std::invalid_argument as loss_scaler does.
  Pipeline& loss_scale(optim::loss_scaler_options options);

  const nn::Graph& model() const { return model_; }
  int stages() const { return stages_; }
  /// The nodes of cut_before as text, "block2.conv1, head"; empty: stages of about equal cost, or those of
  /// the device map.
  std::string cuts_text() const;
  /// None if it is not set, or its file not read yet.
  const std::optional<DeviceMap>& device_map() const { return device_map_; }
  /// [stages()] by the device map; empty without one.
  const std::vector<int>& device_of_stage() const { return device_of_stage_; }
  /// The nodes of each of `num_stages` stages, which is stages() unless that is 0. Throws as
  /// partition_into_stages does.
  std::vector<stage_range> partition(int num_stages) const;
  int microbatches() const { return microbatches_; }
  int replicas() const { return replicas_; }
  schedule_kind schedule() const { return schedule_; }
  int flush_every() const { return flush_every_; }
  /// Empty: none.
  const std::filesystem::path& plan_file() const { return plan_file_; }
  const nn::Loss& loss() const { return loss_; }
  const optim::Optimizer& optimizer() const { return optimizer_; }
  /// Null if not set.
  const std::shared_ptr<const std::vector<named_tensor>>& initial_weights() const { return initial_weights_; }
  const numeric_options& numerics() const { return numerics_; }
  /// Over how many replicas the optimizer's state of a stage is divided (shard); 1: each holds all.
  int num_shards() const { return numerics_.shard == shard_strategy::none ? 1 : replicas_; }
  /// Of stages for which the plan file has no U and S.
  schedule::gather_options gathers() const;

 private:
  void forget_device_map();

  nn::Graph model_;
  int stages_ = 0;
  std::vector<std::string> cuts_;
  std::optional<DeviceMap> device_map_;
  std::filesystem::path device_map_file_;   ///< what read_device_map() reads; empty: none
  std::vector<stage_range> placed_stages_;  ///< the stages that the device map makes; empty: none
  std::vector<int> device_of_stage_;
  int microbatches_ = 1;
  int replicas_ = 1;
  schedule_kind schedule_ = schedule_kind::one_f_one_b;
  int flush_every_ = 1;
  std::filesystem::path plan_file_;
  nn::Loss loss_ = nn::CrossEntropy();
  optim::Optimizer optimizer_ = optim::Adam();
  std::shared_ptr<const std::vector<named_tensor>> initial_weights_;
  numeric_options numerics_;
  schedule::gather_options gathers_;  ///< as far as the user chooses
};

}  // namespace troupe
