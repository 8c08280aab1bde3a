#include "bench/data_parallel/named_replica.hpp"

#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/transport/ucx_transport/ucx_transport.hpp"

namespace troupe::bench {
namespace {

named_communicator::transport_maker transport_of(const process& self, emulated_rate link) {
  auto token = std::as_bytes(std::span(self.group_token()));
  ucx_transport_options options;
  options.rank = self.rank();
  options.world_size = self.world_size();
  options.secret.assign(token.begin(), token.end());
  options.link = std::move(link);
  return [options](transport_events& events) { return make_ucx_transport(options, events); };
}

}  // namespace

named_replica::named_replica(const compute_model& model, process& self, emulated_rate link)
    : rank_(self.rank()),
      num_replicas_(self.world_size()),
      over_(transport_of(self, std::move(link))),
      batches_(make_replica_batches(model, self.world_size())),
      program_(make_replica_programs(model, moments_)(0)) {
  connect(self);
  program_->share_gradients(
      [this](shape extents, dtype type) { return over_.allocate_shared(std::move(extents), type); });
}

/// All tell each other their addresses through the job's store.
void named_replica::connect(process& self) {
  static int number = 0;
  auto prefix = "named replica " + std::to_string(number++) + " ";
  auto own = over_.begin();
  auto& keys = self.keys();
  keys.put(prefix + "control " + std::to_string(rank_), own.control);
  keys.put(prefix + "data " + std::to_string(rank_), own.data);
  auto found = [&](const std::string& what, int rank) {
    auto value = keys.get(prefix + what + std::to_string(rank), std::chrono::minutes(1));
    if (!value) throw std::runtime_error("replica " + std::to_string(rank) + " did not come within a minute");
    return *value;
  };
  std::map<int, process_address> members;
  for (int rank = 0; rank < num_replicas_; ++rank)
    members[rank] = {found("control ", rank), found("data ", rank)};
  over_.connect(members);
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
  microbatch which{.step = num_steps_, .replica = rank_, .num_replicas = num_replicas_};
  which.batch_targets = all.targets;
  program_->forward(which, {all.inputs.rows(rank_ * rows, rows)}, all.targets.rows(rank_ * rows, rows));
  end_update();  // of the step before, whose gradients the backward writes over
  ++num_steps_;
  num_left_ = static_cast<std::size_t>(program_->num_gradient_buckets(which.step));
  given_.assign(num_left_, false);
  is_updating_ = true;
  program_->backward_last(
      which, {}, [](const std::vector<tensor>&) {},
      [this](int bucket) {
        give(bucket);
        over_.advance();
      });
  for (std::size_t bucket = 0; bucket < given_.size(); ++bucket) give(static_cast<int>(bucket));
  program_->take_metrics();
  advance_update(false);
  if (is_updating_ && !program_->defer_update([this](bool waits) { advance_update(waits); })) end_update();
}

void named_replica::give(int bucket) {
  auto place = given_.begin() + bucket;
  if (!*place) over_.all_reduce({num_steps_, bucket}, program_->replica_gradients(bucket));
  *place = true;
}

void named_replica::advance_update(bool waits) {
  if (waits)
    over_.wait();
  else
    over_.advance();
  over_.take_done([this](const call_name& name, const std::vector<tensor>& parts) {
    program_->take_summed_gradients(name.bucket, parts);
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
