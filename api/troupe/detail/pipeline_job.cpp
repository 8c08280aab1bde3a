#include "troupe/detail/pipeline_job.hpp"

#include <algorithm>

#include "troupe/detail/check_replicas.hpp"
#include "troupe/detail/start/job_start.hpp"
#include "troupe/detail/start/mixed_places.hpp"
#include "troupe/detail/start/process_devices.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/optim/detail/learning_rate.hpp"
#include "troupe/pipeline/detail/agreement/describe_job.hpp"
#include "troupe/pipeline/detail/agreement/layer_modes.hpp"
#include "troupe/pipeline/detail/agreement/training_settings.hpp"
#include "troupe/pipeline/detail/model_cut.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/pipeline/detail/stage_content.hpp"
#include "troupe/pipeline/detail/stage_reductions.hpp"
#include "troupe/schedule/gradient_order.hpp"
#include "troupe/schedule/text/plan_csv.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe::detail {
namespace {

numeric_options numerics_for(const Pipeline& pipeline, const job_options& options) {
  auto numerics = pipeline.numerics();
  numerics.on_non_finite = non_finite_policy_from(options.on_non_finite);
  return numerics;
}

/// What the parts of the model imply, where it is cut into `num_stages`.
schedule::plan_csv_options implied_by(const Pipeline& pipeline, const job_options& options, int num_stages) {
  auto partition = pipeline.partition(num_stages);
  auto reductions = reductions_of(pipeline.model(), partition, numerics_for(pipeline, options));
  return {cut_model(pipeline.model().wiring(), partition).edges,
          reductions.all,
          {.num_replicas = pipeline.replicas()},
          pipeline.numerics().exchange.average_every > 0,
          has_equal_replicas(pipeline.model(), pipeline.numerics()),
          schedule::joint_passes(synchronized_stages_of(pipeline.model(), partition), layout::mesh_axis::dp),
          {},
          pipeline.gathers()};
}

plan_options options_of_plan(const Pipeline& pipeline, const job_options& options, int num_stages,
                             int num_devices) {
  auto implied = implied_by(pipeline, options, num_stages);
  return {.kind = pipeline.schedule(),
          .num_stages = num_stages,
          .num_microbatches = pipeline.microbatches(),
          .num_devices = num_devices,
          .reductions = implied.reductions,
          .edges = implied.edges,
          .flush_every = pipeline.flush_every(),
          .num_replicas = implied.mesh.num_replicas,
          .num_slices = implied.mesh.num_slices,
          .averages_weights = implied.averages_weights,
          .has_equal_replicas = implied.has_equal_replicas,
          .joint = implied.joint,
          .gathers = implied.gathers};
}

/// `most_devices`: as many as the processes can have.
plan plan_in_file(const Pipeline& pipeline, const job_options& options, int most_devices) {
  const auto& file = pipeline.plan_file();
  auto refuse = [&file](const std::string& problem) { throw bad_input(file.string() + ": " + problem); };
  auto read = schedule::read_plan_file(file, [&](int num_stages) {
    if (pipeline.stages() != 0 && pipeline.stages() != num_stages)
      refuse("the plan has " + std::to_string(num_stages) + " stages, but the job " +
             std::to_string(pipeline.stages()) + ". Leave --stages out, or cut the model into as many");
    try {
      return implied_by(pipeline, options, num_stages);
    } catch (const bad_input& problem) {
      throw bad_input(file.string() + ": the plan has " + std::to_string(num_stages) +
                      " stages: " + problem.what());
    }
  });
  if (read.kind == schedule_kind::forward_only)
    refuse("the plan has forwards only, which train nothing. Give it backwards");
  if (read.flush_every != pipeline.flush_every())
    refuse("the plan has " + std::to_string(read.flush_every) +
           " optimizer steps between two flushes, but the job " + std::to_string(pipeline.flush_every()) +
           ". Use --flush-every " + std::to_string(read.flush_every));
  if (read.microbatches_per_step() != pipeline.microbatches())
    refuse("the plan has " + std::to_string(read.microbatches_per_step()) + " microbatches, but the job " +
           std::to_string(pipeline.microbatches()) + ". Use --microbatches " +
           std::to_string(read.microbatches_per_step()));
  if (read.num_devices() > most_devices)
    refuse("the plan has " + std::to_string(read.num_devices()) + " devices, but the job " +
           std::to_string(most_devices) + (pipeline.replicas() == 1 ? "" : " for each replica") +
           ". Use more processes, or more --devices in each");
  if (auto gathers = pipeline.gathers();
      gathers.frees && read.gathers != gathers && gathers != schedule::gather_options{true, true})
    refuse(
        "the plan says itself when each stage gathers weights and lets go of them (U and S). Leave "
        "--gather-ahead and --reshard-after out");
  return read;
}

/// The plan of a device map.
plan plan_of_map(const Pipeline& pipeline, const job_options& options, int most_devices) {
  const auto& devices = pipeline.device_of_stage();
  auto refuse = [&pipeline](const std::string& problem) {
    const auto& file = pipeline.device_map()->file();
    throw bad_input((file.empty() ? "device map" : file.string()) + ": " + problem);
  };
  if (!pipeline.plan_file().empty())
    refuse("the plan in " + pipeline.plan_file().string() +
           " says on which devices stages lie, and so does the device map. Use one of them");
  auto num_devices = *std::ranges::max_element(devices) + 1;
  if (num_devices > most_devices)
    refuse("there is no device " + std::to_string(num_devices - 1) + ", the job's devices are 0 to " +
           std::to_string(most_devices - 1) + (pipeline.replicas() == 1 ? "" : " for each replica") +
           ". Use more processes, or more --devices in each");
  auto made = options_of_plan(pipeline, options, pipeline.stages(), num_devices);
  made.device_of_stage = devices;
  return plan_placed_by(*pipeline.device_map(), made);
}

/// The properties that must be equal in a snapshot and the job that resumes from it.
std::vector<std::pair<std::string, std::string>> identity_of(const Pipeline& pipeline,
                                                             const job_options& options) {
  std::vector<std::pair<std::string, std::string>> identity{
      {"seed", std::to_string(options.seed)},
      {"batch", std::to_string(options.batch)},
      {"microbatches", std::to_string(pipeline.microbatches())},
      {"parameters", std::to_string(pipeline.model().num_parameters())}};
  const auto& numerics = pipeline.numerics();
  if (numerics.precision != dtype::f32) identity.emplace_back("precision", to_string(numerics.precision));
  if (numerics.clip_grad_norm > 0)
    identity.emplace_back("clip_grad_norm", std::to_string(numerics.clip_grad_norm));
  if (pipeline.replicas() > 1) identity.emplace_back("replicas", std::to_string(pipeline.replicas()));
  for (const auto& given : given_in(numerics.exchange)) identity.emplace_back(given.name, given.value);
  if (pipeline.flush_every() > 1)
    identity.emplace_back("flush_every", std::to_string(pipeline.flush_every()));
  if (auto modes = modes_of(pipeline.model()); !modes.evaluated.empty())
    identity.emplace_back("layers in evaluation mode", text_of(modes));
  if (options.on_non_finite == "skip")
    identity.emplace_back("on_non_finite", "skip");  // counts skipped steps
  return identity;
}

/// "0, 2"; "none".
std::string text_of(const std::vector<layout::replica_content>& contents) {
  std::string text;
  for (std::size_t stage = 0; stage < contents.size(); ++stage)
    if (contents[stage] == layout::replica_content::equal)
      text += (text.empty() ? "" : ", ") + std::to_string(stage);
  return text.empty() ? "none" : text;
}

}  // namespace

