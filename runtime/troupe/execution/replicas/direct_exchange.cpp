#include "troupe/execution/replicas/direct_exchange.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::execution {

using transport::tensor_role;

direct_exchange::direct_exchange(replica_messages messages, int num_buckets, sum_memory memory,
                                 ownership owned)
    : replica_exchange(std::move(messages), num_buckets),
      memory_(std::move(memory)),
      owned_(std::move(owned)),
      buckets_(static_cast<std::size_t>(num_buckets)) {}

void direct_exchange::begin(int bucket, const tensor& gradients) {
  auto& begun = buckets_[static_cast<std::size_t>(bucket)];
  begun.num_elements = gradients.num_elements();
  begun.type = gradients.dtype();
  if (owned_.owner_of && !begun.is_message()) begun.owner = owned_.owner_of(bucket);
  auto send = [&](int to, const tensor& value) {
    messages().send(tensor_role::replica_gradients, bucket, messages().replica(), to, value);
  };
  for (int to = 0; to < messages().num_replicas(); ++to)
    if (begun.is_message())
      send(to, gradients);
    else if (auto part = part_of(begun, to); part.count > 0)
      send(to, gradients.rows(part.begin, part.count));
  given_.push_back(bucket);
}

bool direct_exchange::can_go_on() const {
  return std::ranges::any_of(given_, [&](int bucket) { return has_gradients(bucket) || has_sums(bucket); });
}

void direct_exchange::add_up() {
  for (int bucket : given_) {
    if (has_gradients(bucket)) add_up_bucket(bucket);
    if (buckets_[static_cast<std::size_t>(bucket)].is_of_another(messages().replica()) && has_sums(bucket))
      take_acknowledgement(bucket);
  }
  forget_taken();
}

void direct_exchange::go_on(const taker& take) {
  add_up();
  for (int bucket : given_)
    if (has_sums(bucket)) take(bucket, take_sums(bucket));
  forget_taken();
}

void direct_exchange::forget_taken() {
  std::erase_if(given_, [this](int bucket) { return buckets_[static_cast<std::size_t>(bucket)].is_taken; });
}

/// Of everything that this replica must add up.
bool direct_exchange::has_gradients(int bucket) const {
  const auto& state = buckets_[static_cast<std::size_t>(bucket)];
  if (state.is_message() || state.has_sums || part_of(state, messages().replica()).count == 0) return false;
  for (int from = 0; from < messages().num_replicas(); ++from)
    if (!messages().has(tensor_role::replica_gradients, bucket, from)) return false;
  return true;
}

bool direct_exchange::has_sums(int bucket) const {
  const auto& state = buckets_[static_cast<std::size_t>(bucket)];
  if (state.is_taken) return false;
  for (int from = 0; from < messages().num_replicas(); ++from)
    if (gives_result(state, from) && !messages().has(result_role(state), bucket, from)) return false;
  return true;
}

void direct_exchange::add_up_bucket(int bucket) {
  auto& state = buckets_[static_cast<std::size_t>(bucket)];
  auto count = part_of(state, messages().replica()).count;
  std::vector<tensor> gradients;
  std::vector<const std::byte*> inputs;
  for (int from = 0; from < messages().num_replicas(); ++from) {
    auto& each = gradients.emplace_back(messages().take(tensor_role::replica_gradients, bucket, from));
    if (each.dtype() != state.type || each.num_elements() != count)
      throw std::logic_error("[stage_program::bucket] expected equally many of one dtype in all " +
                             lane_name() + "s, got " + std::to_string(each.num_elements()) + " elements in " +
                             std::string(to_string(each.dtype())) + " of " + lane_name() + " " +
                             std::to_string(from) + " where this one has " + std::to_string(count) + " in " +
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
  for (int to = 0; to < messages().num_replicas(); ++to)
    messages().send(tensor_role::summed_gradients, bucket, messages().replica(), to,
                    state.is_of_another(to) ? tensor::zeros({}, dtype::u8) : sum);
  gradients.clear();
  if (state.owner && owned_.on_read) owned_.on_read(bucket);
}

void direct_exchange::take_acknowledgement(int bucket) {
  take_sums(bucket);
  if (owned_.on_read) owned_.on_read(bucket);
}

std::string direct_exchange::lane_name() const { return messages().is_of_slices() ? "slice" : "replica"; }

std::vector<tensor> direct_exchange::take_sums(int bucket) {
  auto& state = buckets_[static_cast<std::size_t>(bucket)];
  std::vector<tensor> sums;
  for (int from = 0; from < messages().num_replicas(); ++from)
    if (gives_result(state, from)) sums.push_back(messages().take(result_role(state), bucket, from));
  for (const auto& each : sums)
    if (each.dtype() != (state.is_of_another(messages().replica()) ? dtype::u8 : state.type))
      throw std::logic_error("[stage_program::bucket] expected " + std::string(to_string(state.type)) +
                             " of all " + lane_name() + "s, got " + describe(each));
  state.is_taken = true;
  note_taken();
  return sums;
}

/// What take_sums takes of each replica: its sums, or its message.
tensor_role direct_exchange::result_role(const bucket_state& bucket) {
  return bucket.is_message() ? tensor_role::replica_gradients : tensor_role::summed_gradients;
}

bool direct_exchange::gives_result(const bucket_state& bucket, int replica) const {
  return bucket.is_message() || part_of(bucket, replica).count > 0;
}

/// The elements of a bucket that a replica adds up.
direct_exchange::part direct_exchange::part_of(const bucket_state& bucket, int replica) const {
  if (bucket.owner) return {0, *bucket.owner == replica ? bucket.num_elements : 0};
  auto num_replicas = messages().num_replicas();
  auto begin = bucket.num_elements * replica / num_replicas;
  return {begin, bucket.num_elements * (replica + 1) / num_replicas - begin};
}

}  // namespace troupe::execution
