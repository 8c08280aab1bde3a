#include "troupe/collective/direct/board.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace troupe::direct {
namespace {

constexpr std::size_t most_cause_bytes = 4000;
constexpr std::size_t most_ranks = 32;
constexpr std::size_t line_bytes = 64;
constexpr std::chrono::microseconds longest_deaf_sleep(1000);

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* time) {
  return ::syscall(SYS_futex, &word, operation, value, time, nullptr, 0);
}

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// Who rings stores a note and then loads whether somebody sleeps; who goes to sleep stores that and then
// loads the notes. One of both must see what the other stored, so each needs its store before its load in the
// order that all agree on. A fence on the ringing side would wait until the notes have left this core, which
// is most of what a small call costs. So where the system can, the sleeper makes all cores that run a member
// have such a fence at that moment: a ringer's store was before it and is seen, or its load comes after it
// and sees the sleeper.

/// What was stored before is seen by others, or what they stored before is seen here from now on.
void order_stores_before_loads([[maybe_unused]] std::atomic<std::uint32_t>& own) {
#if defined(__SANITIZE_THREAD__)
  own.fetch_add(0);  // the sanitizer knows no fences; this is one where it runs
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

struct board::header {
  enum : std::uint32_t { good, being_aborted, aborted };
  alignas(line_bytes) std::atomic<std::uint32_t> state;
  collective_failure kind;
  std::int32_t member;
  std::uint64_t sequence;
  std::uint32_t num_ranks;
  std::int32_t ranks[most_ranks];
  char cause[most_cause_bytes];
};

struct board::cell {
  alignas(line_bytes) std::atomic<std::uint64_t> phases;
  alignas(line_bytes) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> is_sleeping;
  alignas(line_bytes) std::atomic<std::uint64_t> entered;
  std::atomic<std::uint64_t> left;
  std::atomic<std::uint32_t> is_reaching;
  call_signature signature;
};

std::size_t board::size_bytes(int num_members) {
  auto n = static_cast<std::size_t>(num_members);
  constexpr auto slots = 2 + sends_in_flight;
  return sizeof(header) + n * sizeof(cell) + n * n * (slots * (sizeof(call_note) + small_bytes) + line_bytes);
}

board::board(std::byte* memory, int num_members, int member)
    : memory_(memory),
      num_members_(num_members),
      member_(member),
      is_fenced_by_sleepers_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)),
      known_taken_(static_cast<std::size_t>(num_members)) {
  auto n = static_cast<std::size_t>(num_members);
  notes_ = reinterpret_cast<call_note*>(memory + sizeof(header) + n * sizeof(cell));
  send_notes_ = notes_ + n * n * 2;
  taken_ = reinterpret_cast<std::byte*>(send_notes_ + n * n * sends_in_flight);
  small_ = taken_ + n * n * line_bytes;
}

board::header& board::head() const { return *reinterpret_cast<header*>(memory_); }
board::cell& board::cell_of(int member) const {
  return reinterpret_cast<cell*>(memory_ + sizeof(header))[member];
}
std::size_t board::pair(int to, int from) const {
  return static_cast<std::size_t>(to) * static_cast<std::size_t>(num_members_) +
         static_cast<std::size_t>(from);
}

call_note& board::note(int to, int from, std::uint64_t sequence) const {
  return notes_[pair(to, from) * 2 + sequence % 2];
}
std::byte* board::small(int to, int from, std::uint64_t sequence) const {
  return small_ + (pair(to, from) * (2 + sends_in_flight) + sequence % 2) * small_bytes;
}
call_note& board::send_note(int to, int from, std::uint64_t sequence) const {
  return send_notes_[pair(to, from) * sends_in_flight + sequence % sends_in_flight];
}
std::byte* board::sent_bytes(int to, int from, std::uint64_t sequence) const {
  return small_ + (pair(to, from) * (2 + sends_in_flight) + 2 + sequence % sends_in_flight) * small_bytes;
}
std::atomic<std::uint64_t>& board::sends_taken(int to, int from) const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(taken_ + pair(to, from) * line_bytes);
}

void board::take_send(int from, std::uint64_t sequence) {
  sends_taken(member_, from).store(sequence, std::memory_order_release);
  ring();
}

