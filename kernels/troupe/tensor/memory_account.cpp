#include "troupe/tensor/memory_account.hpp"

#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/tensor/detail/account_counters.hpp"
#include "troupe/tensor/detail/caching_allocator.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {
namespace {

constexpr std::uintptr_t use_bits = 7, gpu_bit = 8;
static_assert(num_memory_uses <= use_bits + 1 && alignof(account_counters) > (use_bits | gpu_bit));

account_counters* counters_of(std::uintptr_t word) {
  return reinterpret_cast<account_counters*>(word & ~(use_bits | gpu_bit));
}
device::kind place_of(std::uintptr_t word) {
  return (word & gpu_bit) != 0 ? device::kind::cuda : device::kind::cpu;
}
memory_use use_of(std::uintptr_t word) { return static_cast<memory_use>(word & use_bits); }
std::uintptr_t word_of(account_counters* counters, device::kind where, memory_use use) {
  return reinterpret_cast<std::uintptr_t>(counters) | (where == device::kind::cuda ? gpu_bit : 0) |
         static_cast<std::uintptr_t>(use);
}

/// The categories are the first uses.
memory_use use_for(memory_category category, memory_use otherwise) {
  static_assert(static_cast<int>(memory_use::activations) == static_cast<int>(memory_category::activations));
  return category == memory_category::other ? otherwise : static_cast<memory_use>(category);
}

void end_charge(std::uintptr_t word, std::size_t size_bytes) {
  if (auto* counters = counters_of(word)) counters->debit(size_bytes, place_of(word), use_of(word));
}

}  // namespace

std::string_view to_string(memory_use use) {
  constexpr std::string_view names[num_memory_uses] = {"working",     "parameters", "gradients", "optimizer",
                                                       "activations", "messages",   "snapshots"};
  return names[static_cast<std::size_t>(use)];
}

