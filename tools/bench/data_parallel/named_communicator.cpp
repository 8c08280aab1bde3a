#include "bench/data_parallel/named_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::bench {
namespace {

/// How long a thread polls before it sleeps: that of a device.
constexpr auto spin = std::chrono::microseconds(50);

}  // namespace

void named_communicator::connect(const std::map<int, transport::process_address>& members) {
  members_ = members;
  transport_->connect(generation, members);
}

named_communicator::call& named_communicator::call_of(const call_name& name) {
  auto& found = calls_[name];
  found.inputs.resize(members_.size());
  found.sums.resize(members_.size());
  return found;
}

named_communicator::element_range named_communicator::part_of(const tensor& x, int member) const {
  auto begin = x.num_elements() * member / size();
  return {begin, x.num_elements() * (member + 1) / size() - begin};
}

void named_communicator::all_reduce(const call_name& name, const tensor& x) {
  if (x.shape().rank() != 1 || !is_floating(x.dtype()) || x.num_elements() == 0)
    throw std::logic_error("[named_communicator] expected f32, bf16 or f16 [n] with n > 0, got " +
                           describe(x));
  for (const auto& [begun, call] : calls_)
    if (begun.bucket == name.bucket && call.x.defined())
      throw std::logic_error("[named_communicator] expected one call of bucket " +
                             std::to_string(name.bucket) +
                             " at a time, whose sums share memory, got another before the first was taken");
  auto& begun = call_of(name);
  begun.x = x;
  for (int to = 0; to < size(); ++to)
    if (auto part = part_of(x, to); part.count > 0)
      send(transport::tensor_role::replica_gradients, name, to, x.rows(part.first, part.count));
}

void named_communicator::advance() {
  receive(false);
  add_arrivals();
  for (auto& [name, each] : calls_)
    if (each.x.defined() && !each.has_sums && has_inputs(each)) add_up(name, each);
}

void named_communicator::wait() {
  advance();
  if (std::ranges::any_of(calls_, [this](const auto& each) { return is_done(each.second); })) return;
  receive(true);
  advance();
}

void named_communicator::take_done(
    const std::function<void(const call_name&, const std::vector<tensor>& parts)>& take) {
  for (auto next = calls_.begin(); next != calls_.end();) {
    if (!is_done(next->second)) {
      ++next;
      continue;
    }
    auto done = calls_.extract(next++);
    take(done.key(), done.mapped().sums);
  }
}

/// Of the part that this member adds up, if it has elements.
bool named_communicator::has_inputs(const call& entry) const {
  return part_of(entry.x, transport_->rank()).count > 0 &&
         std::ranges::all_of(entry.inputs, &tensor::defined);
}

bool named_communicator::is_done(const call& entry) const {
  if (!entry.x.defined()) return false;
  for (int member = 0; member < size(); ++member)
    if (part_of(entry.x, member).count > 0 && !entry.sums[static_cast<std::size_t>(member)].defined())
      return false;
  return true;
}

void named_communicator::add_up(const call_name& name, call& entry) {
  auto part = part_of(entry.x, transport_->rank());
  std::vector<const std::byte*> inputs;
  for (const auto& each : entry.inputs) {
    if (each.num_elements() != part.count || each.dtype() != entry.x.dtype())
      throw std::logic_error("[named_communicator] expected a part of " + describe(entry.x) +
                             " of all members, got " + describe(each));
    inputs.push_back(std::as_const(each).bytes().data());
  }
  auto sum = sum_memory_.of(0, name.bucket, part.count, entry.x.dtype());
  auto* output = sum.bytes().data();
  if (entry.x.dtype() == dtype::f32)
    reduce_node(inputs, output, part.count, dtype::f32, reduce_op::sum);
  else
    tree_reduce(inputs, std::span(&output, 1), part.count, entry.x.dtype(), reduce_op::sum);
  entry.inputs.clear();
  entry.has_sums = true;
  for (int to = 0; to < size(); ++to) send(transport::tensor_role::summed_gradients, name, to, sum);
}

void named_communicator::send(transport::tensor_role role, const call_name& name, int to,
                              const tensor& value) {
  auto own = transport_->rank();
  transport::tensor_tag tag{.generation = generation, .step = name.action, .role = role};
  tag.port = static_cast<std::uint32_t>(name.bucket * size() + own);
  tag.replica = static_cast<std::uint32_t>(to);
  if (to != own) return transport_->send_tensor(to, tag, value);
  auto& here = call_of(name);
  (role == transport::tensor_role::replica_gradients ? here.inputs
                                                     : here.sums)[static_cast<std::size_t>(own)] = value;
}

void named_communicator::add_arrivals() {
  std::vector<arrival> arrived;
  {
    std::lock_guard lock(arriving_);
    arrived.swap(arrived_);
  }
  for (auto& [tag, value] : arrived) {
    auto port = static_cast<int>(tag.port);
    auto& to = call_of({tag.step, port / size()});
    auto from = static_cast<std::size_t>(port % size());
    (tag.role == transport::tensor_role::replica_gradients ? to.inputs : to.sums)[from] = std::move(value);
  }
}

void named_communicator::receive(bool may_sleep) {
  may_sleep_ = may_sleep;
  polls_ = 1;
  transport_->receive_for(*this, spin);
}

/// Of a thread that waits: until something has come. Else one round of polling.
bool named_communicator::waits() const {
  std::lock_guard lock(arriving_);
  if (!arrived_.empty()) return false;
  return may_sleep_ || polls_-- > 0;
}

bool named_communicator::take(int from_rank, const transport::tensor_tag& tag, tensor& value) {
  static_cast<void>(from_rank);
  std::lock_guard lock(arriving_);
  arrived_.push_back({tag, std::move(value)});
  return true;
}

/// On the transport's thread, which polls while this one has not done so for a while.
void named_communicator::on_tensor(int from_rank, const transport::tensor_tag& tag, tensor value) {
  take(from_rank, tag, value);
  transport_->wake_receiver();
}

}  // namespace troupe::bench
