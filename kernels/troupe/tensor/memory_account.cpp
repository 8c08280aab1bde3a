#include "troupe/tensor/memory_account.hpp"

#include <utility>

#include "troupe/tensor/detail/account_counters.hpp"
#include "troupe/tensor/detail/caching_allocator.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {
namespace {

constexpr std::uintptr_t use_bits = 7;
static_assert(num_memory_uses <= use_bits + 1 && alignof(account_counters) > use_bits);

account_counters* counters_of(std::uintptr_t word) {
  return reinterpret_cast<account_counters*>(word & ~use_bits);
}
memory_use use_of(std::uintptr_t word) { return static_cast<memory_use>(word & use_bits); }
std::uintptr_t word_of(account_counters* counters, memory_use use) {
  return reinterpret_cast<std::uintptr_t>(counters) | static_cast<std::uintptr_t>(use);
}

/// The categories are the first uses.
memory_use use_for(memory_category category, memory_use otherwise) {
  static_assert(static_cast<int>(memory_use::activations) == static_cast<int>(memory_category::activations));
  return category == memory_category::other ? otherwise : static_cast<memory_use>(category);
}

void end_charge(std::uintptr_t word, std::size_t size_bytes) {
  if (auto* counters = counters_of(word)) counters->debit(size_bytes, use_of(word));
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

void account_counters::charge(std::size_t size_bytes, memory_use use) {
  bool is_owner = is_owned_here();
  if (is_owner)
    blocks_of_owner_.store(blocks_of_owner_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  else
    references_.fetch_add(1, std::memory_order_relaxed);
  of(use).add(size_bytes, is_owner);
  if (use != memory_use::snapshots) whole.add(size_bytes, is_owner);
}

void account_counters::debit(std::size_t size_bytes, memory_use use) {
  bool is_owner = is_owned_here();
  of(use).subtract(size_bytes, is_owner);
  if (use != memory_use::snapshots) whole.subtract(size_bytes, is_owner);
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

block_charge::block_charge(std::size_t size_bytes, memory_category category) {
  auto here = this_account();
  if (!here.charged) return;
  auto use = use_for(category, here.use);
  here.charged->charge(block_bytes(size_bytes), use);
  charged_ = word_of(here.charged, use);
}

void block_charge::debit(std::size_t size_bytes) { end_charge(charged_, block_bytes(size_bytes)); }

void block_charge::set_category(std::size_t size_bytes, memory_category category) {
  std::atomic_ref charged(charged_);
  auto before = charged.load(std::memory_order_acquire);
  // Fails if another thread that shares the memory moves it meanwhile: then it is charged there.
  if (auto* counters = counters_of(before))
    change(before, word_of(counters, use_for(category, use_of(before))), block_bytes(size_bytes));
}

void block_charge::move_here(std::size_t size_bytes) {
  auto here = this_account();
  auto word = word_of(here.charged, here.use);
  std::atomic_ref charged(charged_);
  auto before = charged.load(std::memory_order_acquire);
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
    to->of(use).add(block_size, is_owner);
    bool is_changed = swap();
    to->of(is_changed ? ended : use).subtract(block_size, is_owner);
    return is_changed;
  }
  to->charge(block_size, use_of(after));
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

void memory_account::reset_peak() const {
  if (!counters_) return;
  auto reset = [](account_counters::counter& one) { one.peak = one.held.read(); };
  reset(counters_->whole);
  for (auto& each : counters_->uses) reset(each);
}

account_statistics memory_account::statistics() const {
  account_statistics seen;
  if (!counters_) return seen;
  seen.current = counters_->whole.held.read();
  seen.peak = counters_->whole.peak.load(std::memory_order_relaxed);
  for (std::size_t use = 0; use < num_memory_uses; ++use) {
    seen.by_use[use] = counters_->uses[use].held.read();
    seen.peak_by_use[use] = counters_->uses[use].peak.load(std::memory_order_relaxed);
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
