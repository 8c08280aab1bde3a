#include "troupe/detail/unused_options.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "troupe/config/job_fields.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

/// The options that would give a pipeline with these settings.
job_options options_of(const Pipeline& pipeline) {
  job_options options;
  options.stages = pipeline.stages();
  options.microbatches = pipeline.microbatches();
  options.replicas = pipeline.replicas();
  options.schedule = pipeline.schedule();
  options.flush_every = pipeline.flush_every();
  options.plan = pipeline.plan_file();
  if (pipeline.device_map()) options.device_map = pipeline.device_map()->file();
  options.precision = pipeline.numerics().precision;
  options.clip_grad_norm = pipeline.numerics().clip_grad_norm;
  static_cast<replica_exchange_options&>(options) = pipeline.numerics().exchange;
  options.shard = to_string(pipeline.numerics().shard);
  options.reshard_after = to_string(pipeline.gathers().reshards);
  options.gather_ahead = pipeline.gathers().ahead;
  options.loss_scale = pipeline.numerics().loss_scale.initial_scale;
  return options;
}

}  // namespace

void refuse_unused_options(const job_options& options, const Pipeline& pipeline) {
  auto used = options_of(pipeline);
  std::vector<std::string_view> names{
      "stages",    "device_map",     "microbatches", "replicas", "schedule",      "flush_every", "plan",
      "precision", "clip_grad_norm", "loss_scale",   "shard",    "reshard_after", "gather_ahead"};
  names.insert(names.end(), replica_exchange_fields.begin(), replica_exchange_fields.end());
  for (auto name : names) {
    const auto& field = *config::find_job_field(name);
    auto given = field.text(options), has = field.text(used);
    if (given == has || !options.given.contains(std::string(name))) continue;
    throw bad_input(field.option_name() + " " + given +
                    " was given, but this program does not use it: its "
                    "pipeline has " +
                    std::string(name) + " " + (has.empty() ? "none" : has) +
                    ". Leave the option out, or make the pipeline with Pipeline(model, options)");
  }
}

}  // namespace troupe::detail
