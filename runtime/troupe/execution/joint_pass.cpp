#include "troupe/execution/joint_pass.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "troupe/execution/replicas/replica_messages.hpp"
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

joint_pass::joint_pass(const action& op, int index, int num_lanes, const transport::tensor_tag& tag,
                       std::uint32_t& num_messages, sender send, receiver receive)
    : op_(op),
      index_(index),
      num_lanes_(num_lanes),
      tag_(tag),
      num_messages_(num_messages),
      sender_(std::move(send)),
      receiver_(std::move(receive)) {
  tag_.role = transport::tensor_role::replica_values;
}

void joint_pass::all_reduce(tensor& values) {
  if (values.dtype() != dtype::f32 || values.device().type != device::kind::cpu || values.num_elements() == 0)
    throw std::logic_error("[lane_sums] expected f32 elements in CPU memory, got " + describe(values));
  auto own = message_of(values);
  send(own);
  std::vector<tensor> messages;
  std::vector<const std::byte*> inputs;
  for (int from = 0; from < num_lanes_; ++from) {
    messages.push_back(from == index_ ? own : receiver_(tag_of(from, index_)));
    check(messages.back(), from, own);
    inputs.push_back(std::as_const(messages.back()).bytes().data() + head_size * sizeof(float));
  }
  auto* output = values.bytes().data();
  tree_reduce(inputs, std::span(&output, 1), values.num_elements(), dtype::f32, reduce_op::sum);
  ++num_messages_;
  ++number_;
}

void joint_pass::end() {
  send(message_of({}));
  ++num_messages_;
}

void joint_pass::send(const tensor& message) {
  for (int to = 0; to < num_lanes_; ++to)
    if (to != index_) sender_(tag_of(index_, to), message);
}

tensor joint_pass::message_of(const tensor& values) const {
  auto message = tensor::empty({head_size + (values.defined() ? values.num_elements() : 0)});
  auto to = message.values<float>();
  head of{static_cast<std::int32_t>(op_.kind), op_.microbatch, number_};
  std::ranges::transform(of, to.begin(), [](std::int32_t each) { return std::bit_cast<float>(each); });
  if (values.defined()) std::ranges::copy(values.values<float>(), to.begin() + head_size);
  return message;
}

void joint_pass::check(const tensor& message, int from, const tensor& own) const {
  bool is_of_replicas = tag_.axis == layout::mesh_axis::dp;
  std::string lane = is_of_replicas ? "replica " : "slice ";
  if (message.dtype() != dtype::f32 || message.num_elements() < head_size)
    throw std::logic_error("[lane_sums] expected the values of " + lane + std::to_string(from) + ", got " +
                           describe(message));
  if (head_in(message) == head_in(own) && message.num_elements() == own.num_elements()) return;
  throw std::logic_error("[lane_sums] " + lane + std::to_string(from) + " has come to " +
                         text_of(message, op_.stage) + ", and this one, " + lane + std::to_string(index_) +
                         ", to " + text_of(own, op_.stage) + ": in each microbatch all " +
                         (is_of_replicas ? "replicas must run the same modules that share something over "
                                           "replicas (SyncBatchNorm), in the same order"
                                         : "slices must run the same modules that add up over slices, in the "
                                           "same order"));
}

transport::tensor_tag joint_pass::tag_of(int from, int to) const {
  auto made = tag_;
  made.port = num_messages_ * static_cast<std::uint32_t>(num_lanes_) + static_cast<std::uint32_t>(from);
  send_along_axis(made, to);
  return made;
}

}  // namespace troupe::execution
