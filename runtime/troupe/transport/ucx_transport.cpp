#include "troupe/transport/ucx_transport.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/transport/control_plane.hpp"
#include "troupe/transport/data_plane.hpp"
#include "troupe/transport/generation_gate.hpp"
#include "troupe/transport/polled_mutex.hpp"
#include "troupe/transport/ucx_context.hpp"
#include "troupe/transport/ucx_library.hpp"
#include "troupe/transport/wakeup.hpp"

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;

/// Control messages that were accepted before the transport ends get this long to leave the process.
constexpr auto farewell = std::chrono::milliseconds(100);
/// Work that makes no event (a full shared-memory queue) is polled for this long, and after that looked at in
/// steps: its receiver may be dead.
constexpr auto patient_poll = std::chrono::microseconds(500);
constexpr auto poll_step = std::chrono::milliseconds(1);

/// A failure of the data plane counts only if the generation is still the same after this: a peer that has
/// entered the next generation already looks just like one that cannot be reached.
constexpr auto data_failure_patience = std::chrono::seconds(1);

/// UCX over TCP is left out where it is not needed.
std::string data_transports(const ucx_transport_options& options) {
  if (!options.data_transports.empty()) return options.data_transports;
  return options.interface == "lo" ? "sysv,cma" : "sysv,cma,tcp";
}

/// One thread drives both planes and delivers what arrives. A sender's thread calls UCX itself, under the
/// lock of the plane it sends on; no lock is held while an event is delivered, so receivers may send and may
/// take locks that they hold while sending.
class ucx_transport final : public transport {
 public:
  ucx_transport(const ucx_transport_options& options, transport_events& events)
      : events_(events),
        spin_(options.spin),
        settings_{options.rank, frame_authenticator(options.secret), options.verify_frames, {}},
        control_(options.interface, settings_),
        data_context_(make_ucx_context(data_transports(options), options.interface)),
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

  node_address begin_generation(std::uint64_t generation) override;
  void connect(std::uint64_t generation, const std::map<int, node_address>& peers) override;
  void send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) override;
  void send_tensor(int to_rank, const tensor_tag& tag, tensor value) override;

 private:
  void run();
  bool progress();
  bool progress_control();
  bool progress_data();
  void wait_for_events(clock::duration idle);
  std::array<int, 2> arm(bool& armed);
  void deliver(tensor_arrival& arrival);
  void judge_suspicions();
  std::chrono::milliseconds until_next_judgement() const;
  void break_connection(std::uint64_t generation, const peer_failure& failure);

  transport_events& events_;
  const std::chrono::microseconds spin_;
  plane_settings settings_;
  generation_gate gate_;
  wakeup wakeup_;

  polled_mutex control_mutex_;
  control_plane control_;

  ucx_context data_context_;
  polled_mutex data_mutex_;
  std::optional<data_plane> data_;  ///< none before the first generation
  transfer_list retired_;  ///< in flight when their generation ended; peers may still read their memory

  /// The progress thread's own: failures of the data plane and when to believe them, earliest first.
  struct suspicion {
    clock::time_point due;
    std::uint64_t generation;
    peer_failure failure;
  };
  std::deque<suspicion> suspicions_;

  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

node_address ucx_transport::begin_generation(std::uint64_t generation) {
  std::vector<std::byte> data_address;
  {
    std::lock_guard lock(data_mutex_);
    gate_.begin(generation);
    if (data_) retired_.splice(retired_.end(), data_->stop());
    data_.reset();
    data_.emplace(data_context_.get(), settings_, generation);
    data_address = data_->address();
  }
  wakeup_.wake();
  return {control_.address(), std::move(data_address)};
}

void ucx_transport::connect(std::uint64_t generation, const std::map<int, node_address>& peers) {
  for (const auto& [rank, address] : peers)
    if (address.control.empty() || address.data.empty())
      throw_invalid("transport::connect", "an address for rank " + std::to_string(rank), "none");
  ucx_silence failures_are_reported_as_events;
  transfer_list released;
  {
    std::lock_guard lock(control_mutex_);
    control_.connect(peers);
  }
  {
    std::lock_guard lock(data_mutex_);
    gate_.open(generation);
    data_.value().connect(generation, peers);
    released.swap(retired_);
  }
  wakeup_.wake();
}

void ucx_transport::send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) {
  if (to_rank == rank()) {
    ++settings_.counters.control_frames_sent;
    ++settings_.counters.control_frames_received;
    return events_.on_control(to_rank, generation, body);
  }
  ucx_silence failures_are_reported_as_events;
  bool done = true;
  {
    std::lock_guard lock(control_mutex_);
    done = control_.send(to_rank, generation, body);
  }
  if (!done) wakeup_.wake();
}

