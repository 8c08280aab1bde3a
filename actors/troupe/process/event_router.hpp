#pragma once
#include <atomic>
#include <caf/actor.hpp>
#include <caf/send.hpp>
#include <cstdint>
#include <memory>
#include <mutex>

#include "troupe/cluster/membership.hpp"
#include "troupe/collective/group/process_table.hpp"
#include "troupe/link/inbound_gate.hpp"
#include "troupe/supervisor/state/stage_directory.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::process {

/// Receives the events of transport and membership on their threads and forwards them. Control frames go to
/// the inbound gate, tensors to the stage directory, membership events as messages to the supervisor, losses
/// also to the process table. Thread-safe.
class event_router final : public transport::transport_events, public cluster::membership_events {
 public:
  event_router(int rank, int world_size) : members(world_size), rank_(rank) {}

  collective::process_table members;
  link::inbound_gate gate;
  supervisor::stage_directory directory;
  /// The newest fenced generation. Tensors of this and older generations are dropped.
  std::shared_ptr<std::atomic<std::uint64_t>> fenced = std::make_shared<std::atomic<std::uint64_t>>(0);

  /// Events go to `supervisor` from now on; if it is invalid they are dropped.
  void attach(caf::actor supervisor);

  void on_control(int from_rank, std::uint64_t generation, std::span<const std::byte> body) override;
  void on_tensor(int from_rank, const transport::tensor_tag& tag, tensor value) override;
  void on_peer_error(int rank, std::uint64_t generation, const std::string& cause) override;
  void on_tensor_lost(int rank, std::uint64_t generation, const std::string& cause) override;

  void on_fence(std::uint64_t generation, const std::vector<cluster::member_loss>& losses) override;
  void on_view(const cluster::membership_view& view) override;
  void on_recovered(const cluster::recovery_report& report) override;
  void on_job_done() override;
  void on_job_failed(const std::string& cause, failure_kind kind) override;
  void on_stop(int signal) override;
  void on_job_stopped(int signal, const std::string& summary) override;

  /// The signal that stops the whole job; 0: none.
  int stop_signal() const { return stop_signal_; }
  /// Whether the job has ended, well or not.
  bool has_ended() const { return job_ended_; }

 private:
  template <class Message>
  void tell(Message message) {
    std::lock_guard lock(mutex_);
    if (supervisor_) caf::anon_send(supervisor_, std::move(message));
  }

  void note_end();

  int rank_;
  std::atomic<int> stop_signal_ = 0;
  std::atomic<bool> job_ended_ = false;
  std::mutex mutex_;
  caf::actor supervisor_;
};

}  // namespace troupe::actors::process
