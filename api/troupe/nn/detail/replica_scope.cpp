#include "troupe/nn/detail/replica_scope.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::nn::detail {
namespace {

thread_local const replica_scope* current = nullptr;

}  // namespace

replica_scope::replica_scope(int num_replicas, sum_over_members sum)
    : num_replicas_(num_replicas), sum_(std::move(sum)), outer_(std::exchange(current, this)) {}

replica_scope::~replica_scope() { current = outer_; }

void add_up_over_replicas(tensor& values) {
  if (!current || current->num_replicas_ == 1) return;
  if (!current->sum_)
    throw std::logic_error("[SyncBatchNorm] expected a pass that all " +
                           std::to_string(current->num_replicas_) +
                           " replicas run together, as plan::joint says, got one that each runs alone");
  current->sum_(values);
}

}  // namespace troupe::nn::detail
