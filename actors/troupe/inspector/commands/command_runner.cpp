#include "troupe/inspector/commands/command_runner.hpp"

#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/inspector/commands/command_steps.hpp"
#include "troupe/inspector/views/names.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/supervisor_commands.hpp"

namespace troupe::actors::inspector {

command_runner::command_runner(caf::event_based_actor* self, std::shared_ptr<inspected_job> job,
                               const job_view& view, std::chrono::milliseconds command_timeout)
    : self_(self),
      job_(std::move(job)),
      commands_(job_->commands()),
      view_(view),
      command_timeout_(command_timeout) {
  if (!commands_) return;
  follow_or_lose();
  auto weak = caf::actor_cast<caf::actor_addr>(self_->address());
  commands_->on_post([weak] {
    if (auto inspector = caf::actor_cast<caf::actor>(weak))
      caf::anon_send(inspector, messages::commands_posted{});
  });
}

command_runner::~command_runner() {
  if (commands_) commands_->on_post({});
}

/// Answers to requests of the earlier inspector do not come here.
void command_runner::follow_or_lose() {
  for (const auto& one : commands_->all())
    if (one.is_passed && !is_disruptive(one.command.action))
      end(one.id, {command_result::lost,
                   "the inspector failed while it had the command, which was carried out or not: look at the "
                   "job, and repeat what it lacks",
                   {}});
}

void command_runner::begin_generation(const messages::inspected_generation& begun) {
  generation_ = begun;
  has_report_ = false;
  if (!commands_) return;
  bool is_level_told = false;
  for (const auto& one : commands_->all()) {
    if (one.is_passed && one.command.action == control_action::snapshot) ask_for_snapshot(one.id);
    if (!one.is_passed || one.command.action != control_action::log_level) continue;
    ask_for_level(one.command.level, one.id);
    is_level_told = true;
  }
  if (!is_level_told && !level_.empty()) ask_for_level(level_, {});
  on_posted();
}

void command_runner::on_posted() {
  if (!commands_ || generation_.supervisors.empty()) return;
  for (const auto& one : commands_->all()) {
    since_.try_emplace(one.id, self_->clock().now());
    if (!one.is_passed && !is_disruptive(one.command.action)) pass(one);
  }
  pass_next_disruptive();
}

void command_runner::pass(const open_command& one) {
  commands_->pass(one.id);
  switch (one.command.action) {
    case control_action::pause:
    case control_action::resume:
    case control_action::step:
      return pass_pause(one);
    case control_action::snapshot:
      return ask_for_snapshot(one.id);
    case control_action::log_level:
      level_ = one.command.level;
      return ask_for_level(one.command.level, one.id);
    case control_action::restart:
    case control_action::kill:
      return pass_end(one);
  }
}

// ---- pause, resume, step

/// The supervisor repeats it in later generations, and the answer comes once.
void command_runner::pass_pause(const open_command& one) {
  const auto& own = generation_.supervisors.at(static_cast<std::size_t>(view_.rank));
  self_->request(own, command_timeout_, messages::carry_out_pause{pause_request_of(one.command)})
      .then(
          [this, id = one.id, action = one.command.action](const messages::pause_carried_out& done) {
            if (action == control_action::resume)
              return end(id, {command_result::done, "the job goes on", {}});
            stands_at_[id] = done.version;
            note_standing();
          },
          [this, id = one.id](const caf::error& problem) { fail(id, problem); });
}

void command_runner::note_standing() {
  if (!has_report_) return;
  const auto& pause = view_.scheduler->pause;
  for (const auto& [id, version] : std::map(stands_at_))
    if (auto outcome = standing_outcome(pause, version)) end(id, *outcome);
}

// ---- snapshot, log level

void command_runner::ask_for_snapshot(const std::string& id) {
  auto generation = generation_.generation;
  self_->request(generation_.scheduler, command_timeout_, messages::save_snapshot{})
      .then(
          [this, id, generation](const messages::snapshot_saved& saved) {
            if (generation != generation_.generation) return;
            auto step = saved.step * (view_.scheduler ? steps_of_run(*view_.scheduler) : 1);
            end(id,
                {command_result::done, "the snapshot of step " + std::to_string(step) + " is on disk", step});
          },
          [this, id, generation](const caf::error& problem) {
            if (generation == generation_.generation) fail(id, problem);
          });
}

/// Without an id no command waits for it: new processes get the level that the others have.
void command_runner::ask_for_level(const std::string& level, const std::string& id) {
  auto generation = generation_.generation;
  auto& waiting = without_answer_[id];
  waiting.clear();
  for (int rank = 0; rank < view_.world_size; ++rank) waiting.insert(rank);
  for (int rank = 0; rank < view_.world_size; ++rank)
    self_
        ->request(generation_.supervisors.at(static_cast<std::size_t>(rank)), command_timeout_,
                  messages::set_log_level{generation, level})
        .then(
            [this, id, level, rank, generation](const messages::command_carried_out&) {
              auto found = without_answer_.find(id);
              if (generation != generation_.generation || found == without_answer_.end()) return;
              found->second.erase(rank);
              if (found->second.empty())
                end(id, {command_result::done, "all processes log from " + level + " on", {}});
            },
            [this, id, generation](const caf::error& problem) {
              if (generation == generation_.generation) fail(id, problem);
            });
}

// ---- restart, kill

void command_runner::pass_next_disruptive() {
  for (const auto& one : commands_->all()) {
    if (!is_disruptive(one.command.action)) continue;
    if (one.is_passed) return;  // one at a time
    auto wait = reason_to_wait(one.target, has_report_ ? &*view_.scheduler : nullptr, view_.world_size);
    waits_for_[one.id] = wait;
    if (!wait.empty()) return;
    return pass_end(one);
  }
}

void command_runner::pass_end(const open_command& one) {
  const auto& target = one.target;
  auto generation = generation_.generation;
  auto answered = [this, id = one.id](const messages::command_carried_out& done) {
    commands_->pass(id, done.starts);
  };
  auto failed = [this, id = one.id, generation](const caf::error& problem) {
    on_end_answer(id, generation, problem);
  };
  commands_->pass(one.id, starts_in(view_, target));
  const auto& supervisor = generation_.supervisors.at(static_cast<std::size_t>(target.rank));
  std::uint8_t is_failure = one.command.action == control_action::kill ? 1 : 0;
  if (target.child)
    self_
        ->request(supervisor, command_timeout_,
                  messages::end_actor{generation, one.id, target.incarnation, *target.child, is_failure})
        .then(answered, failed);
  else
    self_
        ->request(supervisor, command_timeout_,
                  messages::end_process{generation, one.id, target.incarnation, is_failure})
        .then(answered, failed);
}

/// If the link has ended, the next report of the process tells whether the command came there.
void command_runner::on_end_answer(const std::string& id, std::uint64_t generation,
                                   const caf::error& problem) {
  bool is_unsure = actor::code_of(problem) == actor::actor_error::lost || actor::has_ended(problem);
  if (!is_unsure) return fail(id, problem);
  unsure_[id] = generation;
}

void command_runner::on_process(const messages::process_report& report) {
  if (!commands_) return;
  for (const auto& one : commands_->all()) {
    if (!one.is_passed || !is_disruptive(one.command.action) || one.target.rank != report.rank) continue;
    auto outcome = ended_outcome(one, report);
    auto unsure = unsure_.find(one.id);
    if (!outcome && unsure != unsure_.end() && report.generation > unsure->second)
      outcome = {command_result::lost,
                 "a recovery began while the command was on its way, and it was not carried out: try again",
                 {}};
    if (outcome) end(one.id, *outcome);
  }
}

// ---- all

void command_runner::on_scheduler() {
  has_report_ = true;
  if (!commands_) return;
  note_standing();
  pass_next_disruptive();
}

void command_runner::on_poll() {
  if (!commands_) return;
  on_posted();
  for (const auto& one : commands_->all()) {
    auto since = since_.find(one.id);
    if (since == since_.end() || self_->clock().now() - since->second < command_timeout_) continue;
    auto waits = waits_for_.find(one.id);
    if (one.is_passed)
      end(one.id, timeout_outcome(one.command, stands_at_.contains(one.id), command_timeout_));
    else
      end(one.id, {command_result::refused,
                   "it could not be carried out: " + (waits == waits_for_.end() ? "" : waits->second),
                   {}});
  }
}

void command_runner::fail(const std::string& id, const caf::error& problem) {
  for (const auto& one : commands_->all()) {
    if (one.id != id) continue;
    if (problem == caf::sec::request_timeout || actor::code_of(problem) == actor::actor_error::timed_out)
      return end(id, timeout_outcome(one.command, false, command_timeout_));
    if (actor::code_of(problem) == actor::actor_error::unavailable)
      return end(id, {command_result::refused, actor::describe(problem), {}});
    // A new generation has begun, in which the command is repeated.
    bool is_repeated =
        one.command.action == control_action::log_level || one.command.action == control_action::snapshot;
    if (is_repeated && (actor::code_of(problem) == actor::actor_error::lost || actor::has_ended(problem)))
      return;
    return end(id, {command_result::failed, actor::describe(problem), {}});
  }
}

void command_runner::end(const std::string& id, const command_outcome& outcome) {
  since_.erase(id);
  waits_for_.erase(id);
  stands_at_.erase(id);
  without_answer_.erase(id);
  unsure_.erase(id);
  end_command(*job_, id, outcome);
}

}  // namespace troupe::actors::inspector
