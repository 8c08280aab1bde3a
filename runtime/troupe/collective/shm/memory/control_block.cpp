#include "troupe/collective/shm/memory/control_block.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "troupe/collective/calls/backend.hpp"
#include "troupe/posix/futex.hpp"
#include "troupe/posix/wake_event.hpp"

namespace troupe::collective::shm {
namespace {

constexpr std::size_t max_cause_bytes = 4000;
constexpr std::size_t max_ranks = 32;
constexpr std::size_t line_bytes = 64;
constexpr std::chrono::microseconds longest_unnotified_sleep(1000);

/// How a member sleeps.
enum : std::uint32_t { awake, on_futex, on_engine_event };

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// Ordering of sleeping and notifying (a store-buffer litmus test). The notifier stores a slot and then loads
// `is_sleeping`; the sleeper stores `is_sleeping` and then loads the slots. At least one of them must see the
// other's store, so each needs its store ordered before its load. A fence in the notifier would wait until
// the slot has left its core, which is most of the cost of a small call. So where the system supports it, the
// sleeper calls membarrier(2), which executes a fence on all cores that run a member. The notifier's store
// comes before that fence, and the sleeper sees it; or the notifier's load comes after it, and sees the
// sleeper.

/// A full fence: earlier stores of this thread are visible to others before its later loads.
void order_stores_before_loads([[maybe_unused]] std::atomic<std::uint32_t>& own) {
#if defined(__SANITIZE_THREAD__)
  own.fetch_add(0);  // the thread sanitizer does not support fences
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

struct control_block::header {
  enum : std::uint32_t { good, being_aborted, aborted };
  alignas(line_bytes) std::atomic<std::uint32_t> state;
  collective_failure kind;
  std::int32_t member;
  std::uint64_t sequence;
  std::uint32_t num_ranks;
  std::int32_t ranks[max_ranks];
  char cause[max_cause_bytes];
};

struct control_block::member_block {
  alignas(line_bytes) std::atomic<std::uint64_t> phases;
  alignas(line_bytes) std::atomic<std::uint32_t> notifications;
  std::atomic<std::uint32_t> is_sleeping;
  alignas(line_bytes) std::atomic<std::uint64_t> entered;
  std::atomic<std::uint64_t> left;
  std::atomic<std::uint32_t> is_accessing;
  call_signature signature;
};

std::size_t control_block::size_bytes(int num_members) {
  auto n = static_cast<std::size_t>(num_members);
  constexpr auto slots = 2 + max_sends_in_flight;
  return sizeof(header) + n * sizeof(member_block) +
         n * n * (slots * (sizeof(call_slot) + max_inline_bytes) + line_bytes);
}

control_block::control_block(std::byte* memory, int num_members, int member, std::vector<int> engine_events)
    : memory_(memory),
      num_members_(num_members),
      member_(member),
      engine_events_(std::move(engine_events)),
      sleeper_fences_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)),
      known_received_(static_cast<std::size_t>(num_members)) {
  auto n = static_cast<std::size_t>(num_members);
  slots_ = reinterpret_cast<call_slot*>(memory + sizeof(header) + n * sizeof(member_block));
  send_slots_ = slots_ + n * n * 2;
  received_counts_ = reinterpret_cast<std::byte*>(send_slots_ + n * n * max_sends_in_flight);
  inline_bytes_ = received_counts_ + n * n * line_bytes;
}

control_block::header& control_block::head() const { return *reinterpret_cast<header*>(memory_); }
control_block::member_block& control_block::block_of(int member) const {
  return reinterpret_cast<member_block*>(memory_ + sizeof(header))[member];
}
std::size_t control_block::pair(int to, int from) const {
  return static_cast<std::size_t>(to) * static_cast<std::size_t>(num_members_) +
         static_cast<std::size_t>(from);
}

call_slot& control_block::slot(int to, int from, std::uint64_t sequence) const {
  return slots_[pair(to, from) * 2 + sequence % 2];
}
std::byte* control_block::inline_bytes(int to, int from, std::uint64_t sequence) const {
  return inline_bytes_ + (pair(to, from) * (2 + max_sends_in_flight) + sequence % 2) * max_inline_bytes;
}
call_slot& control_block::send_slot(int to, int from, std::uint64_t sequence) const {
  return send_slots_[pair(to, from) * max_sends_in_flight + sequence % max_sends_in_flight];
}
std::byte* control_block::sent_inline_bytes(int to, int from, std::uint64_t sequence) const {
  return inline_bytes_ +
         (pair(to, from) * (2 + max_sends_in_flight) + 2 + sequence % max_sends_in_flight) * max_inline_bytes;
}
std::atomic<std::uint64_t>& control_block::received_count(int to, int from) const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(received_counts_ + pair(to, from) * line_bytes);
}

