#include "troupe/data_parallel/sync_batch_norm.hpp"

namespace troupe {
namespace {

std::shared_ptr<communicator> not_kept(communicator& group) { return {std::shared_ptr<void>(), &group}; }

nn::sum_over_members sum_in(const std::shared_ptr<communicator>& group) {
  return
      [group](tensor& x) { group->all_reduce(x, reduce_op::sum, {.progress = progress_by::waiter}).wait(); };
}

void for_each_batch_norm(nn::Module& model, const std::function<void(nn::BatchNorm2d&)>& visit) {
  if (auto* found = dynamic_cast<nn::BatchNorm2d*>(&model)) visit(*found);
  model.each_child([&](const std::string&, nn::Module& child) { for_each_batch_norm(child, visit); });
}

int convert(nn::Module& model, const std::function<void(nn::BatchNorm2d&)>& change) {
  int count = 0;
  for_each_batch_norm(model, [&](nn::BatchNorm2d& found) {
    change(found);
    ++count;
  });
  return count;
}

}  // namespace

nn::SyncBatchNorm::SyncBatchNorm(std::int64_t features, batch_norm_options options)
    : BatchNorm2d(features, options) {
  synchronize_over_replicas();
}

nn::SyncBatchNorm::SyncBatchNorm(std::int64_t features, communicator& group, batch_norm_options options)
    : SyncBatchNorm(features, not_kept(group), options) {}

nn::SyncBatchNorm::SyncBatchNorm(std::int64_t features, std::shared_ptr<communicator> group,
                                 batch_norm_options options)
    : BatchNorm2d(features, options) {
  synchronize_statistics(sum_in(group));
}

int convert_sync_batch_norm(nn::Module& model) {
  return convert(model, [](nn::BatchNorm2d& found) { found.synchronize_over_replicas(); });
}

int convert_sync_batch_norm(nn::Module& model, communicator& group) {
  return convert_sync_batch_norm(model, not_kept(group));
}

int convert_sync_batch_norm(nn::Module& model, const std::shared_ptr<communicator>& group) {
  return convert(model, [&](nn::BatchNorm2d& found) { found.synchronize_statistics(sum_in(group)); });
}

bool has_statistics_of(nn::Module& model, nn::BatchNorm2d::statistics_of whose) {
  bool result = false;
  for_each_batch_norm(model,
                      [&](const nn::BatchNorm2d& found) { result = result || found.statistics() == whose; });
  return result;
}

}  // namespace troupe
