#pragma once
#include "troupe/parallel/pipeline.hpp"

namespace troupe {

/// Throws bad_input, with what to do, for options about what replicas exchange where there are no replicas,
/// for two such options that exclude each other, for those that the schedule or `numerics` exclude, and for a
/// model that replicas cannot have (SyncBatchNorm). `numerics`: of the pipeline, with the job's
/// on_non_finite.
void check_replicas(const Pipeline& pipeline, const numeric_options& numerics);

}  // namespace troupe
