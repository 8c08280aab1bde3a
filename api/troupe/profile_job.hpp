#pragma once
#include <filesystem>

#include "troupe/data/dataset.hpp"
#include "troupe/planning/profile_model.hpp"

namespace troupe {

/// Measures a microbatch of a job with these options: its size, threads and seed. In one process: the others
/// read what it has saved. Sets the threads of this process. Throws as profile_model does, and bad_input as
/// make_training_source.
cost_profile profile_job(const Pipeline& pipeline, const dataset_ptr& samples, const job_options& options);

/// Writes a profile as a JSON file, whole or not at all. Throws bad_input if it cannot be written.
void save_profile(const std::filesystem::path& file, const cost_profile& profile);
/// Throws bad_input naming the file if it cannot be read or is no profile of this version.
cost_profile read_profile(const std::filesystem::path& file);

}  // namespace troupe
