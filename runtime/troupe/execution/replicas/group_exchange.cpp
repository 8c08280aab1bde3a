#include "troupe/execution/replicas/group_exchange.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "troupe/ops/convert.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::execution {
namespace {

using transport::tensor_role;

/// A job may be paused within a step: what ends its calls is the end of its generation.
constexpr call_options no_timeout{.timeout = longest_timeout};

}  // namespace

group_exchange::group_exchange(replica_messages messages, int num_buckets, replica_group group,
                               sum_memory memory, failure_callback on_failure)
    : replica_exchange(std::move(messages), num_buckets),
      group_(std::move(group)),
      local_(group_.replicas_with(this->messages().replica())),
      memory_(std::move(memory)),
      on_failure_(std::move(on_failure)),
      buckets_(static_cast<std::size_t>(num_buckets)) {
  if (group_.orders->contains(buckets_.size())) return;
  order_.resize(buckets_.size());
  std::iota(order_.begin(), order_.end(), 0);
}

void group_exchange::begin(int bucket, const tensor& gradients) {
  state_of(bucket).own = gradients;
  given_.push_back(bucket);
  add_up();
}

bool group_exchange::can_go_on() const {
  if (has_failed_) return false;
  return can_begin() || (num_ended_ < next_ && state_of(order_[num_ended_]).call.is_done());
}

void group_exchange::add_up() {
  while (!has_failed_ && can_begin()) begin_next();
}

void group_exchange::go_on(const taker& take) {
  for (add_up(); num_ended_ < next_ && !has_failed_; add_up()) {
    auto bucket = order_[num_ended_];
    auto& ended = state_of(bucket);
    if (!ended.call.is_done() || !has_ended_well(ended.call)) return;
    auto results = results_of(ended);
    ended = {};
    ++num_ended_;
    send_to_followers(bucket, results);
    note_taken();
    take(bucket, results);
  }
}

/// From all replicas of this process.
bool group_exchange::is_here(int bucket) const {
  return state_of(bucket).own.defined() && std::all_of(local_.begin() + 1, local_.end(), [&](int from) {
           return messages().has(tensor_role::replica_gradients, bucket, from);
         });
}

bool group_exchange::can_begin() const {
  if (next_ == buckets_.size()) return false;
  if (order_.empty()) return group_.orders->at(buckets_.size()).sent.is_done();
  const auto& next = state_of(order_[next_]);
  return next.lengths.defined() ? next.call.is_done() : is_here(order_[next_]);
}

void group_exchange::begin_next() {
  if (order_.empty()) return learn_order();
  auto bucket = order_[next_];
  auto& next = state_of(bucket);
  if (!next.lengths.defined()) {
    auto inputs = take_inputs(bucket);
    next.is_message() ? begin_lengths(next, inputs) : begin_sum(bucket, inputs);
  } else if (has_ended_well(next.call)) {
    begin_gather(next);
  }
}

void group_exchange::learn_order() {
  auto& sent = group_.orders->at(buckets_.size());
  if (!has_ended_well(sent.sent)) return;
  auto known = sent.buckets.to({});
  auto values = std::as_const(known).values<std::int32_t>();
  order_.assign(values.begin(), values.end());
}

/// The last call of the next bucket has begun. All buckets are given here when that of the last one has.
void group_exchange::end_turn() {
  if (++next_ < buckets_.size() || group_.orders->contains(buckets_.size())) return;
  auto order = tensor::from(given_, {static_cast<std::int64_t>(given_.size())}).to(calls().device());
  group_.orders->emplace(buckets_.size(),
                         replica_group::call_order{order, calls().broadcast(order, 0, no_timeout)});
}

/// Of all replicas of this process.
std::vector<tensor> group_exchange::take_inputs(int bucket) const {
  const auto& own = state_of(bucket).own;
  std::vector<tensor> inputs{own};
  for (auto from = local_.begin() + 1; from != local_.end(); ++from) {
    const auto& each = inputs.emplace_back(messages().take(tensor_role::replica_gradients, bucket, *from));
    bool is_alike = own.dtype() == dtype::i32 || each.num_elements() == own.num_elements();
    if (each.dtype() != own.dtype() || !is_alike)
      throw std::logic_error(
          "[stage_program::bucket] expected equally many of one dtype in all replicas, got " +
          describe(each) + " of replica " + std::to_string(*from) + " where replica " +
          std::to_string(messages().replica()) + " has " + describe(own));
  }
  return inputs;
}

