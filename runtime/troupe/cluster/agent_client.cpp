#include "troupe/cluster/agent_client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "troupe/cluster/agent_dial.hpp"
#include "troupe/cluster/agent_messages.hpp"
#include "troupe/cluster/agent_store.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/messaging/tcp_socket.hpp"
#include "troupe/posix/wake_event.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::cluster {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Limits the length of a reason, so that its frame stays below the size limit.
std::string shortened(const std::string& cause) { return cause.substr(0, 4096); }

/// Two threads: one reads, writes and sends heartbeats; the other calls the events, so that a slow callback
/// delays no heartbeat.
class agent_client final : public membership {
 public:
  agent_client(const agent_client_options& options, authenticated_connection line, membership_events& events)
      : options_(options), line_(std::move(line)), events_(events) {
    io_thread_ = std::thread([this] { run_io(); });
    event_thread_ = std::thread([this] { run_events(); });
  }

  ~agent_client() override {
    stopping_ = true;
    wake_.set();
    io_thread_.join();
    deliver({});
    event_thread_.join();
  }

  void join(const member& self) override { send(agent_wire::join_job{{self}}); }
  void still_computing(std::uint64_t generation) override { send(agent_wire::computing_on{generation}); }
  void quiesced(std::uint64_t generation, const transport::process_address& address) override {
    send(agent_wire::quiesced_for{generation, address});
  }
  void request_generation(std::uint64_t current, const std::string& cause) override {
    send(agent_wire::generation_request{current, shortened(cause)});
  }
  void suspect(int rank, const std::string& cause) override {
    std::uint32_t incarnation = 0;
    {
      std::lock_guard lock(mutex_);
      if (auto found = incarnations_.find(rank); found != incarnations_.end()) incarnation = found->second;
    }
    send(agent_wire::suspicion{rank, incarnation, shortened(cause)});
  }
  void report(const job_progress& progress) override { send(agent_wire::progress_report{progress}); }
  void report(std::uint64_t generation, recovery_phase phase) override {
    send(agent_wire::phase_report{generation, phase});
  }
  void fail_job(const std::string& cause, failure_kind kind) override {
    send(agent_wire::job_failure{shortened(cause), kind});
  }
  void request_stop(int signal, stop_scope scope) override { send(agent_wire::stop_request{signal, scope}); }
  void stopped(const std::string& summary) override { send(agent_wire::stop_done{shortened(summary)}); }
  void failing(const std::string& message, failure_kind kind) override {
    send(agent_wire::member_failure{shortened(message), kind});
  }
  void leave() override {
    left_ = true;
    send(agent_wire::leave_job{});
  }
  collective::store& keys() override { return keys_; }

 private:
  void send(const agent_wire::client_message& message) {
    auto body = wire::encode(message);
    {
      std::lock_guard lock(mutex_);
      line_.channel.seal(body, out_);
    }
    wake_.set();
  }

  // --- the first thread

  void run_io() {
    bool open = read_messages();
    heard_ = looked_ = clock::now();
    auto next_beat = clock::now();
    while (open && !stopping_ && !agent_is_silent()) {
      if (clock::now() >= next_beat) {
        send(agent_wire::heartbeat{});
        next_beat = clock::now() + options_.heartbeat;
      }
      open = poll_once(next_beat);
    }
    if (open && stopping_) {
      keys_.close("this process has left the job");
      return say_goodbye();
    }
    auto limit = std::chrono::duration<double>(options_.agent_timeout);
    auto gone = "the job's agent at " + messaging::endpoint_name(options_.address, options_.port) +
                (open ? " has sent no heartbeat for " + std::to_string(limit.count()).substr(0, 5) +
                            " s: it has stopped, or its host or the network has failed"
                 : !unreadable_.empty()
                     ? " has sent bytes that are no message of this job (" + unreadable_ +
                           "): something between the hosts changes them, or it runs another version"
                     : std::string(" is gone: the launcher, or rank 0 where there is none, has ended")) +
                ". If the job has a snapshot (--snapshot-dir), --resume continues from it";
    keys_.close(gone);
    if (!left_ && !stopping_ && !ended_)
      deliver([this, gone] { events_.on_job_failed(gone, failure_kind::error); });
  }

  /// Whether the agent has sent nothing for agent_timeout. Time in which this process was suspended does not
  /// count.
  bool agent_is_silent() {
    auto now = clock::now();
    if (now - looked_ > options_.agent_timeout / 2) heard_ = now;
    looked_ = now;
    return now - heard_ >= options_.agent_timeout;
  }

