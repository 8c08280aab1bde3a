#include "troupe/execution/replica_exchange.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::execution {

replica_exchange::replica_exchange(int replica, int num_replicas, int num_buckets,
                                   const transport::tensor_tag& tag, sum_memory memory)
    : replica_(replica),
      num_replicas_(num_replicas),
      tag_(tag),
      memory_(std::move(memory)),
      buckets_(static_cast<std::size_t>(num_buckets)) {}

void replica_exchange::give(int bucket, const tensor& gradients, const sender& send) {
  auto& given = buckets_.at(static_cast<std::size_t>(bucket));
  if (given.num_elements > 0) return;
  auto count = gradients.num_elements();
  bool is_known = is_floating(gradients.dtype()) || gradients.dtype() == dtype::i32;
  if (!is_known || gradients.shape().rank() != 1 || count == 0)
    throw std::logic_error(
        "[stage_program::replica_gradients] expected f32, bf16, f16 or i32 [n] with n > 0, got " +
        describe(gradients));
  given.num_elements = count;
  given.type = gradients.dtype();
  given_.push_back(bucket);
  for (int to = 0; to < num_replicas_; ++to)
    if (given.is_message())
      send(tag_of(transport::tensor_role::replica_gradients, bucket, replica_, to), gradients);
    else if (auto part = part_of(given, to); part.count > 0)
      send(tag_of(transport::tensor_role::replica_gradients, bucket, replica_, to),
           gradients.rows(part.begin, part.count));
}

std::vector<int> replica_exchange::not_given() const {
  std::vector<int> result;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    if (buckets_[bucket].num_elements == 0) result.push_back(static_cast<int>(bucket));
  return result;
}

bool replica_exchange::can_go_on(const inbox& arrived) const {
  return std::ranges::any_of(
      given_, [&](int bucket) { return has_gradients(bucket, arrived) || has_sums(bucket, arrived); });
}

void replica_exchange::add_up(inbox& arrived, const sender& send) {
  for (int bucket : given_)
    if (has_gradients(bucket, arrived)) add_up_bucket(bucket, arrived, send);
}

void replica_exchange::go_on(inbox& arrived, const sender& send, const taker& take) {
  for (int bucket : given_) {
    if (has_gradients(bucket, arrived)) add_up_bucket(bucket, arrived, send);
    if (has_sums(bucket, arrived)) take(bucket, take_sums(bucket, arrived));
  }
  std::erase_if(given_, [this](int bucket) { return buckets_[static_cast<std::size_t>(bucket)].is_taken; });
}

/// Of everything that this replica must add up.
bool replica_exchange::has_gradients(int bucket, const inbox& arrived) const {
  const auto& state = buckets_[static_cast<std::size_t>(bucket)];
  if (state.is_message() || state.has_sums || part_of(state, replica_).count == 0) return false;
  for (int from = 0; from < num_replicas_; ++from)
    if (!arrived.has(tag_of(transport::tensor_role::replica_gradients, bucket, from, replica_))) return false;
  return true;
}

bool replica_exchange::has_sums(int bucket, const inbox& arrived) const {
  const auto& state = buckets_[static_cast<std::size_t>(bucket)];
  if (state.is_taken) return false;
  for (int from = 0; from < num_replicas_; ++from)
    if (gives_result(state, from) && !arrived.has(tag_of(result_role(state), bucket, from, replica_)))
      return false;
  return true;
}

void replica_exchange::add_up_bucket(int bucket, inbox& arrived, const sender& send) {
  auto& state = buckets_[static_cast<std::size_t>(bucket)];
  auto count = part_of(state, replica_).count;
  std::vector<tensor> gradients;
  std::vector<const std::byte*> inputs;
  for (int from = 0; from < num_replicas_; ++from) {
    auto& each = gradients.emplace_back(
        *arrived.take(tag_of(transport::tensor_role::replica_gradients, bucket, from, replica_)));
    if (each.dtype() != state.type || each.num_elements() != count)
      throw std::logic_error(
          "[stage_program::replica_gradients] expected equally many of one dtype in all replicas, got " +
          std::to_string(each.num_elements()) + " elements in " + std::string(to_string(each.dtype())) +
          " of replica " + std::to_string(from) + " where this one has " + std::to_string(count) + " in " +
          std::string(to_string(state.type)));
    inputs.push_back(std::as_const(each).bytes().data());
  }
  auto sum = memory_(bucket, count, state.type);
  auto* output = sum.bytes().data();
  if (state.type == dtype::f32)
    reduce_node(inputs, output, count, dtype::f32, reduce_op::sum);  // the faster one
  else
    tree_reduce(inputs, std::span(&output, 1), count, state.type, reduce_op::sum);
  state.has_sums = true;
  for (int to = 0; to < num_replicas_; ++to)
    send(tag_of(transport::tensor_role::summed_gradients, bucket, replica_, to), sum);
}

std::vector<tensor> replica_exchange::take_sums(int bucket, inbox& arrived) {
  auto& state = buckets_[static_cast<std::size_t>(bucket)];
  std::vector<tensor> sums;
  for (int from = 0; from < num_replicas_; ++from)
    if (gives_result(state, from))
      sums.push_back(*arrived.take(tag_of(result_role(state), bucket, from, replica_)));
  for (const auto& each : sums)
    if (each.dtype() != state.type)
      throw std::logic_error("[stage_program::replica_gradients] expected " +
                             std::string(to_string(state.type)) + " of all replicas, got " + describe(each));
  state.is_taken = true;
  ++num_taken_;
  return sums;
}

/// What take_sums takes of each replica: its sums, or its message.
transport::tensor_role replica_exchange::result_role(const bucket_state& bucket) {
  return bucket.is_message() ? transport::tensor_role::replica_gradients
                             : transport::tensor_role::summed_gradients;
}

bool replica_exchange::gives_result(const bucket_state& bucket, int replica) const {
  return bucket.is_message() || part_of(bucket, replica).count > 0;
}

/// The elements of a bucket that a replica adds up.
replica_exchange::part replica_exchange::part_of(const bucket_state& bucket, int replica) const {
  auto begin = bucket.num_elements * replica / num_replicas_;
  return {begin, bucket.num_elements * (replica + 1) / num_replicas_ - begin};
}

transport::tensor_tag replica_exchange::tag_of(transport::tensor_role role, int bucket, int from,
                                               int to) const {
  auto made = tag_;
  made.role = role;
  made.port = static_cast<std::uint32_t>(bucket * num_replicas_ + from);
  made.replica = static_cast<std::uint32_t>(to);
  return made;
}

}  // namespace troupe::execution
