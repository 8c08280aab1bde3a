#include "troupe/profile_job.hpp"

#include <span>

#include "troupe/config/text_file.hpp"
#include "troupe/data/detail/training_source.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/mesh/device_places.hpp"
#include "troupe/ops/threads.hpp"

namespace troupe {

cost_profile profile_job(const Pipeline& pipeline, const dataset_ptr& samples, const job_options& options) {
  if (!samples) throw bad_input("profile_job needs a data set, got a null pointer");
  auto num_microbatches = std::int64_t{pipeline.replicas()} * pipeline.microbatches();
  if (options.batch % num_microbatches != 0)
    throw bad_input((pipeline.replicas() == 1 ? "" : std::to_string(pipeline.replicas()) + " replicas of ") +
                    std::to_string(pipeline.microbatches()) + " microbatches do not divide the batch of " +
                    std::to_string(options.batch) + " samples into equal parts. Change --microbatches" +
                    (pipeline.replicas() == 1 ? "" : ", --replicas") + " or --batch");
  set_num_threads(options.threads);
  auto source = detail::make_training_source(
      samples, {.batch = options.batch / num_microbatches, .microbatches = 1, .seed = options.seed});
  auto places = mesh::device_places::from_string(options.device);
  if (places.has_gpus() && places.has_cpus())
    throw bad_input("--device " + options.device +
                    ": a profile is of one kind of device. Measure on the CPU and on a GPU, a file each");
  auto place = places.of({0}, 0, 1);
  return profile_model(pipeline, source->at(0), {.seed = options.seed, .place = place});
}

void save_profile(const std::filesystem::path& file, const cost_profile& profile) {
  auto text = to_json(profile);
  try {
    files::write_durably(file, std::as_bytes(std::span(text)));
  } catch (const files::snapshot_error& problem) {
    throw bad_input("cannot write the cost profile: " + std::string(problem.what()));
  }
}

cost_profile read_profile(const std::filesystem::path& file) {
  auto text = config::read_text_file(file, "cost profile");
  try {
    return profile_from_json(text);
  } catch (const bad_input& problem) {
    throw bad_input(file.string() + ": " + problem.what());
  }
}

}  // namespace troupe
