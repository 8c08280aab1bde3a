// device_state: sends weights, outputs and what it holds to the processes whose programs receive them
// (gather, predict, memory), and hashes weights.
#include <map>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "troupe/device/device_actor.hpp"
#include "troupe/program/device_memory.hpp"
#include "troupe/snapshot/weights_hash.hpp"

namespace troupe::actors::devices {

namespace {

/// [wanted] Those of the tensors of a state. Throws std::logic_error for a tensor that it does not have.
std::vector<tensor_contents> contents_of(const std::vector<named_tensor>& wanted,
                                         const std::vector<tensor_contents>& state) {
  std::map<std::string_view, const tensor_contents*> by_name;
  for (const auto& each : state) by_name.emplace(each.name, &each);
  std::vector<tensor_contents> found;
  for (const auto& each : wanted) {
    auto held = by_name.find(each.name);
    if (held == by_name.end())
      throw std::logic_error("[stage_program::contents] expected the contents of " + each.name +
                             ", which is among the program's weights, got none of it");
    found.push_back(*held->second);
  }
  return found;
}

}  // namespace

/// Of replicas that own shards those after the first send these alone: what else belongs to the weights all
/// have.
void device_state::send_weights() {
  auto replica = mesh().replica_of(lane());
  if (replica >= command_.job->placed.num_shards()) return;
  for (auto& attached : command_.stages) {
    options_.faults->at(fault::fault_point::gather, call_->index);
    auto weights = replica == 0 ? attached.program->weights() : attached.program->parameters();
    auto contents = contents_of(weights, attached.program->contents());
    auto index = (replica * mesh().num_slices + slice()) * command_.job->num_stages() + attached.stage;
    send_gathered(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(attached.stage),
                  pack_state(weights, contents, pool_));
  }
}

void device_state::list_parameters() {
  auto replica = mesh().replica_of(lane());
  if (slice() != 0 || replica >= command_.job->placed.num_shards()) return;
  for (auto& attached : command_.stages) {
    messages::parameters_listed listed{.generation = generation_,
                                       .call = call_->index,
                                       .stage = static_cast<std::uint32_t>(attached.stage),
                                       .replica = static_cast<std::uint32_t>(replica),
                                       .names = {},
                                       .firsts = {},
                                       .problem = {}};
    auto parameters = attached.program->parameters();
    for (const auto& held : contents_of(parameters, attached.program->contents())) {
      bool has_elements = held.boxes.size() == 1 && held.boxes.front() == whole_box(shape(held.whole));
      if (!(is_whole(held) || (has_elements && command_.job->placed.num_shards() > 1)) &&
          listed.problem.empty())
        listed.problem = "expected whole parameters to hash, but a device holds a part of " + held.name +
                         ": gather the weights, and hash these";
      listed.firsts.push_back(held.begin);
    }
    for (auto& each : parameters) listed.names.push_back(std::move(each.name));
    self_->send(command_.scheduler, std::move(listed));
  }
}

void device_state::on_hash(const messages::hash_parameters& wanted) {
  if (!running_ || wanted.generation != generation_ || !call_ || wanted.call != call_->index) return;
  account_scope charged(options_.account, memory_use::snapshots);
  std::map<std::string, tensor> parameters;
  for (auto& each : program_of(static_cast<int>(wanted.stage)).parameters())
    parameters.emplace(std::move(each.name), std::move(each.value));
  snapshot::weights_hasher hasher(wanted.state);
  // A fence ends it, since a generation must not wait for gigabytes.
  auto look = [this] {
    if (waiter_.is_fenced()) throw program::action_interrupted();
  };
  try {
    for (const auto& name : wanted.names) hasher.add(parameters.at(name), look);
  } catch (const program::action_interrupted&) {
    return;
  }
  self_->send(command_.scheduler,
              messages::parameters_hashed{generation_, wanted.call, wanted.num_hashed + wanted.names.size(),
                                          hasher.state()});
}

void device_state::send_memory() {
  options_.faults->at(fault::fault_point::gather, call_->index);
  program::device_memory held;
  held.device = options_.device;
  held.rank = options_.rank;
  held.place = place();
  held.held = options_.account.statistics(held.place.type);
  if (is_on_gpu()) held.on_host = options_.account.statistics(device::kind::cpu);
  held.process = program::memory_of_process();
  send_gathered(static_cast<std::uint32_t>(options_.device), 0, to_tensor(held));
}

void device_state::on_prediction(const action& op, const tensor& output) {
  if (slice() != 0) return;  // all have the same
  options_.faults->at(fault::fault_point::gather, call_->index);
  auto index = interpreter_->assignment().batch_of(step_) *
                   static_cast<std::uint64_t>(interpreter_->running().num_microbatches) +
               static_cast<std::uint64_t>(op.microbatch);
  send_gathered(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(op.stage), output.to({}));
}

void device_state::send_gathered(std::uint32_t index, std::uint32_t stage, const tensor& value) {
  transport::tensor_tag tag{generation_, 0, call_->index, stage, index, transport::tensor_role::gathered};
  for (int rank = 0; rank < command_.world_size; ++rank)
    if (call_->delivers_to(rank)) options_.out->send_tensor(rank, tag, value);
}

}  // namespace troupe::actors::devices
