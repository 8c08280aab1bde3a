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

#include "troupe/messages/snapshot_writer.hpp"
#include "troupe/messages/stage.hpp"

namespace troupe::actors::snapshot_writer {

struct snapshot_writer_options {
  std::string host;
  /// Performs the blocking operations (disk_actor.hpp); invalid: this job writes no snapshots to disk.
  caf::actor disk;
  /// Incremented by `disk` about every 64 MiB, so that a slow disk differs from a stalled one.
  std::shared_ptr<std::atomic<std::uint64_t>> progress = std::make_shared<std::atomic<std::uint64_t>>(0);
  /// A disk without progress for this long counts as stalled; a warning is logged.
  std::chrono::seconds stalled_after = std::chrono::seconds(10);
  /// After a stall of this length pending and new requests are answered with actor_error::unavailable, until
  /// the disk makes progress again.
  std::chrono::seconds give_up_after = std::chrono::seconds(120);
  std::shared_ptr<spdlog::logger> log;
};

/// Queues the reading and writing of snapshots on disk, so that neither training nor recovery waits for the
/// disk. A second actor (disk_actor.hpp) performs the blocking operations, one at a time.
///
/// States: idle -> busy (one operation at the disk actor, others queued) -> idle; busy -> given up (the
/// operation has stalled for give_up_after; requests are refused) -> idle, once it completes.
///
/// Memory is bounded: at most two states per part are held, the one being written and one queued. When a
/// third arrives, the queued one is skipped and reported with part_written as not written.
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
///   check_disk        ->                                warns and gives up where the disk makes no progress
///
/// Every request is answered at the latest `give_up_after` after the disk's last progress, so requesters need
/// no shorter time limit and large states may take long. If the disk actor fails, requests stay unanswered:
/// the supervisor ends this actor too, and requesters repeat them when it has introduced the next one.
/// Monitors no actor. Scheduled: its handlers do not block.
class snapshot_writer_state {
 public:
  static constexpr const char* actor_name = "snapshot writer";
  snapshot_writer_state(caf::event_based_actor* self, snapshot_writer_options options);
  caf::behavior make_behavior();

 private:
  using clock = std::chrono::steady_clock;
  /// A queued operation of the disk actor.
  struct operation {
    std::optional<layout::part_id> written_part;  ///< the part whose state it holds; none: not a write
    std::function<void(std::uint64_t number)> begin;
    std::function<void(const std::string& why)> refuse;
  };

  void on_generation(const messages::writer_generation& begun);
  void on_write(const messages::write_part& wanted);
  void on_discard(const messages::discard_parts& wanted);
  messages::held_parts on_list() const;
  void on_look(const messages::check_disk& look);

  template <class Answer, class Request>
  caf::result<Answer> pass_on(const Request& request);
  template <class Answer, class Request, class Done, class Failed>
  void ask_disk(std::uint64_t number, Request request, Done done, Failed failed);
  operation operation_to_write(const messages::write_part& wanted);
  void tell_written(const messages::write_part& wanted, const snapshot::manifest_part& entry,
                    const std::string& problem);
  void enqueue(operation added);
  void skip_waiting(const layout::part_id& part);
  void begin_next();
  bool is_current(std::uint64_t number);
  void give_up();
  double stalled_s() const;

  // constant
  caf::event_based_actor* self_;
  snapshot_writer_options options_;
  // state
  clock::time_point last_on_disk_;  ///< when the newest part was written, or the job began
  std::deque<operation> waiting_;
  std::uint64_t number_ = 0;                     ///< of the newest operation that was begun
  bool busy_ = false;                            ///< the disk actor has not answered it
  bool given_up_ = false;                        ///< the disk took too long: its requesters were refused
  std::optional<layout::part_id> current_part_;  ///< the part being written, if any
  std::function<void(const std::string&)> refuse_current_;
  clock::time_point moved_;  ///< when the disk last made progress
  std::uint64_t seen_progress_ = 0;
  bool stall_told_ = false;  ///< a warning of this stall was logged
  bool skips_told_ = false;  ///< a warning of skipped states was logged since the queue was last empty
  // current generation
  std::uint64_t generation_ = 0;
  caf::actor scheduler_;
};

}  // namespace troupe::actors::snapshot_writer