void account_counters::counter::add(std::size_t size_bytes, bool is_owner) {
  held.add(static_cast<std::int64_t>(size_bytes), is_owner);
  auto now = held.read();
  auto most = peak.load(std::memory_order_relaxed);
  while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

bool account_counters::is_owned_here() const {
  return owner.load(std::memory_order_relaxed) == &this_account();
}

void account_counters::charge(std::size_t size_bytes, device::kind where, memory_use use) {
  bool is_owner = is_owned_here();
  if (is_owner)
    blocks_of_owner_.store(blocks_of_owner_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  else
    references_.fetch_add(1, std::memory_order_relaxed);
  auto& there = on(where);
  there.of(use).add(size_bytes, is_owner);
  if (use != memory_use::snapshots) there.whole.add(size_bytes, is_owner);
}

void account_counters::debit(std::size_t size_bytes, device::kind where, memory_use use) {
  bool is_owner = is_owned_here();
  auto& there = on(where);
  there.of(use).subtract(size_bytes, is_owner);
  if (use != memory_use::snapshots) there.whole.subtract(size_bytes, is_owner);
  if (is_owner)
    blocks_of_owner_.store(blocks_of_owner_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  else if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete this;
}

/// Without a handle there is no scope, and so no owner.
void account_counters::remove_handle() {
  if (num_handles_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  auto change = blocks_of_owner_.load(std::memory_order_relaxed) - has_handles;
  if (references_.fetch_add(change, std::memory_order_acq_rel) + change == 0) delete this;
}

account_of_thread& this_account() {
  thread_local account_of_thread here;
  return here;
}

void require_within_limit(std::size_t size_bytes, device where, memory_category category) {
  auto here = this_account();
  if (!here.charged || use_for(category, here.use) == memory_use::snapshots) return;
  auto& there = here.charged->on(where.type);
  auto limit = there.limit.load(std::memory_order_relaxed);
  auto held = there.whole.held.read(), wanted = block_bytes(size_bytes);
  if (limit == 0 || held + wanted <= limit) return;
  std::string uses;
  for (std::size_t use = 0; use < num_memory_uses; ++use)
    if (auto bytes = there.uses[use].held.read(); bytes > 0 && use != static_cast<int>(memory_use::snapshots))
      uses += (uses.empty() ? " (" : ", ") + std::string(to_string(static_cast<memory_use>(use))) + " " +
              std::to_string(bytes);
  throw bad_input("expected at most " + std::to_string(limit) + " bytes in the memory of " +
                  to_string(where) + ", the limit, got a tensor of " + std::to_string(wanted) +
                  " bytes beside " + std::to_string(held) + " that are held" + uses +
                  (uses.empty() ? "" : ")"));
}

block_charge::block_charge(std::size_t size_bytes, device::kind where, memory_category category) {
  auto here = this_account();
  auto use = use_for(category, here.use);
  if (here.charged) here.charged->charge(block_bytes(size_bytes), where, use);
  charged_ = word_of(here.charged, where, use);
}

void block_charge::debit(std::size_t size_bytes) { end_charge(charged_, block_bytes(size_bytes)); }

void block_charge::set_category(std::size_t size_bytes, memory_category category) {
  std::atomic_ref charged(charged_);
  auto before = charged.load(std::memory_order_acquire);
  // Fails if another thread that shares the memory moves it meanwhile: then it is charged there.
  if (auto* counters = counters_of(before))
    change(before, word_of(counters, place_of(before), use_for(category, use_of(before))),
           block_bytes(size_bytes));
}

void block_charge::move_here(std::size_t size_bytes) {
  auto here = this_account();
  std::atomic_ref charged(charged_);
  auto before = charged.load(std::memory_order_acquire);
  auto word = word_of(here.charged, place_of(before), here.use);
  while (here.charged && before != word && !change(before, word, block_bytes(size_bytes)))
    before = charged.load(std::memory_order_acquire);
}

/// Charges first, since another thread may debit the block as soon as it has the new word.
bool block_charge::change(std::uintptr_t before, std::uintptr_t after, std::size_t block_size) {
  auto *from = counters_of(before), *to = counters_of(after);
  auto swap = [&] {
    return std::atomic_ref(charged_).compare_exchange_strong(before, after, std::memory_order_acq_rel);
  };
  if (from == to) {  // the whole stays as it is
    auto use = use_of(after), ended = use_of(before);
    if (use == ended || use == memory_use::snapshots || ended == memory_use::snapshots) return true;
    bool is_owner = to->is_owned_here();
    auto& there = to->on(place_of(after));
    there.of(use).add(block_size, is_owner);
    bool is_changed = swap();
    there.of(is_changed ? ended : use).subtract(block_size, is_owner);
    return is_changed;
  }
  to->charge(block_size, place_of(after), use_of(after));
  auto ended = before;
  bool is_changed = swap();
  end_charge(is_changed ? ended : after, block_size);
  return is_changed;
}

memory_account memory_account::make() {
  memory_account made;
  made.counters_ = new account_counters();
  made.counters_->add_handle();
  return made;
}

memory_account::memory_account(const memory_account& other) : counters_(other.counters_) {
  if (counters_) counters_->add_handle();
}

memory_account::~memory_account() {
  if (counters_) counters_->remove_handle();
}

void memory_account::set_limit(device::kind where, std::size_t bytes) const {
  if (counters_) counters_->on(where).limit = bytes;
}

void memory_account::reset_peak() const {
  if (!counters_) return;
  auto reset = [](account_counters::counter& one) { one.peak = one.held.read(); };
  for (auto* there : {&counters_->on_cpu, &counters_->on_gpus}) {
    reset(there->whole);
    for (auto& each : there->uses) reset(each);
  }
}

account_statistics memory_account::statistics(device::kind where) const {
  account_statistics seen;
  if (!counters_) return seen;
  const auto& there = counters_->on(where);
  seen.current = there.whole.held.read();
  seen.peak = there.whole.peak.load(std::memory_order_relaxed);
  for (std::size_t use = 0; use < num_memory_uses; ++use) {
    seen.by_use[use] = there.uses[use].held.read();
    seen.peak_by_use[use] = there.uses[use].peak.load(std::memory_order_relaxed);
  }
  return seen;
}

account_scope::account_scope(const memory_account& account, memory_use use)
    : outer_(this_account().charged), outer_use_(this_account().use) {
  auto& here = this_account();
  here = {account.counters_, use};
  const void* nobody = nullptr;
  if (account.counters_ &&
      account.counters_->owner.compare_exchange_strong(nobody, &here, std::memory_order_acquire))
    owned_ = account.counters_;
}

account_scope::~account_scope() {
  if (owned_) owned_->owner.store(nullptr, std::memory_order_release);
  this_account() = {outer_, outer_use_};
}

void charge_here(const tensor& value, memory_use use) {
  auto& here = this_account();
  auto outer = std::exchange(here.use, use);
  value.set_memory_category(memory_category::other);
  here.use = outer;
}

}  // namespace troupe
