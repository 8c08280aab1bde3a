#include "troupe/pipeline/detail/agreement/describe_job.hpp"

#include <span>

#include "troupe/config/job_fields.hpp"
#include "troupe/pipeline/detail/agreement/describe_pipeline.hpp"
#include "troupe/pipeline/detail/agreement/describe_plan.hpp"
#include "troupe/snapshot/weights_hash.hpp"

namespace troupe::detail {
namespace {

/// Options in which all processes must agree.
constexpr const char* agreed_options[] = {
    "seed",         "batch",           "devices",           "device",
    "memory_limit", "snapshot_every",  "snapshot_interval", "disk_every",
    "resume",       "reset_optimizer", "fresh_start",       "on_non_finite",
    "on_lost_state"};

}  // namespace

agreement::job_description describe_job(const Pipeline& pipeline, const job_options& options,
                                        const plan& training, const mesh::placement& placed,
                                        const mesh::hosting& home, const std::string& numeric_class) {
  agreement::job_description job;
  for (const auto* name : agreed_options) job.add(name, config::find_job_field(name)->text(options));
  job.add("microbatches", std::to_string(training.microbatches_per_step()));
  job.add("stages", std::to_string(training.num_stages));
  job.add("replicas", std::to_string(training.mesh.num_replicas));
  job.add("schedule", std::string(to_string(training.kind)));
  job.add("flush_every", std::to_string(training.flush_every));
  job.add("snapshots", options.snapshot_dir.empty() ? "in memory only" : "in a folder");
  job.add("arithmetic", numeric_class);
  describe_pipeline(pipeline, job);
  job.add("weights to begin with",
          pipeline.initial_weights() ? weights_sha256(*pipeline.initial_weights()) : "those of the seed");
  describe_plan(training, job);
  auto tables = placement_text(placed) + hosting_text(home);
  job.add("placement", agreement::short_hash(std::as_bytes(std::span(tables))));
  return job;
}

}  // namespace troupe::detail
