#pragma once
#include "troupe/collective/communicator.hpp"
#include "troupe/nn/batch_norm.hpp"

namespace troupe {
namespace nn {

/// BatchNorm2d with statistics over the batches of all members of a group in training (PyTorch's
/// SyncBatchNorm): equals one batch norm of the whole batch within rounding; sums are in the order of the
/// group's backend. Every member must run the same forward and backward passes. Each step waits for the other
/// members three times: use a separate group beside DataParallel, or it also waits for the bucket reductions.
/// The group must outlive it.
class SyncBatchNorm : public BatchNorm2d {
 public:
  SyncBatchNorm(std::int64_t features, communicator& group, batch_norm_options options = {});
  /// The same with a ProcessGroup of the World, kept alive by this module.
  SyncBatchNorm(std::int64_t features, std::shared_ptr<communicator> group, batch_norm_options options = {});
};

}  // namespace nn

/// Makes every BatchNorm2d in a model compute its statistics over all members. Returns the number of layers
/// found.
int convert_sync_batch_norm(nn::Module& model, communicator& group);
int convert_sync_batch_norm(nn::Module& model, const std::shared_ptr<communicator>& group);

/// Whether a layer of the model computes its statistics over several members.
bool has_sync_batch_norm(nn::Module& model);

}  // namespace troupe
