#include "support/processes/spawn_ranks.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>

/// UCX 1.13 leaks a hundred bytes if it cannot attach the shared memory of a process that has just ended.
/// gloo leaks the list of addresses if none of them is this host's.
extern "C" const char* __lsan_default_suppressions() { return "leak:libuct.so\nleak:libgloo.so\n"; }
#endif
#if defined(__SANITIZE_THREAD__)
/// gloo's buffers wait in their destructors until no thread uses them, by a reference count that the thread
/// sanitizer does not see. Where they end by a jump to operator delete, only their caller is on the stack.
extern "C" const char* __tsan_default_suppressions() {
  return "race:gloo::transport::tcp::UnboundBuffer::\n"
         "race:std::default_delete<gloo::transport::UnboundBuffer>::operator()\n";
}
#endif

namespace troupe::testing {
namespace {

constexpr int most_ranks = 16;
constexpr std::size_t slot_bytes_per_rank = std::size_t{1} << 20;

/// A futex that works between processes (std::atomic::wait does not).
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}
void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

struct entry_head {
  std::int32_t slot;
  std::uint32_t bytes;
};

}  // namespace

/// The slots of all ranks, in shared memory. A rank appends entries to its own area and then publishes the
/// area's new end.
struct rank_slots {
  struct area {
    std::atomic<std::uint32_t> end = 0;
    std::atomic<pid_t> pid = 0;
    std::atomic<bool> killed = false;
    std::array<std::byte, slot_bytes_per_rank> bytes;
  };
  std::array<area, most_ranks> areas;
};

namespace {

entry_head head_at(const rank_slots::area& area, std::uint32_t at) {
  entry_head head;
  std::memcpy(&head, area.bytes.data() + at, sizeof(head));
  return head;
}

}  // namespace

void test_rank::post(int slot, std::span<const std::byte> bytes) {
  auto& own = slots_.areas[static_cast<std::size_t>(rank_)];
  auto end = own.end.load();
  entry_head head{slot, static_cast<std::uint32_t>(bytes.size())};
  for (std::uint32_t at = 0; at < end;) {
    auto posted = head_at(own, at);
    expect(posted.slot != slot, "another slot than " + std::to_string(slot) + ", which rank " +
                                    std::to_string(rank_) + " has posted before: who waits gets the first");
    at += static_cast<std::uint32_t>(sizeof(posted)) + posted.bytes;
  }
  expect(end + sizeof(head) + bytes.size() <= own.bytes.size(), "space in the slots of this rank");
  std::memcpy(own.bytes.data() + end, &head, sizeof(head));
  std::ranges::copy(bytes, own.bytes.data() + end + sizeof(head));
  own.end = end + static_cast<std::uint32_t>(sizeof(head) + bytes.size());
  futex_wake_all(own.end);
}

std::vector<std::byte> test_rank::wait_for(int rank, int slot) {
  auto& area = slots_.areas[static_cast<std::size_t>(rank)];
  for (std::uint32_t at = 0;;) {
    auto end = area.end.load();
    if (at == end) {
      futex_wait(area.end, end);
      continue;
    }
    auto head = head_at(area, at);
    auto* first = area.bytes.data() + at + sizeof(head);
    if (head.slot == slot) return {first, first + head.bytes};
    at += static_cast<std::uint32_t>(sizeof(head)) + head.bytes;
  }
}

std::vector<std::vector<std::byte>> test_rank::all_gather(int slot, std::span<const std::byte> bytes) {
  post(slot, bytes);
  std::vector<std::vector<std::byte>> gathered;
  for (int rank = 0; rank < size_; ++rank) gathered.push_back(wait_for(rank, slot));
  return gathered;
}

void test_rank::kill(int rank) {
  auto& area = slots_.areas[static_cast<std::size_t>(rank)];
  area.killed = true;
  ::kill(area.pid, SIGKILL);
}

void test_rank::stop(int rank) {
  auto pid = slots_.areas[static_cast<std::size_t>(rank)].pid.load();
  ::kill(pid, SIGSTOP);
  for (std::string word, state; state != "T";) {  // the third field of /proc/PID/stat
    std::ifstream("/proc/" + std::to_string(pid) + "/stat") >> word >> word >> state;
    ::usleep(100);
  }
}

void test_rank::resume(int rank) { ::kill(slots_.areas[static_cast<std::size_t>(rank)].pid, SIGCONT); }