plan plan_for(const Pipeline& pipeline, const job_options& options, int num_devices) {
  check_replicas(pipeline, numerics_for(pipeline, options), options.backend);
  auto replicas = pipeline.replicas();
  if (replicas > 1 && options.batch % (std::int64_t{replicas} * pipeline.microbatches()) != 0)
    throw bad_input(std::to_string(replicas) + " replicas of " + std::to_string(pipeline.microbatches()) +
                    " microbatches do not divide the batch of " + std::to_string(options.batch) +
                    " samples into equal parts. Change --replicas, --microbatches or --batch");
  if (options.batch % pipeline.microbatches() != 0)
    throw bad_input(std::to_string(pipeline.microbatches()) + " microbatches do not divide the batch of " +
                    std::to_string(options.batch) +
                    " samples into equal parts. Change --microbatches or --batch");
  auto kind = pipeline.schedule();
  if (kind == schedule_kind::forward_only || kind == schedule_kind::custom)
    throw bad_input("the schedule " + std::string(to_string(kind)) +
                    " trains nothing by itself. Use 1f1b or another one, or Pipeline::plan_file");
  // Where they do not come out even, a process has several: rather than one without any.
  auto most_devices = (num_devices + replicas - 1) / replicas;
  if (pipeline.device_map()) return plan_of_map(pipeline, options, most_devices);
  if (!pipeline.plan_file().empty()) return plan_in_file(pipeline, options, most_devices);
  auto stages = pipeline.stages() == 0 ? most_devices * usual_chunks(pipeline.schedule()) : pipeline.stages();
  if (replicas == 1 && stages < options.devices)
    throw bad_input(std::to_string(options.devices) + " devices in each process cannot share " +
                    std::to_string(stages) + " stages: use --devices " + std::to_string(stages) +
                    " or fewer, or --stages " + std::to_string(options.devices) + " or more");
  return make_plan(
      options_of_plan(pipeline, options, stages, devices_for(pipeline.schedule(), stages, most_devices)));
}

