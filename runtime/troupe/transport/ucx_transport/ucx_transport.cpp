#include "troupe/transport/ucx_transport/ucx_transport.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/readable_memory.hpp"
#include "troupe/transport/generation_gate.hpp"
#include "troupe/transport/require_sendable.hpp"
#include "troupe/transport/ucx_transport/control_plane.hpp"
#include "troupe/transport/ucx_transport/polled_mutex.hpp"
#include "troupe/transport/ucx_transport/tensor_traffic.hpp"
#include "troupe/ucx/ucx_library.hpp"
#include "troupe/ucx/wakeup.hpp"

namespace troupe::transport {
namespace {

using clock = std::chrono::steady_clock;

/// The destructor waits this long for queued control messages to be sent.
constexpr auto farewell = std::chrono::milliseconds(100);
/// A failure of the data plane counts only after this delay, and only if the generation is still the same
/// here and the peer has not said meanwhile that it has ended it. UCX reports both alike, and sooner than the
/// peer's notice comes.
constexpr auto data_failure_delay = std::chrono::seconds(1);

/// The UCX transports to use. On "lo" without TCP, which is not needed there. Without "cma" where the system
/// refuses it between processes, which UCX does not notice: tensors are copied through shared memory then.
std::string default_transports(const ucx_transport_options& options) {
  std::string chosen = "sysv";
  if (auto problem = posix::problem_of_reading_this_process(); problem == 0)
    chosen += ",cma";
  else if (options.on_unreadable_memory)
    options.on_unreadable_memory(std::generic_category().message(problem));
  return options.interface == "lo" ? chosen : chosen + ",tcp";
}

ucx_transport_options with_transports(ucx_transport_options options) {
  if (options.data_transports.empty()) options.data_transports = default_transports(options);
  return options;
}

/// One thread drives the control plane, and the data plane unless a waiter does, and delivers arrivals. A
/// sender's thread sends itself, under the lock of the plane. No lock is held while an event is delivered, so
/// receivers may send and may take locks that they hold while sending.
class ucx_transport final : public transport {
 public:
  ucx_transport(const ucx_transport_options& options, transport_events& events)
      : events_(events),
        spin_(options.spin),
        on_unshared_memory_(options.on_unshared_memory),
        settings_{options.rank,
                  options.secret,
                  messaging::frame_authenticator(options.secret),
                  options.verify_frames,
                  !options.verify_frames && options.data_transports.find("tcp") == std::string::npos,
                  {},
                  options.delay,
                  options.world_size,
                  options.connection_advice},
        control_(options.interface, settings_),
        tensors_(options.data_transports, options.interface,
                 {settings_, gate_, events_, wakeup_,
                  [this](const peer_failure& failure) { break_connection(gate_.current(), failure); }}),
        thread_([this] { run(); }) {}

  ~ucx_transport() override {
    stop_ = true;
    wakeup_.wake();
    thread_.join();
    for (auto end = clock::now() + farewell; !control_.all_sent() && clock::now() < end;)
      if (!control_.progress()) std::this_thread::yield();
  }

  int rank() const override { return settings_.rank; }
  transport_statistics statistics() const override { return settings_.counters.read(); }

  process_address begin_generation(std::uint64_t generation) override;
  void connect(std::uint64_t generation, const std::map<int, process_address>& peers) override;
  void send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) override;
  void send_tensor(int to_rank, const tensor_tag& tag, tensor value) override;
  tensor allocate_shared(shape extents, dtype type) override {
    try {
      return tensors_.allocate_shared(extents, type);
    } catch (const system_failure& problem) {
      if (on_unshared_memory_) on_unshared_memory_(problem.what());
      return transport::allocate_shared(std::move(extents), type);
    }
  }
  bool receive_for(tensor_waiter& waiter, std::chrono::nanoseconds spin) override {
    return tensors_.receive_for(waiter, spin);
  }
  void stop_receiving(const tensor_waiter& waiter) override { tensors_.stop_receiving(waiter); }
  void wake_receiver() override { tensors_.wake_receiver(); }

