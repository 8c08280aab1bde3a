#pragma once
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/actor/message_storage.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::bench {

/// What the probe of one process sends to that of another.
struct probe_plan {
  std::int64_t size_bytes = 8;
  std::uint64_t messages = 1;       ///< how many the asking one sends, 1 or more
  std::uint64_t window = 1;         ///< how many of them may be unanswered
  bool answer_in_full = true;       ///< with the tensor that came, else with one byte
  std::chrono::nanoseconds spin{};  ///< how long the asking one polls for an answer before it sleeps
};

/// When the first message was sent and each answer came; steady clock, in ns.
using probe_times = std::vector<std::int64_t>;

/// Program -> asking probe: measure. `done` is called on the probe's thread; never, if the other process is
/// lost, with which the job ends.
struct start_probe {
  probe_plan plan;
  std::function<void(probe_times)> done = nullptr;
};

/// Program -> answering probe: the other one may begin; answer until the end, polling for `spin`.
struct answer_probes {
  std::chrono::nanoseconds spin{};
};

/// Transport -> probe: a tensor that came while the probe was not waiting in the transport.
struct probe_arrived {
  transport::tensor_tag tag;
  tensor value;
};

struct probe_options {
  int peer_rank = 0;                     ///< whose probe it talks to
  std::uint64_t generation = 0;          ///< the one the transport is in
  transport::transport* link = nullptr;  ///< outlives the actor
};

/// Measures how long tensors take between the actors of two processes: one asks, the other answers.
///
/// States: idle -> asking (start_probe) -> idle; idle -> answering (answer_probes).
///
///   message        -> reply
///   start_probe    -> tensors to the other; done()
///   answer_probes  -> "ready" to the other
///   probe_arrived  -> the next message, or an answer
///
/// Monitors nobody. Detached: while it asks or answers it waits in the transport, as device_actor does.
class probe_state : private transport::tensor_waiter {
 public:
  static constexpr const char* actor_name = "probe";
  probe_state(caf::event_based_actor* self, const probe_options& options) : self_(self), options_(options) {}
  ~probe_state() override { options_.link->stop_receiving(*this); }
  caf::behavior make_behavior();

 private:
  enum class phase { idle, asking, answering };

  void on_start(const start_probe& command);
  void on_answer_probes(const answer_probes& command);
  void on_arrived(const probe_arrived& arrived);

  bool take(int from_rank, const transport::tensor_tag& tag, tensor& value) override;
  bool waits() const override { return phase_ != phase::idle && self_->mailbox().empty(); }
  void handle(const transport::tensor_tag& tag, tensor&& value);
  void send_more();
  void send(std::uint64_t number, bool answer_in_full, tensor value);
  void end();
  void receive();

  // constant
  caf::event_based_actor* self_;
  probe_options options_;
  const tensor acknowledgement_ = tensor::zeros({1}, dtype::u8);

  phase phase_ = phase::idle;
  bool peer_is_ready_ = false;
  std::chrono::nanoseconds spin_{};

  // while asking
  start_probe command_;
  tensor payload_;
  std::uint64_t sent_ = 0;
  probe_times times_;
};

}  // namespace troupe::bench

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::bench::start_probe)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::bench::answer_probes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::bench::probe_arrived)