void test_rank::wait_for_death(int rank) {
  auto pidfd =
      static_cast<int>(::syscall(SYS_pidfd_open, slots_.areas[static_cast<std::size_t>(rank)].pid.load(), 0));
  if (pidfd < 0) return;  // it has ended, and the parent has reaped it
  pollfd waited{pidfd, POLLIN, 0};
  ::poll(&waited, 1, -1);
  ::close(pidfd);
}

void expect(bool condition, std::string_view what, std::source_location where) {
  if (condition) return;
  throw std::runtime_error(std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                           ": expected " + std::string(what));
}

namespace {

using slots_owner = std::unique_ptr<rank_slots, void (*)(rank_slots*)>;

slots_owner make_slots() {
  auto* memory =
      ::mmap(nullptr, sizeof(rank_slots), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {new (memory) rank_slots, [](rank_slots* slots) { ::munmap(slots, sizeof(rank_slots)); }};
}

[[noreturn]] void run_child(rank_slots& slots, int rank, int count,
                            const std::function<void(test_rank&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int result = 0;
  try {
    test_rank self(slots, rank, count);
    body(self);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "rank %d: %s\n", rank, failure.what());
    result = 1;
  }
#if defined(__SANITIZE_ADDRESS__)
  if (result == 0 && __lsan_do_recoverable_leak_check() != 0) result = 1;
#endif
  std::fflush(nullptr);
  ::_exit(result);
}

/// One child process, for the parent.
struct child {
  int rank;
  pid_t pid;
  int pidfd;
};

child start_child(rank_slots& slots, int rank, int count, const std::function<void(test_rank&)>& body) {
  auto pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    slots.areas[static_cast<std::size_t>(rank)].pid = ::getpid();
    run_child(slots, rank, count, body);
  }
  slots.areas[static_cast<std::size_t>(rank)].pid = pid;
  return {rank, pid, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
}

/// Waits for the child and describes its failure; empty if it succeeded.
std::string reap(const rank_slots& slots, const child& ended) {
  int status = 0;
  ::waitpid(ended.pid, &status, 0);
  ::close(ended.pidfd);
  auto name = std::string("rank ").append(std::to_string(ended.rank));
  bool wanted = slots.areas[static_cast<std::size_t>(ended.rank)].killed;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && wanted) return {};
  if (WIFSIGNALED(status)) return name + " died of signal " + std::to_string(WTERMSIG(status)) + "; ";
  if (WEXITSTATUS(status) != 0) return name + " failed (see standard error); ";
  return {};
}

/// The index of a child that has ended, or -1 at the deadline.
int wait_for_one(const std::vector<child>& children, std::chrono::steady_clock::time_point deadline) {
  std::vector<pollfd> waited;
  for (const auto& running : children) waited.push_back({running.pidfd, POLLIN, 0});
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  ::poll(waited.data(), waited.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  auto ended = std::ranges::find_if(waited, [](const pollfd& one) { return one.revents != 0; });
  return ended == waited.end() ? -1 : static_cast<int>(ended - waited.begin());
}

std::string end_all(const std::vector<child>& children) {
  std::string ranks;
  for (const auto& running : children) {
    ranks.append(" ").append(std::to_string(running.rank));
    ::kill(running.pid, SIGKILL);
    ::waitpid(running.pid, nullptr, 0);
    ::close(running.pidfd);
  }
  return ranks;
}

}  // namespace

void spawn_ranks(int count, const std::function<void(test_rank&)>& body, std::chrono::seconds deadline) {
  expect(count <= most_ranks, "at most 16 ranks");
  auto slots = make_slots();
  auto end = std::chrono::steady_clock::now() + deadline;
  std::fflush(nullptr);
  std::vector<child> children;
  for (int rank = 0; rank < count; ++rank) children.push_back(start_child(*slots, rank, count, body));
  while (!children.empty()) {
    auto ended = wait_for_one(children, end);
    if (ended < 0 && std::chrono::steady_clock::now() < end) continue;
    if (ended < 0) throw std::runtime_error("ranks that did not end in time:" + end_all(children));
    auto failure = reap(*slots, children[static_cast<std::size_t>(ended)]);
    children.erase(children.begin() + ended);
    if (!failure.empty()) {
      end_all(children);
      throw std::runtime_error(failure + "the others were ended");
    }
  }
}

}  // namespace troupe::testing