void control_block::acknowledge_send(int from, std::uint64_t sequence) {
  received_count(member_, from).store(sequence, std::memory_order_release);
  notify();
}

bool control_block::is_received(int to, std::uint64_t sequence) {
  auto& known = known_received_[static_cast<std::size_t>(to)];
  if (known < sequence) known = received_count(to, member_).load(std::memory_order_acquire);
  return known >= sequence;
}

void control_block::refresh_received(int to, std::uint64_t sequence) {
  is_received(to, sequence > max_sends_in_flight / 2 ? sequence - max_sends_in_flight / 2 : 0);
}

void control_block::finish_phase() {
  block_of(member_).phases.store(++phase_, std::memory_order_release);
  notify();
}

bool control_block::has_finished_phase(int member) const {
  return block_of(member).phases.load(std::memory_order_acquire) >= phase_;
}

bool control_block::all_finished_phase() const {
  for (int i = 0; i < num_members_; ++i)
    if (!has_finished_phase(i)) return false;
  return true;
}

void control_block::begin_access() { block_of(member_).is_accessing.store(1); }
void control_block::end_access() { block_of(member_).is_accessing.store(0); }
bool control_block::is_accessing(int member) const { return block_of(member).is_accessing.load() != 0; }

void control_block::enter(std::uint64_t sequence, const call_signature& signature) {
  auto& own = block_of(member_);
  own.signature = signature;
  own.entered.store(sequence, std::memory_order_release);
}

void control_block::leave(std::uint64_t sequence) {
  block_of(member_).left.store(sequence, std::memory_order_release);
}

control_block::last_call control_block::last_of(int member) const {
  const auto& theirs = block_of(member);
  last_call last;
  last.entered = theirs.entered.load(std::memory_order_acquire);
  last.left = theirs.left.load(std::memory_order_acquire);
  last.signature = theirs.signature;
  return last;
}

void control_block::notify() {
  if (sleeper_fences_)
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    order_stores_before_loads(block_of(member_).is_sleeping);
  for (int i = 0; i < num_members_; ++i)
    if (i != member_ && block_of(i).is_sleeping.load(std::memory_order_relaxed) != awake) notify(i);
}

void control_block::notify(int member) {
  auto& its = block_of(member);
  if (its.is_sleeping.load() == on_engine_event)
    return posix::wake_event::set(engine_events_[static_cast<std::size_t>(member)]);
  its.notifications.fetch_add(1);
  posix::futex_wake(its.notifications, 1);
}

void control_block::announce_sleep(int engine_event) {
  auto& own = block_of(member_);
  seen_notifications_ = own.notifications.load();
  own.is_sleeping.store(engine_event == no_event ? on_futex : on_engine_event);
  order_stores_before_loads(own.is_sleeping);
  may_miss_notifications_ = !membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void control_block::cancel_sleep() { block_of(member_).is_sleeping.store(awake); }

void control_block::sleep(std::chrono::microseconds at_most) {
  posix::futex_wait(block_of(member_).notifications, seen_notifications_, bounded(at_most));
}

std::chrono::microseconds control_block::bounded(std::chrono::microseconds sleep) const {
  return may_miss_notifications_ ? std::min(sleep, longest_unnotified_sleep) : sleep;
}

void control_block::abort(const collective_error& why) {
  auto expected = std::uint32_t{header::good};
  if (!head().state.compare_exchange_strong(expected, header::being_aborted)) return;
  head().kind = why.kind();
  head().member = member_;
  head().sequence = why.sequence();
  head().num_ranks = static_cast<std::uint32_t>(std::min(why.ranks().size(), max_ranks));
  std::transform(why.ranks().begin(), why.ranks().begin() + head().num_ranks, head().ranks,
                 [](world_rank each) { return each.value(); });
  std::string_view cause = why.what();
  cause = cause.substr(0, max_cause_bytes - 1);
  *std::copy(cause.begin(), cause.end(), head().cause) = 0;
  head().state.store(header::aborted);
  // One that announces its sleep from now on looks for this state after that.
  for (int i = 0; i < num_members_; ++i)
    if (block_of(i).is_sleeping.load() != awake) notify(i);
}

/// Not before the cause has been written. If the aborting process is stopped while it writes, the others find
/// out by their time-outs.
bool control_block::is_aborted() const { return head().state.load() == header::aborted; }

control_block::abort_info control_block::aborted_by() const {
  const auto& info = head();
  return {info.member, info.kind, info.sequence, {info.ranks, info.ranks + info.num_ranks}, info.cause};
}

}  // namespace troupe::collective::shm
