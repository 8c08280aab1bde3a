#include "troupe/inspector/commands/open_commands.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "troupe/inspector/views/views.hpp"
#include "troupe/posix/unix_time.hpp"

namespace troupe::actors::inspector {

using json = nlohmann::ordered_json;

namespace {

command_row row_of(const open_command& one) {
  return {one.id, std::string(to_string(one.command.action)), to_string(one.target), one.target.rank, {}, 0};
}

}  // namespace

open_commands::posted open_commands::post(open_command command) {
  std::lock_guard calling(calling_);
  if (!call_) return posted::nobody;
  {
    std::lock_guard lock(mutex_);
    if (commands_.size() >= max_open) return posted::full;
    commands_.push_back(std::move(command));
  }
  call_();
  return posted::taken;
}

std::vector<open_command> open_commands::all() const {
  std::lock_guard lock(mutex_);
  return commands_;
}

void open_commands::pass(const std::string& id, std::optional<std::uint32_t> starts_before) {
  std::lock_guard lock(mutex_);
  for (auto& one : commands_)
    if (one.id == id) {
      one.is_passed = true;
      if (starts_before) one.starts_before = starts_before;
    }
}

std::optional<command_row> open_commands::end(const std::string& id, const command_outcome& outcome) {
  open_command open;
  command_row ended;
  {
    std::lock_guard lock(mutex_);
    auto found = std::ranges::find(commands_, id, &open_command::id);
    if (found == commands_.end()) return {};
    open = std::move(*found);
    commands_.erase(found);
    ended = row_of(open);
    ended.outcome = outcome;
    ended.at_ms = posix::unix_now_ms();
    keep(ended);
  }
  if (on_end_) on_end_(open, outcome);
  return ended;
}

void open_commands::add_ended(command_row one) {
  std::lock_guard lock(mutex_);
  keep(std::move(one));
}

void open_commands::keep(command_row one) {
  ended_.push_back(std::move(one));
  if (ended_.size() > max_ended) ended_.pop_front();
}

json open_commands::rows() const {
  std::lock_guard lock(mutex_);
  auto rows = json::array();
  for (const auto& one : ended_) rows.push_back(command_json(one));
  for (const auto& one : commands_) rows.push_back(command_json(row_of(one)));
  return rows;
}

void open_commands::on_post(std::function<void()> call) {
  std::lock_guard calling(calling_);
  call_ = std::move(call);
}

void end_command(inspected_job& job, const std::string& id, const command_outcome& outcome) {
  if (auto ended = job.commands()->end(id, outcome))
    job.events()->append("control", text_of(command_json(*ended)));
}

command_outcome outcome_at_end(const open_command& command) {
  return {command_result::lost,
          command.is_passed ? "the job has ended while the command was being carried out"
                            : "the job has ended before the command was carried out",
          {}};
}

}  // namespace troupe::actors::inspector
