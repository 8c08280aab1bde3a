#pragma once
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "troupe/cluster/agent.hpp"
#include "troupe/cluster/agent_client.hpp"
#include "troupe/messaging/job_secret.hpp"

namespace troupe::testing {

/// Something that other threads append to and a test waits for. Waiting too long fails.
template <class Value>
class arrivals {
 public:
  void add(Value value) {
    std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  /// The first value that satisfies `wanted` and was not returned before.
  template <class Predicate>
  Value next(Predicate wanted) {
    std::unique_lock lock(mutex_);
    auto found = values_.end();
    bool came = changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      found = std::find_if(values_.begin(), values_.end(), wanted);
      return found != values_.end();
    });
    if (!came) throw std::runtime_error("what the test waits for did not arrive");
    auto value = std::move(*found);
    values_.erase(found);
    return value;
  }
  Value next() {
    return next([](const Value&) { return true; });
  }
  bool empty() {
    std::lock_guard lock(mutex_);
    return values_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Value> values_;
};

struct fence_event {
  std::uint64_t generation = 0;
  std::vector<cluster::member_loss> losses;
};

/// A member of the job whose events a test waits for.
class test_member : public cluster::membership_events {
 public:
  explicit test_member(const cluster::agent_client_options& options)
      : options_(options), link(connect_agent(options, *this)) {}

  void join(const std::string& numeric_class = "avx2") {
    link->join({options_.rank, options_.incarnation, 100 + options_.rank, "here", numeric_class, {}});
  }

  void on_fence(std::uint64_t generation, const std::vector<cluster::member_loss>& losses) override {
    fences.add({generation, losses});
  }
  void on_view(const cluster::membership_view& view) override { views.add(view); }
  void on_recovered(const cluster::recovery_report& report) override { reports.add(report); }
  void on_job_done() override { overs.add(1); }
  void on_job_failed(const std::string& cause, failure_kind kind) override {
    ends.add(cause + (kind == failure_kind::bad_input ? " (bad input)" : ""));
  }
  void on_stop(int signal) override { stops.add(signal); }
  void on_job_stopped(int, const std::string& what) override { stopped.add(what); }

 private:
  cluster::agent_client_options options_;

 public:
  arrivals<fence_event> fences;
  arrivals<cluster::membership_view> views;
  arrivals<cluster::recovery_report> reports;
  arrivals<int> overs;
  arrivals<std::string> ends, stopped;
  arrivals<int> stops;
  std::unique_ptr<cluster::membership> link;  ///< last: its threads use what is above
};

struct kill_event {
  int rank = 0;
  std::uint32_t incarnation = 0;
  std::string cause;
};

/// Generous, so that a busy machine does not look like a dead member.
inline cluster::agent_options job_of(int world_size) {
  cluster::agent_options options;
  options.world_size = world_size;
  options.suspect_after = std::chrono::seconds(20);
  return options;
}

/// An agent on a free port, with its callbacks recorded.
struct live_agent {
  explicit live_agent(cluster::agent_options wanted) : options(std::move(wanted)) {
    if (options.secret.empty()) options.secret = messaging::make_job_secret();
    options.linger = {};
    cluster::agent_callbacks callbacks;
    callbacks.kill = [this](int rank, std::uint32_t incarnation, const std::string& cause) {
      kills.add({rank, incarnation, cause});
    };
    callbacks.on_view = [this](const cluster::membership_view& view) { views.add(view); };
    callbacks.on_progress = [this](const cluster::job_progress& made) { progress.add(made); };
    callbacks.on_recovered = [this](const cluster::recovery_report& report) { reports.add(report); };
    callbacks.on_job_failed = [this](const std::string& cause, failure_kind) { failures.add(cause); };
    callbacks.on_warning = [this](const std::string& what) { warnings.add(what); };
    made = make_agent(options, std::move(callbacks));
  }

  cluster::agent_client_options client(int rank, std::uint32_t incarnation = 0) const {
    cluster::agent_client_options wanted;
    wanted.port = made->port();
    wanted.secret = options.secret;
    wanted.rank = rank;
    wanted.world_size = options.world_size;
    wanted.incarnation = incarnation;
    return wanted;
  }

  cluster::agent_options options;
  arrivals<kill_event> kills;
  arrivals<cluster::membership_view> views;
  arrivals<cluster::job_progress> progress;
  arrivals<cluster::recovery_report> reports;
  arrivals<std::string> failures, warnings;
  std::unique_ptr<cluster::agent> made;  ///< last: its thread uses what is above
};

}  // namespace troupe::testing
