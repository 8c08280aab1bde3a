#include "bench/data_parallel/named_replica.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "bench/processes/own_transport.hpp"

namespace troupe::bench {
namespace {

named_communicator::transport_maker transport_of(const actors::process::process& self,
                                                 transport::send_delay_ptr link) {
  auto options = own_transport_options(self);
  options.delay = std::move(link);
  return [options](transport::transport_events& events) { return make_ucx_transport(options, events); };
}

}  // namespace

named_replica::named_replica(const compute_model& model, actors::process::process& self,
                             transport::send_delay_ptr link)
    : rank_(self.rank()),
      num_replicas_(self.world_size()),
      communicator_(transport_of(self, std::move(link))),
      batches_(make_replica_batches(model, self.world_size())),
      program_(make_replica_programs(model, moments_)({.stage = 0})) {
  static int number = 0;
  communicator_.connect(
      exchange_addresses(self, "named replica " + std::to_string(number++), communicator_.begin()));
  program_->share_gradients(
      [this](shape extents, dtype type) { return communicator_.allocate_shared(std::move(extents), type); });
}

std::vector<step_moment> named_replica::run(int count) {
  moments_->clear();
  for (int i = 0; i < num_uncounted_steps + count; ++i) step();
  end_update();
  return last_moments(*moments_, count);
}

void named_replica::step() {
  auto all = batches_->at(num_steps_);
  auto rows = all.inputs.shape()[0] / num_replicas_;
  program::microbatch which{.step = num_steps_, .replica = rank_, .num_replicas = num_replicas_};
  which.batch_targets = all.targets;
  program_->forward(which, {all.inputs.rows(rank_ * rows, rows)}, all.targets.rows(rank_ * rows, rows));
  end_update();  // of the step before, whose gradients the backward writes over
  ++num_steps_;
  num_left_ = static_cast<std::size_t>(program_->num_buckets(layout::mesh_axis::dp, which.step));
  given_.assign(num_left_, false);
  is_updating_ = true;
  program_->backward_last(
      which, {}, [](const std::vector<tensor>&) {},
      [this](int bucket) {
        give(bucket);
        communicator_.advance();
      });
  for (std::size_t bucket = 0; bucket < given_.size(); ++bucket) give(static_cast<int>(bucket));
  program_->take_metrics();
  advance_update(false);
  if (is_updating_ && !program_->defer_update([this](bool waits) { advance_update(waits); })) end_update();
}

void named_replica::give(int bucket) {
  auto place = given_.begin() + bucket;
  if (!*place)
    communicator_.all_reduce({num_steps_, bucket}, program_->bucket(layout::mesh_axis::dp, bucket));
  *place = true;
}

void named_replica::advance_update(bool waits) {
  if (waits)
    communicator_.wait();
  else
    communicator_.advance();
  communicator_.take_done([this](const call_name& name, const std::vector<tensor>& parts) {
    program_->take_sums(layout::mesh_axis::dp, name.bucket, parts);
    --num_left_;
  });
  if (num_left_ > 0) return;
  is_updating_ = false;
  if (auto what = program_->non_finite(); !what.empty()) throw std::runtime_error(what + " is not finite");
  program_->apply(num_steps_ - 1);
}

void named_replica::end_update() {
  while (is_updating_) advance_update(true);
}

}  // namespace troupe::bench