bool board::is_taken(int to, std::uint64_t sequence) {
  auto& known = known_taken_[static_cast<std::size_t>(to)];
  if (known < sequence) known = sends_taken(to, member_).load(std::memory_order_acquire);
  return known >= sequence;
}

void board::look_at_taken(int to, std::uint64_t sequence) {
  is_taken(to, sequence > sends_in_flight / 2 ? sequence - sends_in_flight / 2 : 0);
}

void board::pass_phase() {
  cell_of(member_).phases.store(++phase_, std::memory_order_release);
  ring();
}

bool board::has_passed(int member) const {
  return cell_of(member).phases.load(std::memory_order_acquire) >= phase_;
}

bool board::everyone_passed() const {
  for (int i = 0; i < num_members_; ++i)
    if (!has_passed(i)) return false;
  return true;
}

void board::begin_reach() { cell_of(member_).is_reaching.store(1); }
void board::end_reach() { cell_of(member_).is_reaching.store(0); }
bool board::is_reaching(int member) const { return cell_of(member).is_reaching.load() != 0; }

void board::enter(std::uint64_t sequence, const call_signature& signature) {
  auto& own = cell_of(member_);
  own.signature = signature;
  own.entered.store(sequence, std::memory_order_release);
}

void board::leave(std::uint64_t sequence) {
  cell_of(member_).left.store(sequence, std::memory_order_release);
}

board::last_call board::last_of(int member) const {
  const auto& its = cell_of(member);
  last_call last;
  last.entered = its.entered.load(std::memory_order_acquire);
  last.left = its.left.load(std::memory_order_acquire);
  last.signature = its.signature;
  return last;
}

void board::ring() {
  if (is_fenced_by_sleepers_)
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    order_stores_before_loads(cell_of(member_).is_sleeping);
  for (int i = 0; i < num_members_; ++i)
    if (i != member_ && cell_of(i).is_sleeping.load(std::memory_order_relaxed) != 0) ring(i);
}

void board::ring(int member) {
  auto& its = cell_of(member);
  its.bell.fetch_add(1);
  futex(its.bell, FUTEX_WAKE, 1, nullptr);
}

void board::announce_sleep() {
  auto& own = cell_of(member_);
  bell_ = num_rings();
  own.is_sleeping.store(1);
  order_stores_before_loads(own.is_sleeping);
  may_miss_rings_ = !membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void board::cancel_sleep() { cell_of(member_).is_sleeping.store(0); }

void board::sleep(std::chrono::microseconds at_most) { await_ring(bell_, bounded(at_most)); }

std::chrono::microseconds board::bounded(std::chrono::microseconds sleep) const {
  return may_miss_rings_ ? std::min(sleep, longest_deaf_sleep) : sleep;
}

std::uint32_t board::num_rings() const { return cell_of(member_).bell.load(); }

void board::await_ring(std::uint32_t known, std::chrono::microseconds at_most) const {
  timespec time{};
  time.tv_sec = at_most.count() / 1'000'000;
  time.tv_nsec = at_most.count() % 1'000'000 * 1000;
  futex(cell_of(member_).bell, FUTEX_WAIT, known, &time);
}

void board::abort(const collective_error& why) {
  auto expected = std::uint32_t{header::good};
  if (head().state.compare_exchange_strong(expected, header::being_aborted)) {
    head().kind = why.kind();
    head().member = member_;
    head().sequence = why.sequence();
    head().num_ranks = static_cast<std::uint32_t>(std::min(why.ranks().size(), most_ranks));
    std::copy_n(why.ranks().begin(), head().num_ranks, head().ranks);
    std::string_view cause = why.what();
    cause = cause.substr(0, most_cause_bytes - 1);
    *std::copy(cause.begin(), cause.end(), head().cause) = 0;
    head().state.store(header::aborted);
  }
  for (int i = 0; i < num_members_; ++i) ring(i);
}

/// While the cause is being written it is not known yet; should that process be stopped just then, its
/// silence is noticed like any other.
bool board::is_aborted() const { return head().state.load() == header::aborted; }

board::end board::aborted_by() const {
  const auto& its = head();
  return {its.member, its.kind, its.sequence, {its.ranks, its.ranks + its.num_ranks}, its.cause};
}

}  // namespace troupe::direct
