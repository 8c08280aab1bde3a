#pragma once
#include "troupe/collective/communicator.hpp"
#include "troupe/nn/batch_norm.hpp"

namespace troupe {
namespace nn {

/// BatchNorm2d over the batches of all members of a group in training: the same result, within rounding, as
/// one batch norm of the whole batch; summed in the order of the group's backend. Every member runs forward
/// and backward alike. It waits for the others three times in each step: give it a group of its own where
/// DataParallel's buckets are on their way, or it waits for those too. A group outlives it.
class SyncBatchNorm : public BatchNorm2d {
 public:
  SyncBatchNorm(std::int64_t features, communicator& group, batch_norm_options options = {});
  /// The same with a ProcessGroup of the World, which it keeps.
  SyncBatchNorm(std::int64_t features, std::shared_ptr<communicator> group, batch_norm_options options = {});
};

}  // namespace nn

/// Lets every BatchNorm2d in a model take its statistics over all members from now on. Returns how many it
/// found.
int convert_sync_batch_norm(nn::Module& model, communicator& group);
int convert_sync_batch_norm(nn::Module& model, const std::shared_ptr<communicator>& group);

/// Whether statistics in the model are taken over several members.
bool has_sync_batch_norm(nn::Module& model);

}  // namespace troupe
