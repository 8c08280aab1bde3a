// How a World ends: well, at somebody's wish, or by an exception of the program.
#include <cstdio>
#include <exception>

#include "troupe/config/program_frame.hpp"
#include "troupe/world.hpp"
#include "troupe/world_content.hpp"

namespace troupe {
namespace {

/// A node as the program's frame sees it.
class stoppable_node final : public stoppable_world {
 public:
  explicit stoppable_node(std::shared_ptr<node> self) : self_(std::move(self)) {}
  void request_stop(int signal) override { self_->request_stop(signal, stop_scope::member); }
  bool stop_wanted() const override { return self_->stop_signal() != 0; }
  bool job_ended() const override { return self_->job_ended(); }
  int stopped_by() const override { return self_->job_ended() ? self_->stop_signal() : 0; }
  void tell_failure(const std::string& what) override { self_->tell_failure(what); }

 private:
  std::shared_ptr<node> self_;
};

}  // namespace

void World::enter_frame(content& of) {
  if (of.options.frame) of.options.frame->enter(std::make_shared<stoppable_node>(of.self));
}

void World::request_stop(int signal) { shared_->self->request_stop(signal, stop_scope::job); }

/// Of an exception that goes through here the text is known only later: a frame keeps the node until then, so
/// that the job hears it.
World::content::~content() {
  if (!self) return;
  show_profile();
  default_group.reset();
  groups.reset();
  const auto& frame = options.frame;
  if (std::uncaught_exceptions() > 0) {
    self->abandon();
    if (frame) frame->leave_failing();
  } else {
    self->leave();
    if (frame) frame->leave();
  }
}

void World::content::show_profile() const {
  if (!profile) return;
  auto rank = self->rank();
  auto text = shown_profile == profile_form::json
                  ? profile->json(rank)
                  : profile->text("communication of rank " + std::to_string(rank));
  std::fputs(text.c_str(), stderr);
}

}  // namespace troupe