void ucx_transport::send_tensor(int to_rank, const tensor_tag& tag, tensor value) {
  if (!value.defined()) throw_invalid("send_tensor", "a tensor with elements", "an undefined one");
  if (tag.generation != gate_.current()) {
    ++settings_.counters.stale_frames;
    return;
  }
  if (to_rank == rank()) {
    if (!gate_.is_open()) return;
    settings_.counters.count_sent(value);
    settings_.counters.count_received(value);
    return events_.on_tensor(to_rank, tag, std::move(value));
  }
  tensor_header header{tag, value.type(), value.extents(), std::nullopt};
  if (settings_.verify_tensors) header.body_code = settings_.key.code(std::as_const(value).bytes());
  ucx_silence failures_are_reported_as_events;
  bool done = true;
  {
    std::lock_guard lock(data_mutex_);
    // The generation may have changed since.
    if (tag.generation == gate_.current() && gate_.is_open())
      done = data_->send(to_rank, std::move(header), value);
  }
  if (!done) wakeup_.wake();
}

void ucx_transport::run() {
  ucx_silence failures_are_reported_as_events;
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
  bool data = progress_data();
  judge_suspicions();
  return control || data;
}

bool ucx_transport::progress_control() {
  control_mutex_.let_others_pass();
  bool worked = false;
  std::vector<control_arrival> arrivals;
  std::vector<peer_failure> failures;
  {
    std::lock_guard lock(control_mutex_);
    worked = control_.progress();
    arrivals = control_.take_arrivals();
    failures = control_.take_failures();
  }
  for (const auto& arrival : arrivals) {
    ++settings_.counters.control_frames_received;
    events_.on_control(arrival.from_rank, arrival.generation, arrival.body);
  }
  for (const auto& failure : failures) events_.on_peer_error(failure.rank, failure.cause);
  return worked || !arrivals.empty() || !failures.empty();
}

bool ucx_transport::progress_data() {
  data_mutex_.let_others_pass();
  bool worked = false;
  std::uint64_t generation = 0;
  std::vector<tensor_arrival> arrivals;
  std::vector<peer_failure> failures;
  {
    std::lock_guard lock(data_mutex_);
    if (!data_) return false;
    generation = gate_.current();
    worked = data_->progress();
    arrivals = data_->take_arrivals();
    failures = data_->take_failures();
  }
  for (auto& arrival : arrivals) deliver(arrival);
  for (auto& failure : failures)
    suspicions_.push_back({clock::now() + data_failure_patience, generation, std::move(failure)});
  return worked || !arrivals.empty() || !failures.empty();
}

void ucx_transport::deliver(tensor_arrival& arrival) {
  const auto& header = arrival.header;
  if (header.tag.generation < gate_.current()) {
    ++settings_.counters.stale_frames;
    return;
  }
  if (settings_.verify_tensors &&
      (!header.body_code ||
       !same_code(*header.body_code, settings_.key.code(std::as_const(arrival.value).bytes())))) {
    ++settings_.counters.bad_frames;
    return break_connection(gate_.current(), {arrival.from_rank, "it sent a tensor that is not authentic"});
  }
  settings_.counters.count_received(arrival.value);
  events_.on_tensor(arrival.from_rank, header.tag, std::move(arrival.value));
}

void ucx_transport::judge_suspicions() {
  for (; !suspicions_.empty() && suspicions_.front().due <= clock::now(); suspicions_.pop_front())
    break_connection(suspicions_.front().generation, suspicions_.front().failure);
}

/// How long the progress thread may sleep; negative is for ever.
std::chrono::milliseconds ucx_transport::until_next_judgement() const {
  if (suspicions_.empty()) return std::chrono::milliseconds(-1);
  auto left = suspicions_.front().due - clock::now();
  return std::max(std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(left));
}

/// What fails on the data plane ends the peer's control connection, once, and the next progress_control
/// reports it. Unless that is the connection of a later generation by now.
void ucx_transport::break_connection(std::uint64_t generation, const peer_failure& failure) {
  std::lock_guard lock(control_mutex_);
  if (generation == gate_.current()) control_.break_connection(failure);
}

/// Sleeps until a plane has something to do. Planes are armed after the sleep was announced, so a send that
/// stays in progress either is seen by them or wakes this thread.
void ucx_transport::wait_for_events(clock::duration idle) {
  wakeup_.announce_sleep();
  bool armed = !stop_;
  auto descriptors = arm(armed);
  if (armed)
    wakeup_.sleep(descriptors, until_next_judgement());
  else if (idle > patient_poll)
    wakeup_.sleep(descriptors, poll_step);
  else {
    wakeup_.cancel_sleep();
    std::this_thread::yield();
  }
}

std::array<int, 2> ucx_transport::arm(bool& armed) {
  std::array<int, 2> descriptors = {-1, -1};
  auto prepare = [&](auto& plane) {
    armed = armed && !plane.progress() && plane.arm();
    return plane.event_fd();
  };
  {
    std::lock_guard lock(control_mutex_);
    descriptors[0] = prepare(control_);
  }
  std::lock_guard lock(data_mutex_);
  if (data_) descriptors[1] = prepare(*data_);
  return descriptors;
}

}  // namespace

std::unique_ptr<transport> make_ucx_transport(const ucx_transport_options& options,
                                              transport_events& events) {
  return std::make_unique<ucx_transport>(options, events);
}

}  // namespace troupe
