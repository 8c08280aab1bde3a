#include "troupe/supervisor/state/stage_directory.hpp"

#include <caf/send.hpp>

#include "troupe/job/part_tag.hpp"
#include "troupe/messages/device.hpp"
#include "troupe/messages/gatherer.hpp"
#include "troupe/messages/peer_copy_store.hpp"
#include "troupe/messages/supervisor.hpp"

namespace troupe::actors::supervisor {
namespace {

/// On the sender's thread, where that is in this process: what waits for a busy device is not the sender's.
void charge(const device_receiver& to, const tensor& value) {
  if (!to.account) return;
  account_scope charged(to.account);
  charge_here(value, memory_use::messages);
}

/// A device that waits in its mailbox must be told, except of replica_values, which it waits for within an
/// action, where it looks by itself.
void put(const device_receiver& to, const transport::tensor_tag& tag, tensor value) {
  to.from_replicas->put(tag, std::move(value));
  if (tag.role != transport::tensor_role::replica_values && to.from_replicas->must_notify())
    caf::anon_send(to.device, messages::replica_tensors_arrived{});
}

}  // namespace

void stage_directory::set(receivers all) {
  std::lock_guard lock(mutex_);
  receivers_ = std::move(all);
}

void stage_directory::deliver(const transport::tensor_tag& tag, tensor value) {
  std::lock_guard lock(mutex_);
  auto device = receivers_.devices.find(job::part_of(tag).cell);
  bool hosted = device != receivers_.devices.end();
  switch (tag.role) {
    case transport::tensor_role::activation:
    case transport::tensor_role::gradient:
    case transport::tensor_role::reduction_partial:
      if (!hosted) return;
      charge(device->second, value);
      caf::anon_send(device->second.device, messages::tensor_arrived{tag, std::move(value)});
      return;
    case transport::tensor_role::replica_gradients:
    case transport::tensor_role::summed_gradients:
    case transport::tensor_role::replica_values:
    case transport::tensor_role::shard_weights:
      if (!hosted) return;
      charge(device->second, value);
      put(device->second, tag, std::move(value));
      return;
    case transport::tensor_role::gathered:
      if (receivers_.gatherer)
        caf::anon_send(receivers_.gatherer,
                       messages::tensor_gathered{tag.generation, tag.call, tag.microbatch, std::move(value)});
      return;
    case transport::tensor_role::snapshot_part:
      if (tag.call != receivers_.job) return;
      if (receivers_.peer_copy_store)
        caf::anon_send(
            receivers_.peer_copy_store,
            messages::replica_arrived{tag.generation, tag.step, job::part_of(tag), std::move(value)});
      return;
    case transport::tensor_role::restored_state:
      if (tag.call == receivers_.job && receivers_.supervisor)
        caf::anon_send(receivers_.supervisor, messages::state_arrived{tag.generation, tag.step,
                                                                      job::part_of(tag), std::move(value)});
      return;
  }
}

}  // namespace troupe::actors::supervisor
