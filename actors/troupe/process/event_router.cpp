#include "troupe/process/event_router.hpp"

#include <limits>

#include "troupe/error/errors.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::actors::process {

void event_router::attach(caf::actor supervisor) {
  std::lock_guard lock(mutex_);
  supervisor_ = std::move(supervisor);
}

void event_router::on_control(int from_rank, std::uint64_t generation, std::span<const std::byte> body) {
  try {
    gate.deliver(from_rank, generation, body);
  } catch (const wire::decode_error& problem) {
    tell(messages::peer_broken{from_rank, generation,
                               std::string("it sent a message that cannot be read: ") + problem.what()});
  }
}

void event_router::on_tensor(int, const transport::tensor_tag& tag, tensor value) {
  directory.deliver(tag, std::move(value));
}

void event_router::on_tensor_lost(int rank, std::uint64_t generation, const std::string& cause) {
  tell(messages::tensor_lost{rank, generation, cause});
}

void event_router::on_peer_error(int rank, std::uint64_t generation, const std::string& cause) {
  tell(messages::peer_broken{rank, generation, cause});
}

void event_router::on_fence(std::uint64_t generation, const std::vector<cluster::member_loss>& losses) {
  fenced->store(generation, std::memory_order_release);
  tell(messages::fence_raised{generation, losses});
  std::vector<collective::lost_process> lost;
  std::string cause;
  for (const auto& loss : losses) {
    if (loss.rank >= 0 && loss.rank != rank_) lost.push_back({loss.rank, loss.cause});
    cause += (cause.empty() ? "" : "; ") +
             (loss.rank >= 0 ? "rank " + std::to_string(loss.rank) + " was lost: " + loss.cause : loss.cause);
  }
  members.on_fence(generation, lost, cause);
}

void event_router::on_view(const cluster::membership_view& view) {
  std::vector<std::uint32_t> incarnations;
  for (const auto& member : view.members) incarnations.push_back(member.incarnation);
  members.on_view(view.generation, incarnations);
  tell(messages::view_formed{view});  // then: the job makes groups of these members
}

void event_router::on_recovered(const cluster::recovery_report& report) {
  tell(messages::recovery_done{report});
}

void event_router::on_job_done() { tell(job::job_done{}); }

void event_router::on_job_failed(const std::string& cause, failure_kind kind) {
  note_end();
  tell(messages::job_ended{cause, kind});
  members.on_end(cause);
}

void event_router::on_stop(int signal) {
  stop_signal_ = signal;
  tell(messages::stop_requested{signal});
}

void event_router::on_job_stopped(int signal, const std::string& what) {
  stop_signal_ = signal;
  note_end();
  tell(messages::job_was_stopped{signal, what});
  members.on_end("stopped " + what, signal);
}

/// Before anyone is told, since the program may ask at once.
void event_router::note_end() {
  job_ended_ = true;
  fenced->store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_release);
}

}  // namespace troupe::actors::process
