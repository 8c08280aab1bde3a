#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <random>

#include "troupe/cluster/membership_state.hpp"

using namespace troupe;
using namespace troupe::cluster;
using namespace std::chrono_literals;

namespace {

/// The real state of a process, of which the state machine knows only by events.
struct process {
  std::uint32_t incarnation = 0;
  bool joined = false;
  bool hangs = false;
  bool left = false;
  bool condemned = false;          ///< the agent wants it dead
  std::uint64_t fenced = 0;        ///< newest fence it got
  std::uint64_t acknowledged = 0;  ///< newest generation it acknowledged, by joining too
};

/// Drives a membership_state with random events of a world that plays by the rules of processes, and checks
/// every output.
class world {
 public:
  world(std::uint32_t seed, bool some_leave)
      : random_(seed),
        some_leave_(some_leave),
        processes_(1 + random_() % 4),
        state_({static_cast<int>(processes_.size()), 60s, 1s, true}, now_) {}

  void step() {
    now_ += std::chrono::milliseconds(random_() % 200);
    beat();
    auto rank = static_cast<int>(random_() % processes_.size());
    auto& process = processes_[rank];
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
        return join(rank);
      case 3:
      case 4:
      case 5:
        return acknowledge(rank, process.fenced);
      case 6:
        return acknowledge(rank, random_() % 5);
      case 7:
        return lose(rank);
      case 8:
        return take(state_.suspected(rank, process.incarnation - random_() % 2, "unreachable", now_));
      case 9:
        return take(
            state_.generation_requested(state_.generation() - random_() % 2, "an actor failed", now_));
      case 10:
        return take(state_.phase_reached(state_.generation(), recovery_phase(1 + random_() % 3), now_));
      case 11:
        return misbehave(rank);
    }
  }

  /// All processes follow their events: the job must get a view, or have ended.
  void follow_all_events() {
    for (auto& process : processes_) process.hangs = false;
    for (int round = 0; round < 3; ++round)
      for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
        if (processes_[rank].condemned) lose(rank);
        join(rank);
        acknowledge(rank, processes_[rank].fenced);
      }
    CHECK((state_.job_ended() || state_.is_done() || viewed_ == state_.generation()));
    if (!some_leave_) CHECK_FALSE(state_.job_ended());
  }

 private:
  void beat() {
    for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank)
      if (state_.is_member(rank, processes_[rank].incarnation) && !processes_[rank].hangs)
        state_.heard(rank, now_);
    take(state_.tick(now_));
  }

  void join(int rank) {
    auto& process = processes_[rank];
    member self{rank, process.incarnation, 1, "here", "avx2", {}};
    if (auto reason = state_.refusal(rank, process.incarnation)) {
      CHECK((process.joined || state_.job_ended() || state_.is_done()));
      return;
    }
    CHECK_FALSE(process.joined);
    CHECK((process.incarnation == 0 || state_.refusal(rank, process.incarnation - 1)));
    process.joined = true;
    process.acknowledged = state_.generation();
    take(state_.joined(self, now_));
  }

  void acknowledge(int rank, std::uint64_t generation) {
    auto& process = processes_[rank];
    if (!process.joined || process.left) return;
    if (generation == state_.generation()) process.acknowledged = generation;
    take(state_.quiesced(rank, generation, {}, now_));
  }

  void lose(int rank) {
    if (processes_[rank].left) return;
    process next;
    next.incarnation = processes_[rank].incarnation + 1;
    processes_[rank] = next;
    auto before = state_.generation();
    bool ended = state_.job_ended();
    take(state_.process_lost(rank, "killed by SIGKILL", now_, {}, now_));
    if (!ended && !state_.job_ended() && !state_.is_done()) CHECK(state_.generation() == before + 1);
  }

  void misbehave(int rank) {
    auto& process = processes_[rank];
    if (!process.joined || process.left) return;
    switch (random_() % 3) {
      case 0:
        process.hangs = true;
        return;
      case 1:
        return take(state_.connection_lost(rank, now_));
      case 2:
        if (!some_leave_ || random_() % 4 != 0) return;
        process.left = true;
        return take(state_.left(rank, now_));
    }
  }

  void take(const membership_outputs& outputs) {
    CHECK_FALSE((ended_ && !outputs.empty()));
    for (const auto& output : outputs) std::visit([this](const auto& what) { check(what); }, output);
  }

  void check(const send_fence& fence) {
    CHECK_FALSE(over_);
    CHECK(fence.generation > fenced_);
    CHECK(fence.generation > viewed_);
    CHECK(fence.generation == state_.generation());
    CHECK_FALSE(fence.losses.empty());
    fenced_ = fence.generation;
    for (int rank : fence.to) {
      CHECK(processes_[rank].joined);
      processes_[rank].fenced = fence.generation;
    }
  }

  void check(const send_view& output) {
    const auto& view = output.view;
    CHECK_FALSE(over_);
    CHECK(view.generation > viewed_);
    CHECK(view.generation >= fenced_);
    CHECK(view.generation == state_.generation());
    viewed_ = view.generation;
    REQUIRE(view.members.size() == processes_.size());
    for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
      const auto& process = processes_[rank];
      CHECK(view.members[rank].rank == rank);
      CHECK(view.members[rank].incarnation == process.incarnation);
      CHECK(process.acknowledged == view.generation);
      CHECK_FALSE(process.condemned);
    }
  }

  void check(const kill_process& kill) {
    auto& process = processes_[kill.rank];
    CHECK(kill.incarnation == process.incarnation);
    CHECK(process.joined);
    CHECK_FALSE(process.condemned);
    process.condemned = true;
  }

  void check(const send_recovered& recovered) { CHECK(recovered.report.generation == viewed_); }
  void check(const send_done&) {
    CHECK(some_leave_);
    CHECK_FALSE(over_);
    over_ = true;
  }
  void check(const send_stop&) {}
  void check(const end_job&) { ended_ = true; }

  std::mt19937 random_;
  bool some_leave_;
  std::vector<process> processes_;
  std::chrono::steady_clock::time_point now_;
  membership_state state_;
  std::uint64_t fenced_ = 0, viewed_ = 0;
  bool ended_ = false, over_ = false;
};

}  // namespace

TEST_CASE(
    "no order of joins, losses, hangs, requests and acknowledgements breaks the membership's invariants") {
  auto seed = static_cast<std::uint32_t>(GENERATE(range(0, 400)));
  bool some_leave = seed % 4 == 3;
  CAPTURE(seed);
  world explored(seed, some_leave);
  for (int i = 0; i < 200; ++i) {
    explored.step();
    if (i % 50 == 49) explored.follow_all_events();
  }
}