/// f32 until the last rounding, where some process adds up several replicas'.
dtype group_exchange::reduced_type(dtype given) const {
  return messages().num_replicas() > calls().size() ? dtype::f32 : given;
}

void group_exchange::begin_sum(int bucket, const std::vector<tensor>& inputs) {
  auto& begun = state_of(bucket);
  auto count = begun.own.num_elements();
  auto type = reduced_type(begun.own.dtype());
  begun.sums = memory_(bucket, count, type);
  auto input = begun.own;
  if (inputs.size() > 1) {
    std::vector<const std::byte*> elements;
    for (const auto& each : inputs) elements.push_back(each.bytes().data());
    reduce_node(elements, begun.sums.bytes().data(), count, begun.own.dtype(), reduce_op::sum);
    input = begun.sums;
  } else if (input.dtype() != type) {
    widen_leaf(std::as_const(input).bytes().data(), begun.sums.bytes().data(), count, input.dtype());
    input = begun.sums;
  }
  input = input.to(calls().device());
  begun.result = begun.sums.device() == calls().device() ? begun.sums : input;
  begun.call = calls().all_reduce(input, begun.result, reduce_op::sum, no_timeout);
  end_turn();
}

void group_exchange::begin_lengths(bucket_state& begun, const std::vector<tensor>& inputs) {
  auto lengths = tensor::zeros({messages().num_replicas()}, dtype::i64);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    lengths.values<std::int64_t>()[static_cast<std::size_t>(local_[i])] = inputs[i].num_elements();
  own_messages_ = inputs;
  begun.lengths = lengths.to(calls().device());
  begun.call = calls().all_reduce(begun.lengths, reduce_op::sum, no_timeout);
}

void group_exchange::begin_gather(bucket_state& begun) {
  begun.lengths = begun.lengths.to({});
  auto lengths = std::as_const(begun.lengths).values<std::int64_t>();
  std::vector<std::int64_t> parts(static_cast<std::size_t>(calls().size()));
  for (std::size_t replica = 0; replica < lengths.size(); ++replica)
    parts[static_cast<std::size_t>(group_.member_of_replica[replica])] += lengths[replica];
  auto total = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  begun.result = tensor::empty({total}, dtype::i32, calls().device());
  begun.call =
      calls().all_gather(concat(own_messages_, 0).to(calls().device()), begun.result, parts, no_timeout);
  own_messages_.clear();
  end_turn();
}

/// Of a call that has ended. That members make different calls is no failure of the group but of the program,
/// and thrown. Libraries throw errors of their own too.
bool group_exchange::has_ended_well(work& call) {
  try {
    call.wait();
    return true;
  } catch (const collective_error& failure) {
    has_failed_ = true;
    if (failure.kind() == collective_failure::mismatch) throw;
    on_failure_(failure);
  } catch (const std::exception& failure) {
    has_failed_ = true;
    on_failure_(failure);
  }
  return false;
}

/// Of a message one tensor for each replica, in order; else one of all sums.
std::vector<tensor> group_exchange::results_of(bucket_state& ended) const {
  if (!ended.is_message()) {
    if (ended.result.device() != ended.sums.device()) ended.sums.copy_from(ended.result);
    return {cast(ended.sums, ended.own.dtype())};
  }
  auto all = ended.result.to({});
  auto lengths = std::as_const(ended.lengths).values<std::int64_t>();
  std::vector<tensor> messages(lengths.size());
  std::int64_t first = 0;
  for (int member = 0; member < calls().size(); ++member)
    for (int replica : group_.replicas_of(member)) {
      auto count = lengths[static_cast<std::size_t>(replica)];
      messages[static_cast<std::size_t>(replica)] = all.rows(first, count);
      first += count;
    }
  return messages;
}

void group_exchange::send_to_followers(int bucket, const std::vector<tensor>& results) const {
  for (auto to = local_.begin() + 1; to != local_.end(); ++to)
    for (std::size_t i = 0; i < results.size(); ++i)
      messages().send(tensor_role::summed_gradients, bucket, static_cast<int>(i), *to, results[i]);
}

}  // namespace troupe::execution