std::string problem_of_training(const Pipeline& pipeline) {
  const auto& model = pipeline.model();
  if (model.num_parameters() == 0 || model.num_trainable_parameters() > 0) return {};
  return "all " + std::to_string(model.num_parameters()) +
         " parameters of the model are frozen (requires_gradient is false), so that no step would change "
         "one. Leave those to be trained unfrozen, or call evaluate or predict";
}

actors::job::job_definition definition_of(const Pipeline& pipeline, const job_options& options,
                                          const plan& training, int world_size,
                                          const mesh::process_places& places) {
  actors::job::job_definition job;
  job.places = places;
  if (!options.memory_limit.empty()) job.memory_limit_bytes = usage::bytes_from(options.memory_limit);
  auto partition = pipeline.partition(training.num_stages);
  auto numerics = numerics_for(pipeline, options);
  auto contents = contents_of(pipeline.model(), partition, numerics);
  job.place(training, world_size, contents, pipeline.num_shards() > 1);
  check_places(pipeline.model(), partition, job.placed);
  auto mixed = text_of_places(partition, job.placed);
  job.make_program = make_module_programs(
      pipeline.model(), std::move(partition),
      {pipeline.loss(), pipeline.optimizer(), options.seed, numerics, pipeline.initial_weights(),
       training.flush_every,
       [places, placed = job.placed](const layout::cell& made) { return places.of(placed.device_of(made)); },
       pipeline.num_shards()});
  job.num_threads = options.threads;
  job.samples_per_run = std::int64_t{options.batch} * training.flush_every;
  // Where steps are skipped, schedules count fewer of them than the job.
  if (!numerics.skips_steps()) job.learning_rate = optim::detail::learning_rate_of(pipeline.optimizer());
  // The job's steps are runs of the plan.
  auto runs_of = [each = static_cast<std::uint64_t>(training.flush_every)](std::uint64_t steps) {
    return (steps + each - 1) / each;
  };
  job.snapshots.cadence.memory_every_steps = runs_of(options.snapshot_every);
  job.snapshots.cadence.disk_every_steps = runs_of(options.disk_every);
  job.snapshots.cadence.disk_interval = options.snapshot_interval;
  job.snapshots.folder = options.snapshot_dir;
  job.snapshots.access = snapshot_access_of(options);
  job.resume = options.resume;
  job.on_non_finite = non_finite_policy_from(options.on_non_finite);
  job.on_lost_state = options.on_lost_state == "restart" ? actors::job::lost_state_policy::restart
                                                         : actors::job::lost_state_policy::stop;
  job.description =
      describe_job(pipeline, options, job.training, job.placed, job.home, numeric_class_of(places));
  if (training.mesh.num_replicas > 1) {
    job.description.add("stages that all replicas hold alike", text_of(contents));
    job.description.add("what replicas divide", std::string(to_string(numerics.shard)));
    if (auto gathers = pipeline.gathers(); gathers.frees)
      job.description.add("when stages let go of weights, and passes that they gather them ahead",
                          std::string(to_string(gathers.reshards)) + ", " + std::to_string(gathers.ahead));
    job.description.add("backend over which replicas add up gradients", options.backend);
  }
  job.identity = identity_of(pipeline, options);
  if (!mixed.empty()) job.identity.emplace_back("nodes on CPUs and GPUs", mixed);
  job.settings = training_settings(pipeline.optimizer(), pipeline.loss());
  job.settings.emplace_back("frozen parameters", frozen_parameters_of(pipeline.model()));
  job.reset_optimizer = options.reset_optimizer;
  if (auto order = schedule::gradient_order_of(job.training); order != schedule::gradient_order::ascending)
    job.identity.emplace_back("gradient_order", to_string(order));
  if (!job.training.joint.empty()) job.identity.emplace_back("sync_batch_norm", "true");
  return job;
}

}  // namespace troupe::detail
