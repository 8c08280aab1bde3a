#include "troupe/snapshot_writer/disk_actor.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "troupe/actor/actor_error.hpp"
#include "troupe/job/finished_calls.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/snapshot/read_tensors.hpp"
#include "troupe/snapshot_writer/read_metrics.hpp"
#include "troupe/wire/archive.hpp"
#include "troupe/wire/packed_state.hpp"

namespace troupe::actors::snapshot_writer {
namespace {

/// The result of `call`, or an error reply if it throws snapshot_error: the actor keeps running.
template <class Call>
auto answer_of(const Call& call) -> caf::result<decltype(call())> {
  try {
    return call();
  } catch (const files::snapshot_error& problem) {
    return actor::unavailable(problem.what());
  }
}

/// Whether `begun` has a tensor of this name with the same bits.
bool is_as_begun(const named_tensor& state, const std::vector<named_tensor>* begun) {
  if (!begun) return false;
  auto found = std::ranges::find(*begun, state.name, &named_tensor::name);
  return found != begun->end() && std::ranges::equal(found->value.bytes(), state.value.bytes());
}

/// Throws if a tensor has infinite or NaN elements, except for tensors that are unchanged since the start:
/// modules may keep infinite elements on purpose, for example in a mask.
void require_finite(const snapshot::snapshot_part& part, const std::vector<named_tensor>* begun) {
  for (const auto& each : part.tensors)
    if (is_floating(each.value.dtype()) && !all_finite(std::span(&each.value, 1)) &&
        !is_as_begun(each, begun))
      throw files::snapshot_error("the state of " + to_string(part.part) + " is infinite or NaN, first " +
                                  each.name + ": a snapshot of it would replace the last finite one");
}

snapshot::snapshot_store_options warning_in_log(const disk_options& options) {
  auto store = options.store;
  store.warn = [log = options.log](const std::string& problem) { log->warn("{}", problem); };
  return store;
}

}  // namespace

disk_state::disk_state(caf::event_based_actor*, disk_options options)
    : options_(std::move(options)), store_(warning_in_log(options_)) {}

caf::behavior disk_state::make_behavior() {
  return {
      [this](messages::write_part& command) { return answer_of([&] { return write(command); }); },
      [this](const messages::commit_snapshot& command) { return answer_of([&] { return commit(command); }); },
      [this](const messages::find_on_disk&) { return answer_of([&] { return find(); }); },
      [this](const messages::read_results& wanted) { return answer_of([&] { return read(wanted); }); },
      [this](const messages::read_from_disk& wanted) { return answer_of([&] { return read(wanted); }); },
      [this](const messages::discard_parts& command) {
        return answer_of([&] {
          store_.discard(command.step);
          return messages::parts_discarded{command.step};
        });
      }};
}

/// Releases the copy as soon as it is encoded, so that only one state is held during the write.
messages::part_on_disk disk_state::write(messages::write_part& command) {
  auto state = wire::unpack_contents(command.packed);
  snapshot::snapshot_part part{options_.job_id,
                               command.step,
                               command.part,
                               options_.num_stages,
                               command.generation,
                               options_.numeric_class,
                               std::move(state.tensors),
                               std::move(state.contents)};
  command.packed = {};
  if (options_.finite_only) require_finite(part, command.began_non_finite.get());
  auto encoded = encode_part(part);
  part.tensors.clear();
  return {store_.write_part(command.step, command.part, encoded.bytes())};
}

/// Appends the results of calls since an earlier commit, one at a time: neither memory nor what is written
/// grows with the number of calls.
messages::snapshot_committed disk_state::commit(const messages::commit_snapshot& command) {
  auto manifest = command.manifest;
  if (command.results)
    manifest.calls = store_.write_calls(manifest.step, command.num_results, [&](std::size_t index) {
      return block_of_call(*command.results, index);
    });
  store_.commit(manifest);
  return {manifest.step};
}

messages::results_read disk_state::read(const messages::read_results& wanted) const {
  try {
    store_.read_calls(wanted.manifest, [&](auto block) { add_call(block, *wanted.to); });
  } catch (const wire::decode_error& problem) {
    throw files::snapshot_error("the results of calls in the snapshot of step " +
                                std::to_string(wanted.manifest.step) + " cannot be used: " + problem.what());
  }
  return {wanted.to->size()};
}

messages::found_on_disk disk_state::find() {
  messages::found_on_disk answer;
  auto search = store_.find();
  answer.manifest = search.found;
  if (answer.manifest && answer.manifest->job_id != options_.job_id && !options_.resume)
    answer.manifest.reset();
  for (const auto& [info, reason] : search.unusable) {
    auto named = "the snapshot of step " + std::to_string(info.step) + " in " + info.folder.string() +
                 " cannot be used: " + reason;
    options_.log->warn("{}", named);
    // Without a manifest it was not finished and does not count as a snapshot.
    if (info.state == snapshot::snapshot_state::incomplete) continue;
    answer.unusable.push_back(named);
    if (search.found) store_.set_aside(info);
  }
  return answer;
}

/// In the order of `wanted`, so that equal parts of replicas have the same bytes.
std::vector<named_tensor> disk_state::read_earlier_job(const snapshot::snapshot_manifest& manifest,
                                                       const messages::read_from_disk& wanted) const {
  std::map<std::string, tensor> begun;
  for (const auto& [name, value] : wanted.new_optimizer) begun.emplace(name, value.to({}));
  auto kept = wanted.wanted;
  std::erase_if(kept, [&](const tensor_contents& each) { return begun.contains(each.name); });
  for (auto& [name, value] : read_tensors(store_, manifest, kept, wanted.part)) begun.emplace(name, value);
  std::vector<named_tensor> state;
  for (const auto& each : wanted.wanted) state.push_back({each.name, begun.at(each.name)});
  return state;
}

messages::stage_copy disk_state::read(const messages::read_from_disk& wanted) const {
  if (options_.faults) options_.faults->at(fault::fault_point::read_part, wanted.step);
  for (const auto& info : store_.list()) {
    if (!info.manifest || info.step != wanted.step) continue;
    auto state = info.manifest->job_id == options_.job_id
                     ? read_tensors(store_, *info.manifest, wanted.wanted, wanted.part)
                     : read_earlier_job(*info.manifest, wanted);
    auto contents = wanted.wanted;
    if (wanted.metrics_of_replicas > 0) {
      state.push_back(read_metrics(store_, *info.manifest, wanted.metrics_of_replicas));
      contents.push_back(whole_contents(state.back()));
    }
    wire::packed_state_pool fresh;
    return {pack_state(state, contents, fresh)};
  }
  throw files::snapshot_error("no snapshot of step " + std::to_string(wanted.step) + " in " +
                              options_.store.folder.string());
}

}  // namespace troupe::actors::snapshot_writer
