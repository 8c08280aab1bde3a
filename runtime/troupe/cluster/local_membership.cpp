#include "troupe/cluster/local_membership.hpp"

#include <deque>
#include <mutex>

#include "troupe/cluster/membership_state.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::cluster {
namespace {

using clock = std::chrono::steady_clock;

/// The same state machine as the agent's, for a world of one. Outputs are queued: an event may call back in,
/// and events come one at a time.
class local_membership final : public membership {
 public:
  explicit local_membership(membership_events& events)
      : state_({.world_size = 1, .replaces_lost_members = false}, clock::now()), events_(events) {}

  void join(const member& self) override {
    step([&] {
      if (auto reason = state_.refusal(self.rank, self.incarnation)) return state_.failed(*reason);
      return state_.joined(self, clock::now());
    });
  }
  void still_computing(std::uint64_t generation) override {
    step([&] { return state_.still_computing(0, generation, clock::now()); });
  }
  void quiesced(std::uint64_t generation, const transport::process_address& address) override {
    step([&] { return state_.quiesced(0, generation, address, clock::now()); });
  }
  void request_generation(std::uint64_t current, const std::string& cause) override {
    step([&] { return state_.generation_requested(current, cause, clock::now()); });
  }
  /// No launcher can kill this process; the user's process must not be killed.
  void suspect(int, const std::string& cause) override { fail_job(cause, failure_kind::error); }
  void report(const job_progress&) override {}
  void report(std::uint64_t generation, recovery_phase phase) override {
    step([&] { return state_.phase_reached(generation, phase, clock::now()); });
  }
  void fail_job(const std::string& cause, failure_kind kind) override {
    step([&] { return state_.failed(cause, kind); });
  }
  void request_stop(int signal, stop_scope) override {
    step([&] { return state_.stop(signal); });
  }
  void stopped(const std::string& summary) override {
    step([&] { return state_.stopped(summary); });
  }
  void failing(const std::string&, failure_kind) override {}
  void leave() override {
    std::lock_guard lock(mutex_);
    left_ = true;
  }
  collective::store& keys() override { return keys_; }

 private:
  template <class Input>
  void step(Input input) {
    std::unique_lock lock(mutex_);
    if (left_) return;
    for (auto& output : input()) queue_.push_back(std::move(output));
    if (delivering_) return;
    delivering_ = true;
    while (!queue_.empty()) {
      auto output = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      deliver(output);
      lock.lock();
    }
    delivering_ = false;
  }

  void deliver(const membership_output& output) {
    if (auto* fence = std::get_if<send_fence>(&output)) events_.on_fence(fence->generation, fence->losses);
    if (auto* view = std::get_if<send_view>(&output)) events_.on_view(view->view);
    if (auto* recovered = std::get_if<send_recovered>(&output)) events_.on_recovered(recovered->report);
    if (auto* stop = std::get_if<send_stop>(&output)) events_.on_stop(stop->signal);
    if (auto* end = std::get_if<end_job>(&output))
      end->signal ? events_.on_job_stopped(end->signal, end->cause)
                  : events_.on_job_failed(end->cause, end->kind);
  }

  std::mutex mutex_;
  membership_state state_;
  membership_events& events_;
  std::deque<membership_output> queue_;
  bool delivering_ = false;
  bool left_ = false;
  collective::memory_store keys_;
};

}  // namespace

std::unique_ptr<membership> make_local_membership(membership_events& events) {
  return std::make_unique<local_membership>(events);
}

}  // namespace troupe::cluster