 private:
  void run();
  bool progress();
  bool progress_control();
  void announce_generation(std::uint64_t generation);
  void wait_for_events(clock::duration idle);
  void judge_suspicions();
  bool has_ended(int rank, std::uint64_t generation) const;
  std::chrono::milliseconds max_sleep(bool is_reconnecting);
  void break_connection(std::uint64_t generation, const peer_failure& failure);

  transport_events& events_;
  const std::chrono::microseconds spin_;
  const std::function<void(const std::string& cause)> on_unshared_memory_;
  plane_settings settings_;
  generation_gate gate_;
  ucx::wakeup wakeup_;

  polled_mutex control_mutex_;
  control_plane control_;
  std::uint64_t control_generation_ = 0;  ///< the generation of the last connect()

  tensor_traffic tensors_;

  /// Of the progress thread, like the next two: by peer, the newest generation that it has announced.
  std::map<int, std::uint64_t> announced_;
  /// Failures of the data plane and when they count, earliest first.
  struct suspicion {
    clock::time_point due;
    std::uint64_t generation;
    peer_failure failure;
  };
  std::deque<suspicion> suspicions_;

  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

process_address ucx_transport::begin_generation(std::uint64_t generation) {
  announce_generation(generation);
  auto tensors = tensors_.begin_generation(generation);
  return {control_.address(), std::move(tensors)};
}

/// Before the data plane ends, so that no peer takes that for a loss.
void ucx_transport::announce_generation(std::uint64_t generation) {
  ucx::ucx_log_suppressor failures_are_reported_as_events;
  bool done = true;
  {
    std::lock_guard lock(control_mutex_);
    done = control_.announce_generation(generation);
  }
  if (!done) wakeup_.wake();
}

void ucx_transport::connect(std::uint64_t generation, const std::map<int, process_address>& peers) {
  for (const auto& [rank, address] : peers)
    if (address.control.empty() || address.data.empty())
      throw_invalid("transport::connect", "an address for rank " + std::to_string(rank), "none");
  ucx::ucx_log_suppressor failures_are_reported_as_events;
  {
    std::lock_guard lock(control_mutex_);
    control_.connect(peers);
    control_generation_ = generation;
  }
  tensors_.connect(generation, peers);
}

void ucx_transport::send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) {
  if (to_rank == rank()) {
    auto& counted = settings_.counters.with(to_rank);
    counted.count_sent_frame(body.size());
    counted.count_received_frame(body.size());
    return events_.on_control(to_rank, generation, body);
  }
  ucx::ucx_log_suppressor failures_are_reported_as_events;
  bool done = true;
  {
    std::lock_guard lock(control_mutex_);
    done = control_.send(to_rank, generation, body);
  }
  if (!done) wakeup_.wake();
}

void ucx_transport::send_tensor(int to_rank, const tensor_tag& tag, tensor value) {
  require_sendable(value, to_rank == rank());
  if (tag.generation != gate_.current()) {
    ++settings_.counters.stale_frames;
    return;
  }
  if (to_rank == rank()) {
    if (!gate_.is_open()) return;
    auto& counted = settings_.counters.with(to_rank);
    counted.count_sent(value);
    counted.count_completed(value);
    counted.count_received(value);
    return events_.on_tensor(to_rank, tag, std::move(value));
  }
  tensors_.send(to_rank, tag, std::move(value));
}

void ucx_transport::run() {
  ucx::ucx_log_suppressor failures_are_reported_as_events;
  for (auto last_event = clock::now(); !stop_;) {
    if (progress()) {
      last_event = clock::now();
      continue;
    }
    auto idle = clock::now() - last_event;
    if (idle < spin_)
      std::this_thread::yield();
    else
      wait_for_events(idle);
  }
}

bool ucx_transport::progress() {
  bool control = progress_control();
  bool tensors = tensors_.progress();
  judge_suspicions();
  return control || tensors;
}

bool ucx_transport::progress_control() {
  control_mutex_.yield_to_waiters();
  bool worked = false;
  std::vector<control_arrival> arrivals;
  std::vector<peer_failure> failures;
  std::vector<generation_notice> notices;
  std::uint64_t generation = 0;
  {
    std::lock_guard lock(control_mutex_);
    worked = control_.progress();
    arrivals = control_.take_arrivals();
    failures = control_.take_failures();
    notices = control_.take_notices();
    generation = control_generation_;
  }
  for (const auto& notice : notices)
    announced_[notice.from_rank] = std::max(announced_[notice.from_rank], notice.begun);
  for (const auto& arrival : arrivals) {
    settings_.counters.with(arrival.from_rank).count_received_frame(arrival.body.size());
    events_.on_control(arrival.from_rank, arrival.generation, arrival.body);
  }
  for (const auto& failure : failures) events_.on_peer_error(failure.rank, generation, failure.cause);
  return worked || !arrivals.empty() || !failures.empty();
}

/// Closes the control connections of peers whose data plane has failed; the next progress_control reports
/// them. Reports lost tensors.
void ucx_transport::judge_suspicions() {
  auto failed = tensors_.take_failures();
  for (const auto& lost : failed.lost_tensors)
    events_.on_tensor_lost(lost.rank, failed.generation, lost.cause);
  for (auto& failure : failed.of_peers)
    suspicions_.push_back({clock::now() + data_failure_delay, failed.generation, std::move(failure)});
  settings_.counters.ended_generation += std::erase_if(
      suspicions_, [this](const suspicion& each) { return has_ended(each.failure.rank, each.generation); });
  for (; !suspicions_.empty() && suspicions_.front().due <= clock::now(); suspicions_.pop_front())
    break_connection(suspicions_.front().generation, suspicions_.front().failure);
}

/// Also if a new process has the rank by now: it is in a later generation.
bool ucx_transport::has_ended(int rank, std::uint64_t generation) const {
  auto known = announced_.find(rank);
  return known != announced_.end() && known->second > generation;
}

/// Closes the peer's control connection, unless a later generation has begun. For any thread.
void ucx_transport::break_connection(std::uint64_t generation, const peer_failure& failure) {
  {
    std::lock_guard lock(control_mutex_);
    if (generation == gate_.current()) control_.break_connection(failure);
  }
  wakeup_.wake();
}

/// How long the progress thread may sleep. Called without locks: a thread that changes the state meanwhile
/// wakes this one.
std::chrono::milliseconds ucx_transport::max_sleep(bool is_reconnecting) {
  bool looks_often = tensors_.needs_watching() || is_reconnecting;
  if (tensors_.must_look_often()) return std::chrono::milliseconds(1);
  auto longest = looks_often ? std::chrono::milliseconds(10) : ucx::wakeup::max_sleep;
  if (suspicions_.empty()) return longest;
  auto left = std::max(clock::duration::zero(), clock::duration(suspicions_.front().due - clock::now()));
  return std::min(longest, std::chrono::ceil<std::chrono::milliseconds>(left));
}

/// Sleeps until there is something to do. Both planes are armed after the sleep was announced, so a send that
/// stays in progress either keeps them from being armed or wakes this thread.
void ucx_transport::wait_for_events(clock::duration idle) {
  wakeup_.announce_sleep();
  bool armed = !stop_;
  bool is_reconnecting = false;
  std::array<int, 2> descriptors = {control_.event_fd(), tensors_.arm(armed)};
  {
    std::lock_guard lock(control_mutex_);
    armed = armed && !control_.progress() && control_.arm();
    is_reconnecting = control_.is_reconnecting();
  }
  wakeup_.rest(descriptors, armed, idle, max_sleep(is_reconnecting));
}

}  // namespace

std::unique_ptr<transport> make_ucx_transport(const ucx_transport_options& options,
                                              transport_events& events) {
  return std::make_unique<ucx_transport>(with_transports(options), events);
}

}  // namespace troupe::transport