  bool poll_once(clock::time_point until) {
    bool unsent = write_out();
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    pollfd polled[2] = {{wake_.fd(), POLLIN, 0},
                        {line_.socket.get(), static_cast<short>(POLLIN | (unsent ? POLLOUT : 0)), 0}};
    ::poll(polled, 2, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (polled[0].revents) wake_.clear();
    if (!(polled[1].revents & ~POLLOUT)) return true;
    auto state = messaging::read_available(line_.socket.get(), line_.received, 1 << 20);
    heard_ = clock::now();
    return read_messages() && state == messaging::io_result::open;
  }

  /// Writes pending bytes and returns whether some are left. A broken connection is detected by the next
  /// read.
  bool write_out() {
    std::lock_guard lock(mutex_);
    if (messaging::write_available(line_.socket.get(), out_) == messaging::io_result::closed) out_.clear();
    return !out_.empty();
  }

  /// Sends all queued messages and, after a leave, waits until the agent closes the connection, which
  /// confirms the leave.
  void say_goodbye() {
    auto until = clock::now() + 2s;
    auto time_left = [&] { return std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()); };
    while (write_out() && messaging::wait_for(line_.socket.get(), POLLOUT, time_left())) continue;
    ::shutdown(line_.socket.get(), SHUT_WR);
    std::vector<std::byte> ignored;
    while (left_ && messaging::wait_for(line_.socket.get(), POLLIN, time_left())) {
      ignored.clear();
      if (messaging::read_available(line_.socket.get(), ignored, 65536) == messaging::io_result::closed)
        return;
    }
  }

  bool read_messages() {
    try {
      while (true) {
        auto body = line_.channel.open(line_.received);
        if (!body) return true;
        on_message(wire::decode<agent_wire::agent_message>(*body));
      }
    } catch (const messaging::bad_frame& problem) {
      unreadable_ = problem.what();
    } catch (const wire::decode_error& problem) {
      unreadable_ = problem.what();
    }
    return false;
  }

  void on_message(const agent_wire::agent_message& message) {
    using namespace agent_wire;
    if (auto* m = std::get_if<agent_wire::fence>(&message)) {
      std::vector<member_loss> losses(m->losses.begin(), m->losses.end());
      deliver([this, losses, generation = m->generation] { events_.on_fence(generation, losses); });
    } else if (auto* v = std::get_if<agent_wire::view>(&message)) {
      on_view({v->generation, {v->members.begin(), v->members.end()}});
    } else if (auto* r = std::get_if<agent_wire::recovered>(&message)) {
      auto made = r->report;
      made.generation = r->generation;
      made.loss = r->loss;
      deliver([this, made] { events_.on_recovered(made); });
    } else if (std::holds_alternative<agent_wire::job_done>(message)) {
      deliver([this] { events_.on_job_done(); });
    } else if (auto* reply = std::get_if<agent_wire::store_reply>(&message)) {
      keys_.on_reply(*reply);
    } else if (auto* stop = std::get_if<agent_wire::stop_requested>(&message)) {
      deliver([this, signal = stop->signal] { events_.on_stop(signal); });
    } else if (auto* done = std::get_if<agent_wire::job_stopped>(&message)) {
      ended_ = true;
      keys_.close("stopped " + done->summary, done->signal);
      deliver([this, done = *done] { events_.on_job_stopped(done.signal, done.summary); });
    } else if (auto* end = std::get_if<agent_wire::job_end>(&message)) {
      ended_ = true;
      keys_.close(end->cause);
      deliver([this, end = *end] { events_.on_job_failed(end.cause, end.kind); });
    }
  }

  void on_view(const membership_view& view) {
    {
      std::lock_guard lock(mutex_);
      for (const auto& member : view.members) incarnations_[member.rank] = member.incarnation;
    }
    deliver([this, view] { events_.on_view(view); });
  }

  // --- the second thread; an empty event ends it

  void deliver(std::function<void()> event) {
    {
      std::lock_guard lock(event_mutex_);
      pending_.push_back(std::move(event));
    }
    event_arrived_.notify_one();
  }

  void run_events() {
    while (true) {
      std::unique_lock lock(event_mutex_);
      // No timeout is needed: the first thread queues an empty event at the end.
      event_arrived_.wait(lock, [this] { return !pending_.empty(); });
      auto event = std::move(pending_.front());
      pending_.pop_front();
      lock.unlock();
      if (!event) return;
      event();
    }
  }

  const agent_client_options options_;
  std::mutex mutex_;  ///< guards the sending half of the channel, out_ and incarnations_
  authenticated_connection line_;
  std::vector<std::byte> out_;
  std::map<int, std::uint32_t> incarnations_;  ///< as of the last view
  membership_events& events_;
  agent_store keys_{[this](const agent_wire::client_message& message) { send(message); }};
  posix::wake_event wake_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> left_ = false;
  // Used by the first thread only:
  bool ended_ = false;
  std::string unreadable_;  ///< what was wrong with a message; empty: nothing
  clock::time_point heard_, looked_;

  std::mutex event_mutex_;
  std::condition_variable event_arrived_;
  std::deque<std::function<void()>> pending_;
  std::thread io_thread_, event_thread_;
};

}  // namespace

std::unique_ptr<membership> connect_agent(const agent_client_options& options, membership_events& events) {
  return std::make_unique<agent_client>(options, dial_agent(options), events);
}

}  // namespace troupe::cluster
