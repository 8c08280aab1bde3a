#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/inspector/commands/command_outcome.hpp"
#include "troupe/inspector/commands/command_target.hpp"
#include "troupe/inspector/commands/control_command.hpp"

namespace troupe::actors::inspector {

/// A command that was taken and has no outcome yet.
struct open_command {
  std::string id;  ///< unique in the job
  control_command command;
  command_target target;
  bool is_passed = false;  ///< on to who carries it out
  std::optional<std::uint32_t> starts_before =
      {};  ///< of an actor that was told to end: how often it was started
};

/// The commands on their way from the server's thread to the inspector's actor, and those that it has not
/// ended yet: an inspector that is started again finds them here. Thread-safe.
class open_commands {
 public:
  /// Further commands are refused until some of these have ended.
  static constexpr std::size_t max_open = 64;
  static constexpr std::size_t max_ended = 64;

  /// `on_end`: called with each command that ends, on the thread that ends it; must not block.
  explicit open_commands(std::function<void(const open_command&, const command_outcome&)> on_end = {})
      : on_end_(std::move(on_end)) {}

  enum class posted : std::uint8_t { taken, full, nobody };
  /// nobody: no inspector runs that would take it.
  posted post(open_command command);
  /// In the order in which they came.
  std::vector<open_command> all() const;
  /// It was passed on.
  void pass(const std::string& id, std::optional<std::uint32_t> starts_before = {});
  /// It is open no longer. None: it was not open.
  std::optional<command_row> end(const std::string& id, const command_outcome& outcome);
  /// A command of the process that this one has replaced has an outcome.
  void add_ended(command_row one);
  /// What /api/v1/commands shows: the newest that have ended, max_ended at most, and then those that are
  /// open.
  nlohmann::ordered_json rows() const;

  /// Called after each post, on its thread; null: no inspector runs. When this returns, the earlier one is
  /// not running.
  void on_post(std::function<void()> call);

 private:
  void keep(command_row one);

  const std::function<void(const open_command&, const command_outcome&)> on_end_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<open_command> commands_;
  std::deque<command_row> ended_;

  std::mutex calling_;
  std::function<void()> call_;  ///< guarded by calling_
};

/// Ends a command of the job and tells those who watch. Nothing happens if it is not open.
void end_command(inspected_job& job, const std::string& id, const command_outcome& outcome);

/// Of a command that is open when the job ends.
command_outcome outcome_at_end(const open_command& command);

}  // namespace troupe::actors::inspector
