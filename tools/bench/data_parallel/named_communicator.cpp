#include "bench/data_parallel/named_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::bench {
namespace {

/// How long a thread polls before it sleeps: that of a device.
constexpr auto spin = std::chrono::microseconds(50);

}  // namespace

void named_communicator::connect(const std::map<int, transport::process_address>& members) {
  num_members_ = static_cast<int>(members.size());
  transport_->connect(generation, members);
}

void named_communicator::all_reduce(const call_name& name, const tensor& x) {
  for (const auto& [begun, call] : calls_)
    if (begun.bucket == name.bucket)
      throw std::logic_error("[named_communicator] expected one call of bucket " +
                             std::to_string(name.bucket) +
                             " at a time, whose sums share memory, got another before the first was taken");
  if (x.dtype() == dtype::i32)
    throw std::logic_error("[named_communicator] expected f32, bf16 or f16, got " + describe(x));
  transport::tensor_tag tag{.generation = generation, .step = name.action};
  tag.microbatch = static_cast<std::uint32_t>(name.bucket);
  execution::replica_messages messages(transport_->rank(), num_members_, tag, arrived_,
                                       [this](const transport::tensor_tag& to, tensor value) {
                                         auto rank = static_cast<int>(to.replica);
                                         if (rank == transport_->rank())
                                           return arrived_.put(to, std::move(value));
                                         transport_->send_tensor(rank, to, value);
                                       });
  auto begun = std::make_unique<execution::direct_exchange>(
      std::move(messages), 1, [this, bucket = name.bucket](int, std::int64_t count, dtype type) {
        return sum_memory_.of(0, bucket, count, type);
      });
  begun->give(0, x);
  calls_[name] = std::move(begun);
}

void named_communicator::advance() {
  receive(false);
  arrivals_.move_to(arrived_);
  for (auto& [name, each] : calls_) each->add_up();
}

/// After advance() a call can go on only where all its sums are here.
void named_communicator::wait() {
  advance();
  if (std::ranges::any_of(calls_, [](const auto& each) { return each.second->can_go_on(); })) return;
  receive(true);
  advance();
}

void named_communicator::take_done(
    const std::function<void(const call_name&, const std::vector<tensor>& parts)>& take) {
  for (auto next = calls_.begin(); next != calls_.end();) {
    auto& [name, call] = *next;
    call->go_on([&, bucket = name](int, const std::vector<tensor>& parts) { take(bucket, parts); });
    next = call->is_done() ? calls_.erase(next) : std::next(next);
  }
}

void named_communicator::receive(bool may_sleep) {
  may_sleep_ = may_sleep;
  polls_ = 1;
  transport_->receive_for(*this, spin);
}

/// Of a thread that waits: until something has come. Else one round of polling.
bool named_communicator::waits() const {
  if (arrivals_.num_held() > 0) return false;
  return may_sleep_ || polls_-- > 0;
}

bool named_communicator::take(int, const transport::tensor_tag& tag, tensor& value) {
  arrivals_.put(tag, std::move(value));
  return true;
}

/// On the transport's thread, which polls while this one has not done so for a while.
void named_communicator::on_tensor(int, const transport::tensor_tag& tag, tensor value) {
  arrivals_.put(tag, std::move(value));
}

}  // namespace troupe::bench
