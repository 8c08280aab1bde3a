#include "troupe/execution/synchronized_pass.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::execution {
namespace {

/// Before the values: the action's kind and microbatch, and the number of the sum in it, as bits.
constexpr std::int64_t head_size = 3;
using head = std::array<std::int32_t, head_size>;

head head_in(const tensor& message) {
  head found{};
  std::ranges::transform(message.values<float>().first(found.size()), found.begin(),
                         [](float each) { return std::bit_cast<std::int32_t>(each); });
  return found;
}

/// "sum 2 of 1F0, of 16 values"; "the end of 1F0, after 2 sums"
std::string text_of(const tensor& message, int stage) {
  auto [kind, microbatch, number] = head_in(message);
  auto op = to_string(action{stage, static_cast<action_kind>(kind), microbatch});
  auto count = message.num_elements() - head_size;
  if (count == 0) return "the end of " + op + ", after " + std::to_string(number) + " sums";
  return "sum " + std::to_string(number) + " of " + op + ", of " + std::to_string(count) + " values";
}

}  // namespace

synchronized_pass::synchronized_pass(const action& op, int replica, int num_replicas,
                                     const transport::tensor_tag& tag, std::uint32_t& num_messages,
                                     sender send, receiver receive)
    : op_(op),
      replica_(replica),
      num_replicas_(num_replicas),
      tag_(tag),
      num_messages_(num_messages),
      sender_(std::move(send)),
      receiver_(std::move(receive)) {
  tag_.role = transport::tensor_role::replica_values;
}

void synchronized_pass::add_up(tensor& values) {
  if (values.dtype() != dtype::f32 || values.device().type != device::kind::cpu || values.num_elements() == 0)
    throw std::logic_error("[replica_sums] expected f32 elements in CPU memory, got " + describe(values));
  auto own = message_of(values);
  send(own);
  std::vector<tensor> messages;
  std::vector<const std::byte*> inputs;
  for (int from = 0; from < num_replicas_; ++from) {
    messages.push_back(from == replica_ ? own : receiver_(tag_of(from, replica_)));
    check(messages.back(), from, own);
    inputs.push_back(std::as_const(messages.back()).bytes().data() + head_size * sizeof(float));
  }
  auto* output = values.bytes().data();
  tree_reduce(inputs, std::span(&output, 1), values.num_elements(), dtype::f32, reduce_op::sum);
  ++num_messages_;
  ++number_;
}

void synchronized_pass::end() {
  send(message_of({}));
  ++num_messages_;
}

void synchronized_pass::send(const tensor& message) {
  for (int to = 0; to < num_replicas_; ++to)
    if (to != replica_) sender_(tag_of(replica_, to), message);
}

tensor synchronized_pass::message_of(const tensor& values) const {
  auto message = tensor::empty({head_size + (values.defined() ? values.num_elements() : 0)});
  auto to = message.values<float>();
  head of{static_cast<std::int32_t>(op_.kind), op_.microbatch, number_};
  std::ranges::transform(of, to.begin(), [](std::int32_t each) { return std::bit_cast<float>(each); });
  if (values.defined()) std::ranges::copy(values.values<float>(), to.begin() + head_size);
  return message;
}

void synchronized_pass::check(const tensor& message, int from, const tensor& own) const {
  if (message.dtype() != dtype::f32 || message.num_elements() < head_size)
    throw std::logic_error("[replica_sums] expected the values of replica " + std::to_string(from) +
                           ", got " + describe(message));
  if (head_in(message) == head_in(own) && message.num_elements() == own.num_elements()) return;
  throw std::logic_error("[replica_sums] replica " + std::to_string(from) + " has come to " +
                         text_of(message, op_.stage) + ", and this one, replica " + std::to_string(replica_) +
                         ", to " + text_of(own, op_.stage) +
                         ": in each microbatch all replicas must run the same modules that share something "
                         "over replicas (SyncBatchNorm), in the same order");
}

transport::tensor_tag synchronized_pass::tag_of(int from, int to) const {
  auto made = tag_;
  made.port = num_messages_ * static_cast<std::uint32_t>(num_replicas_) + static_cast<std::uint32_t>(from);
  made.replica = static_cast<std::uint32_t>(to);
  return made;
}

}  // namespace troupe::execution
