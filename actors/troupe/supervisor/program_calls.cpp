#include "troupe/supervisor/program_calls.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "troupe/actor/actor_error.hpp"
#include "troupe/messages/gatherer.hpp"

namespace troupe::actors::supervisor {

namespace {

/// For the program, which makes a call whose result was known before.
job::call_result repeated(job::call_result result) {
  result.is_repeated = true;
  return result;
}

}  // namespace

call_queue::outcome call_queue::enter(const job::call_request& request) {
  if (request.index < completed_->size()) return {{repeated(completed_->at(request.index))}, false};
  if (next_.size() == max_waiting)
    throw std::length_error("[call_queue] expected at most " + std::to_string(max_waiting) +
                            " calls queued behind one that the program left by an exception");
  next_.push_back(request);
  return begin_next();
}

/// Starts the next queued call; those whose results are known by now are answered at once.
call_queue::outcome call_queue::begin_next() {
  outcome result;
  while (!current_ && !next_.empty()) {
    auto request = next_.front();
    next_.pop_front();
    if (request.index < completed_->size()) {
      result.told.push_back(completed_->at(request.index));
      continue;
    }
    current_ = request;
    result.begins = true;
  }
  return result;
}

call_queue::outcome call_queue::finished(const job::call_result& result, bool was_missed) {
  completed_->add(result);
  if (!current_) return {};
  // The call was entered while the previous one was still running in other processes.
  if (current_->index == completed_->size()) return {{}, true};
  if (current_->index != result.index) return {};
  current_.reset();
  auto next = begin_next();
  next.told.insert(next.told.begin(), was_missed || result.from_snapshot ? repeated(result) : result);
  return next;
}

program_calls::program_calls(caf::event_based_actor* self, const supervisor_options& options,
                             const generation_runner& generations, const process_connections& connections,
                             job_children& children, const pause_requests& pauses,
                             std::shared_ptr<job::call_log> completed)
    : self_(self),
      options_(options),
      generation_(generations.current()),
      connections_(connections),
      children_(children),
      pauses_(pauses),
      queue_(std::move(completed)) {}

void program_calls::enter(const job::call_request& request) {
  fetched_.reset();
  follow(queue_.enter(request));
}

caf::result<void> program_calls::finish(const messages::call_finished& finished) {
  if (finished.generation != generation_.number)
    return actor::unavailable("rank " + std::to_string(options_.rank) + " is in generation " +
                              std::to_string(generation_.number));
  follow(queue_.finished(finished.result, finished.was_missed));
  return caf::unit;
}

void program_calls::follow(const call_queue::outcome& outcome) {
  for (const auto& result : outcome.told) options_.client->put(result);
  if (outcome.begins && generation_.is_active()) announce();
}

void program_calls::begin_generation() {
  if (queue_.current()) announce();
  request_cached();
}

void program_calls::forget_job() {
  inventory_in_ = asked_in_ = 0;
  ++inquiry_;
  described_in_ = 0;
}

void program_calls::lose_replicas() {
  std::erase_if(inventory_.parts, [](const recovery::held_part& part) {
    return part.location == recovery::part_location::peer_memory;
  });
}

/// Sends call_entered to the scheduler, and before it copies_held, once per generation and job: before the
/// state is restored the copies do not change, afterwards they are not needed. The children are asked for
/// them. (CAF keeps the timeout of every request until it is due, so a request per call would accumulate
/// timers.)
void program_calls::announce() {
  auto generation = generation_.number;
  if (!children_.has_job() || inventory_in_ == generation) return send_entered();
  if (std::exchange(asked_in_, generation) == generation) return;  // replies are under way
  inventory_ = {};
  inventory_.rank = options_.rank;
  inventory_.before = *options_.hosted;
  num_unanswered_ = children_.stages().size() + 2;
  ++inquiry_;
  for (const auto& [number, stage] : children_.stages()) request_inventory(stage);
  request_inventory(children_.peer_copy_store());
  request_inventory(children_.snapshot_writer());
}

void program_calls::request_inventory(const caf::actor& holder) {
  auto answered = [this, inquiry = inquiry_](const messages::held_parts& held) {
    if (inquiry == inquiry_ && asked_in_ == generation_.number) on_held_parts(held);
  };
  self_->request(holder, options_.restore_timeout, messages::list_parts{})
      .then(answered, [answered](const caf::error&) { answered({}); });  // a failed child holds nothing
}

void program_calls::on_held_parts(const messages::held_parts& held) {
  inventory_.parts.insert(inventory_.parts.end(), held.parts.begin(), held.parts.end());
  inventory_.committed_step = std::max(inventory_.committed_step, held.committed_step);
  inventory_.since_disk_s = std::max(inventory_.since_disk_s, held.since_disk_s);
  if (--num_unanswered_ > 0) return;
  inventory_in_ = generation_.number;
  self_->send(connections_.scheduler(), messages::copies_held{generation_.number, std::move(inventory_)});
  if (queue_.current()) send_entered();
}

/// The gatherer is told before, so it knows the call before any of its tensors is sent.
void program_calls::send_entered() {
  const auto& call = *queue_.current();
  if (call.delivers_to(options_.rank))
    self_->send(children_.gatherer(),
                messages::gather_tensors{generation_.number, call.index, call.num_gathered});
  messages::call_entered entered{generation_.number, options_.rank, call, queue_.completed()->size(),
                                 generation_.interrupted_step};
  entered.pause = pauses_.known();
  if (children_.has_job()) {
    const auto& description = children_.job().description;
    entered.description_hash = description.hash();
    // Once per generation, since each has a new scheduler.
    if (std::exchange(described_in_, generation_.number) != generation_.number)
      entered.description = description;
  }
  self_->send(connections_.scheduler(), std::move(entered));
}

void program_calls::fetch(const job::call_request& request) {
  fetched_ = request;
  request_cached();
}

void program_calls::request_cached() {
  if (!fetched_ || !generation_.is_active()) return;
  messages::gather_tensors command{generation_.number, fetched_->index, fetched_->num_gathered, true, {}};
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (rank != options_.rank)
      command.caches.push_back(connections_.remote(rank, actor::actor_role::gatherer, rank));
  self_->send(children_.gatherer(), command);
}

}  // namespace troupe::actors::supervisor
