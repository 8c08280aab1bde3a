#include "troupe/snapshot_writer/snapshot_writer_actor.hpp"

#include <algorithm>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/messages/scheduler.hpp"

namespace troupe::actors::snapshot_writer {
namespace {

/// Limit of states of one stage that wait or are being written.
constexpr std::ptrdiff_t most_states = 2;
constexpr auto no_folder = "this job keeps no snapshots on disk: it has no folder for them";

}  // namespace

snapshot_writer_state::snapshot_writer_state(caf::event_based_actor* self, snapshot_writer_options options)
    : self_(self), options_(std::move(options)), last_on_disk_(self->clock().now()), moved_(last_on_disk_) {}

caf::behavior snapshot_writer_state::make_behavior() {
  return {[this](const messages::writer_generation& begun) { on_generation(begun); },
          [this](const messages::write_part& wanted) { on_write(wanted); },
          [this](const messages::commit_snapshot& wanted) {
            return pass_on<messages::snapshot_committed>(wanted);
          },
          [this](const messages::find_on_disk& wanted) -> caf::result<messages::found_on_disk> {
            if (!options_.disk) return messages::found_on_disk{};
            return pass_on<messages::found_on_disk>(wanted);
          },
          [this](const messages::read_results& wanted) { return pass_on<messages::results_read>(wanted); },
          [this](const messages::read_from_disk& wanted) { return pass_on<messages::stage_copy>(wanted); },
          [this](const messages::discard_parts& wanted) { on_discard(wanted); },
          [this](const messages::list_parts&) { return on_list(); },
          [this](const messages::check_disk& look) { on_look(look); }};
}

void snapshot_writer_state::on_generation(const messages::writer_generation& begun) {
  generation_ = begun.generation;
  scheduler_ = begun.scheduler;
  last_on_disk_ = self_->clock().now() - std::chrono::duration_cast<clock::duration>(
                                             std::chrono::duration<double>(begun.since_disk_s));
  // Queued states were made by an earlier generation.
  std::erase_if(waiting_, [](const operation& one) { return one.written_part.has_value(); });
}

void snapshot_writer_state::on_write(const messages::write_part& wanted) {
  if (wanted.generation != generation_ || !options_.disk) return;
  skip_waiting(wanted.part);
  enqueue(operation_to_write(wanted));
}

snapshot_writer_state::operation snapshot_writer_state::operation_to_write(
    const messages::write_part& wanted) {
  auto held = std::make_shared<messages::write_part>(wanted);
  messages::write_part named{wanted.generation, wanted.step, wanted.part, {}};
  auto refuse = [this, named](const std::string& why) { tell_written(named, {}, why); };
  auto failed = [this, named, refuse](const std::string& why) {
    options_.log->warn("snapshot not written, training continues step={} part=\"{}\" reason=\"{}\"",
                       named.step, to_string(named.part), why);
    refuse(why);
  };
  auto begin = [this, held, named, failed](std::uint64_t number) {
    auto written = [this, named](const messages::part_on_disk& part) {
      last_on_disk_ = self_->clock().now();
      tell_written(named, part.entry, {});
    };
    ask_disk<messages::part_on_disk>(number, std::move(*held), written, failed);
  };
  return {wanted.part, begin, refuse};
}

/// No actor waits for the removal: parts that cannot be removed now are removed when the disk is full, or by
/// a later commit.
void snapshot_writer_state::on_discard(const messages::discard_parts& wanted) {
  if (!options_.disk) return;
  auto failed = [this, step = wanted.step](const std::string& why) {
    options_.log->warn("parts of a failed snapshot not removed step={} reason=\"{}\"", step, why);
  };
  auto begin = [this, wanted, failed](std::uint64_t number) {
    ask_disk<messages::parts_discarded>(
        number, wanted, [](const messages::parts_discarded&) {}, failed);
  };
  enqueue({{}, begin, [](const std::string&) {}});
}

void snapshot_writer_state::tell_written(const messages::write_part& wanted,
                                         const snapshot::manifest_part& entry, const std::string& problem) {
  if (wanted.generation != generation_) return;
  auto written = entry;
  written.part = wanted.part;
  written.host = options_.host;
  self_->send(scheduler_,
              messages::part_written{wanted.generation, wanted.step, std::move(written), problem});
}

/// Queues a request for the disk actor that holds no state.
template <class Answer, class Request>
caf::result<Answer> snapshot_writer_state::pass_on(const Request& request) {
  if (!options_.disk) return actor::unavailable(no_folder);
  auto promise = self_->make_response_promise<Answer>();
  auto refuse = [promise](const std::string& why) mutable { promise.deliver(actor::unavailable(why)); };
  auto begin = [this, promise, request, refuse](std::uint64_t number) mutable {
    ask_disk<Answer>(
        number, request, [promise](const Answer& answer) mutable { promise.deliver(answer); }, refuse);
  };
  enqueue({{}, begin, refuse});
  return promise;
}

/// Sends the current operation to the disk actor. If its requester was refused meanwhile, the answer is
/// dropped.
template <class Answer, class Request, class Done, class Failed>
void snapshot_writer_state::ask_disk(std::uint64_t number, Request request, Done done, Failed failed) {
  // Without a time limit: on_look watches the progress of the disk.
  self_->request(options_.disk, caf::infinite, std::move(request))
      .then(
          [this, number, done](const Answer& answer) mutable {
            if (is_current(number)) done(answer);
            begin_next();
          },
          [this, number, failed](const caf::error& problem) mutable {
            if (actor::has_ended(problem)) return;  // this actor is about to be ended too
            if (is_current(number)) failed(actor::describe(problem));
            begin_next();
          });
}

/// Called when the disk actor has answered operation `number`: whether its requester has not been refused
/// yet.
bool snapshot_writer_state::is_current(std::uint64_t number) {
  if (stall_told_)
    options_.log->warn("the disk works again after {:.1f} s: snapshots are written again", stalled_s());
  busy_ = false;
  stall_told_ = false;
  refuse_current_ = {};
  return number == number_ && !std::exchange(given_up_, false);
}

void snapshot_writer_state::enqueue(operation added) {
  if (given_up_) return added.refuse("the disk has stalled for " + std::to_string(stalled_s()) + " s");
  waiting_.push_back(std::move(added));
  if (!busy_) begin_next();
}

void snapshot_writer_state::begin_next() {
  if (waiting_.empty()) {
    skips_told_ = false;
    return;
  }
  auto next = std::move(waiting_.front());
  waiting_.pop_front();
  busy_ = true;
  refuse_current_ = std::move(next.refuse);
  current_part_ = next.written_part;
  moved_ = self_->clock().now();
  seen_progress_ = *options_.progress;
  self_->delayed_send(self_, options_.stalled_after, messages::check_disk{++number_});
  next.begin(number_);
}

void snapshot_writer_state::skip_waiting(const layout::part_id& part) {
  auto held = std::ranges::count(waiting_, std::optional(part), &operation::written_part) +
              (busy_ && current_part_ == part ? 1 : 0);
  if (held < most_states) return;
  auto older = std::ranges::find(waiting_, std::optional(part), &operation::written_part);
  auto skipped = std::move(*older);
  waiting_.erase(older);
  auto why = "the disk has made no progress with an earlier state for " + std::to_string(stalled_s()) +
             " s, and a newer state has arrived: this one is skipped";
  if (!std::exchange(skips_told_, true))
    options_.log->warn("snapshots are skipped, training continues part=\"{}\" reason=\"{}\"", to_string(part),
                       why);
  skipped.refuse(why);
}

void snapshot_writer_state::on_look(const messages::check_disk& look) {
  if (!busy_ || look.number != number_ || given_up_) return;
  auto now = self_->clock().now();
  if (std::uint64_t progress = *options_.progress; progress != seen_progress_) {
    seen_progress_ = progress;
    moved_ = now;
  }
  if (now - moved_ >= options_.stalled_after && !stall_told_) {
    stall_told_ = true;
    options_.log->warn(
        "the disk has made no progress for {:.1f} s: training continues, snapshots wait or are skipped",
        stalled_s());
  }
  if (now - moved_ >= options_.give_up_after) return give_up();
  self_->delayed_send(self_, options_.stalled_after, look);
}

void snapshot_writer_state::give_up() {
  given_up_ = true;
  auto why = "the disk has stalled for " + std::to_string(stalled_s()) + " s";
  options_.log->error("no snapshot is written until the disk works again: {}", why);
  if (refuse_current_) std::exchange(refuse_current_, {})(why);
  for (auto& one : std::exchange(waiting_, {})) one.refuse(why);
}

double snapshot_writer_state::stalled_s() const {
  return std::chrono::duration<double>(self_->clock().now() - moved_).count();
}

messages::held_parts snapshot_writer_state::on_list() const {
  messages::held_parts held;
  held.since_disk_s = std::chrono::duration<double>(self_->clock().now() - last_on_disk_).count();
  return held;
}

}  // namespace troupe::actors::snapshot_writer
