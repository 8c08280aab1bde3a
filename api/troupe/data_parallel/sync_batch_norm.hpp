#pragma once
#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/nn/batch_norm.hpp"

namespace troupe {
namespace nn {

/// BatchNorm2d whose statistics in training are those of all replicas (PyTorch's SyncBatchNorm): equals one
/// batch norm of all their samples within rounding. Its forward pass waits for the other replicas twice, its
/// backward pass once, and within a Checkpoint twice more: each must run the same passes.
///
/// Over the replicas of the pipeline that trains the model (Pipeline::replicas): in each pass microbatch i of
/// every replica is normalised with the others' microbatch i. Sums are in the fixed tree over replicas, so
/// that the bits depend on their number alone, and the replicas keep the same running statistics. With one
/// replica, or run by hand, a BatchNorm2d.
///
/// Or over the members of a process group, for loops of your own (DataParallel); sums are in the order of the
/// group's backend. Use a separate group beside DataParallel, or it also waits for the bucket reductions. The
/// group must outlive the module.
class SyncBatchNorm : public BatchNorm2d {
 public:
  explicit SyncBatchNorm(std::int64_t features, batch_norm_options options = {});
  SyncBatchNorm(std::int64_t features, communicator& group, batch_norm_options options = {});
  /// The same with a ProcessGroup of the World, kept alive by this module.
  SyncBatchNorm(std::int64_t features, std::shared_ptr<communicator> group, batch_norm_options options = {});
};

}  // namespace nn

/// Makes every BatchNorm2d in a model compute its statistics over the replicas of the pipeline that trains
/// it. Returns the number of layers found.
int convert_sync_batch_norm(nn::Module& model);
/// The same over all members of a group.
int convert_sync_batch_norm(nn::Module& model, communicator& group);
int convert_sync_batch_norm(nn::Module& model, const std::shared_ptr<communicator>& group);

/// Whether a layer of the model computes its statistics over these.
bool has_statistics_of(nn::Module& model, nn::BatchNorm2d::statistics_of whose);

}  // namespace troupe
