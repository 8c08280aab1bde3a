// How a World ends: regularly, by a stop request, or by an exception of the program.
#include <cstdio>
#include <exception>

#include "troupe/config/program_frame.hpp"
#include "troupe/detail/world_state.hpp"
#include "troupe/world.hpp"

namespace troupe {
namespace {

/// Adapts a process to the interface of the program's frame.
class stoppable_process final : public config::stoppable_world {
 public:
  explicit stoppable_process(std::shared_ptr<actors::process::process> self) : self_(std::move(self)) {}
  void request_stop(int signal) override { self_->request_stop(signal, cluster::stop_scope::member); }
  bool stop_requested() const override { return self_->stop_signal() != 0; }
  bool job_ended() const override { return self_->job_ended(); }
  int stopped_by() const override { return self_->job_ended() ? self_->stop_signal() : 0; }
  void report_failure(const std::string& message, failure_kind kind) override {
    self_->report_failure(message, kind);
  }

 private:
  std::shared_ptr<actors::process::process> self_;
};

}  // namespace

void World::enter_frame(state& shared) {
  if (shared.options.frame) shared.options.frame->enter(std::make_shared<stoppable_process>(shared.self));
}

void World::request_stop(int signal) { shared_->self->request_stop(signal, cluster::stop_scope::job); }

/// If an exception is unwinding the stack, its text is not known here: the frame keeps the process until it
/// has reported the text to the job.
World::state::~state() {
  if (!self) return;
  show_profile();
  default_group.reset();
  const auto& frame = options.frame;
  if (std::uncaught_exceptions() > 0) {
    self->abandon();
    if (frame) frame->leave_failing();
  } else {
    self->leave();
    if (frame) frame->leave();
  }
}

void World::state::show_profile() const {
  if (!profile) return;
  auto rank = self->rank();
  auto text = shown_profile == config::profile_form::json
                  ? profile->json(rank)
                  : profile->text("communication of rank " + std::to_string(rank));
  std::fputs(text.c_str(), stderr);
}

}  // namespace troupe
