#pragma once
#include <vector>

#include "troupe/layout/part_id.hpp"
#include "troupe/nn/graph.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/pipeline/partition.hpp"

namespace troupe::detail {

/// Whether the replicas of a stage keep the same state, bit for bit, after each optimizer step: they do if
/// nothing in it comes from a replica's own samples. The optimizer's state and the loss scale follow from
/// gradients that are summed over replicas, and random numbers from the step.
///
/// own: modules with buffers (running statistics; those of SyncBatchNorm are all replicas'), what compression
/// holds back (top-k, PowerSGD), and weights that are only averaged now and then.
layout::replica_content content_of(const nn::Graph& model, const stage_range& stage,
                                   const numeric_options& numerics);

/// Whether all replicas have the same weights and buffers between two optimizer steps.
bool has_equal_replicas(const nn::Graph& model, const numeric_options& numerics);

/// The stages of which all replicas run forward and backward together (plan::joint): those with
/// a SyncBatchNorm over replicas.
std::vector<int> synchronized_stages_of(const nn::Graph& model, const std::vector<stage_range>& partition);

/// content_of for all stages of a partition.
std::vector<layout::replica_content> contents_of(const nn::Graph& model,
                                                 const std::vector<stage_range>& partition,
                                                 const numeric_options& numerics);

}  // namespace troupe::detail
