#pragma once
#include <spdlog/logger.h>

#include <atomic>
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "troupe/disk_writer/messages.hpp"
#include "troupe/stage/messages.hpp"

namespace troupe {

struct disk_writer_options {
  std::string host;
  /// Makes the calls that wait (disk_actor.hpp); none: this job keeps no snapshots on disk.
  caf::actor disk;
  /// Counts what the disk has done, about every 64 MiB; written by `disk`.
  std::shared_ptr<std::atomic<std::uint64_t>> progress = std::make_shared<std::atomic<std::uint64_t>>(0);
  /// A disk that does nothing for so long has stalled, which is warned about.
  std::chrono::seconds stalled_after = std::chrono::seconds(10);
  /// A disk that has stalled for so long is given up: everyone who waits for it is told so, and everyone who
  /// asks before it has gone on. It is used again when it goes on.
  std::chrono::seconds give_up_after = std::chrono::seconds(120);
  std::shared_ptr<spdlog::logger> log;
};

/// Writes, verifies and reads snapshots on disk, off the training path, through an actor that waits for the
/// disk in its place.
///
/// Of each stage it holds at most two states whatever the disk does. When a third comes, the older one that
/// is not being written is skipped and told as not written.
///
///   message           -> reply                          errors
///   writer_generation ->
///   write_part        -> part_written to the scheduler  not written or skipped: in part_written, warned
///   commit_snapshot   -> snapshot_committed             the manifest cannot be written: warned
///   find_on_disk      -> found_on_disk                  the folder cannot be read
///   read_results      -> results_read                   missing or damaged file
///   read_from_disk    -> stage_copy                     missing or damaged part
///   discard_parts     ->
///   list_parts        -> held_parts, without parts: since when nothing was written
///
/// Every request is answered, at the latest `give_up_after` after the disk last did something: who asks needs
/// no time limit of its own, and large states may take their time. Linked to the disk actor: they end
/// together. Scheduled: it never waits.
class disk_writer_state {
 public:
  static constexpr const char* actor_name = "disk writer";
  disk_writer_state(caf::event_based_actor* self, disk_writer_options options);
  caf::behavior make_behavior();

 private:
  using clock = std::chrono::steady_clock;
  /// Something for the disk to do.
  struct order {
    std::optional<std::uint32_t> written_stage;  ///< whose state it holds; none: it writes no part
    std::function<void(std::uint64_t number)> begin;
    std::function<void(const std::string& why)> refuse;
  };

  void on_generation(const writer_generation& begun);
  void on_write(const write_part& wanted);
  void on_discard(const discard_parts& wanted);
  held_parts on_list() const;
  void on_look(const look_at_disk& look);

  template <class Answer, class Request>
  caf::result<Answer> pass_on(const Request& request);
  template <class Answer, class Request, class Done, class Failed>
  void ask_disk(std::uint64_t number, Request request, Done done, Failed failed);
  order order_to_write(const write_part& wanted);
  void tell_written(const write_part& wanted, const manifest_part& entry, const std::string& problem);
  void enqueue(order added);
  void skip_waiting(std::uint32_t stage);
  void begin_next();
  bool is_current(std::uint64_t number);
  void give_up();
  double stalled_s() const;

  // constant
  caf::event_based_actor* self_;
  disk_writer_options options_;
  // state
  clock::time_point last_on_disk_;  ///< when the newest part was written, or the job began
  std::deque<order> waiting_;
  std::uint64_t number_ = 0;                    ///< of the newest order that was begun
  bool busy_ = false;                           ///< the disk is at it
  bool given_up_ = false;                       ///< nobody waits for it any more
  std::optional<std::uint32_t> current_stage_;  ///< whose part it writes, if it writes one
  std::function<void(const std::string&)> refuse_current_;
  clock::time_point moved_;  ///< when the disk last did something
  std::uint64_t seen_progress_ = 0;
  bool stall_told_ = false;  ///< this stall was warned about
  bool skips_told_ = false;  ///< that states are skipped was, since the disk last had nothing to do
  // current generation
  std::uint64_t generation_ = 0;
  caf::actor scheduler_;
};

}  // namespace troupe
