#pragma once
#include <string>

#include "troupe/pipeline/pipeline.hpp"

namespace troupe::detail {

/// Throws bad_input, with what to do, for
/// - options about what replicas exchange where there are no replicas
/// - two such options that exclude each other
/// - those that the schedule or `numerics` exclude
/// - a model that replicas cannot have (SyncBatchNorm)
/// - shards with what they exclude (Pipeline::shard)
///
/// `numerics`: of the pipeline, with the job's on_non_finite. `backend`: job_options::backend.
void check_replicas(const Pipeline& pipeline, const numeric_options& numerics, const std::string& backend);

}  // namespace troupe::detail
