#include "troupe/schedule/find_stall.hpp"

#include <algorithm>
#include <cstdio>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/action_graph.hpp"

namespace troupe::schedule {
namespace {

std::string name(int device) { return "device " + std::to_string(device); }

std::string seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", s);
  return text;
}

bool waits(const device_position& position) {
  return position.activity == device_activity::waiting_for_tensor ||
         position.activity == device_activity::waiting_for_samples;
}

/// Follows the waits from one device.
class wait_walk {
 public:
  wait_walk(const job_positions& seen, const action_graph& graph) : seen_(seen), graph_(graph) {}

  stall from(int device) {
    while (go_on(device)) device = found_.chain.back().from;
    found_.text = text_of_chain();
    return std::move(found_);
  }

 private:
  /// Whether the device waits for another one, which is looked at next.
  bool go_on(int device) {
    const auto& known = seen_.devices[static_cast<std::size_t>(device)];
    if (!known) return false;
    auto repeated = std::ranges::find(found_.chain, device, &wait_link::device) != found_.chain.end();
    if (repeated) return blame(stall_cause::deadlock, device, shortest_wait(), "waits for itself");
    found_.chain.push_back({device, *known, {}, -1});
    switch (known->activity) {
      case device_activity::computing:
        return blame(stall_cause::device, device, known->for_s,
                     "does not return from " + to_string(action_at(device)) + of_step());
      case device_activity::applying:
        return blame(
            stall_cause::device, device, known->for_s,
            (is_past_all(found_.chain.back()) ? std::string("does not finish what is queued")
                                              : std::string("does not return from the optimizer's step")) +
                of_step());
      case device_activity::copying_state:
        return blame(stall_cause::device, device, known->for_s, "does not copy its state" + of_step());
      case device_activity::waiting_for_samples:
        return follow_samples(device);
      case device_activity::waiting_for_tensor:
        return follow_tensor(device);
      case device_activity::idle:
        break;
    }
    if (found_.chain.size() > 1)
      blame(stall_cause::missing_credit, device, shortest_wait(), "is granted no step");
    return false;
  }

  bool follow_samples(int device) {
    const auto& loader = seen_.loaders[static_cast<std::size_t>(device)];
    if (loader.is_working)
      return blame(stall_cause::loader, device, std::min(loader.for_s, found_.chain.back().position.for_s),
                   "waits for samples" + of_step() + ", and its loader does not return from the dataset");
    return blame(stall_cause::lost_samples, device,
                 std::min(loader.for_s, found_.chain.back().position.for_s),
                 "waits for samples" + of_step() + ", which its loader does not make");
  }

  bool follow_tensor(int device) {
    auto& link = found_.chain.back();
    const auto& waiting = graph_.nodes[static_cast<std::size_t>(node_of(device, link.position.action))];
    bool is_joint = !seen_.running.joint_axes(waiting.op).empty();
    std::vector<int> sent;
    for (auto input : waiting.inputs) {
      if (input == action_graph::none) continue;
      const auto& sender = graph_.nodes[static_cast<std::size_t>(input)];
      if (sender.device == device || (is_joint && !is_of_same_lane(sender.device, device))) continue;
      if (is_past(input, link.position.step)) {
        sent.push_back(input);
        continue;
      }
      link.wanted = sender.op;
      link.from = sender.device;
      return true;
    }
    if (auto busy = lane_beyond(waiting.op, sent)) {
      link.wanted = waiting.op;
      link.from = *busy;
      return true;
    }
    if (!is_joint) return !sent.empty() && blame_lost(device, sent);
    if (auto late = lane_outside(device)) {
      link.wanted = waiting.op;
      link.from = *late;
      return true;
    }
    for (int other : devices_together(device)) sent.push_back(node_of(other, link.position.action));
    return blame_lost(device, sent);
  }

  /// Where a device waits in a G for which all have given their gradients (`sent`): one of them that computes
  /// something after its own G, which was put off (stage_program::defer_update). It adds up its part between
  /// two layers.
  std::optional<int> lane_beyond(const action& waiting, const std::vector<int>& sent) const {
    if (waiting.kind != action_kind::all_reduce) return {};
    for (int node : sent) {
      auto device = graph_.nodes[static_cast<std::size_t>(node)].device;
      if (is_busy(seen_.devices[static_cast<std::size_t>(device)]->activity)) return device;
    }
    return {};
  }

  /// The device of another lane that has yet to do its part of the joint action of `device`; none: all have
  /// begun it and wait within.
  std::optional<int> lane_outside(int device) const {
    const auto& at = found_.chain.back().position;
    for (int other : devices_together(device)) {
      auto node = node_of(other, at.action);
      if (!is_past(node, at.step) && !waits_within(node, at.step)) return other;
    }
    return {};
  }

  /// Those of other lanes that run the action of `device` together with it.
  std::vector<int> devices_together(int device) const {
    const auto& running = seen_.running;
    std::vector<int> devices;
    for (int lane : running.lanes_together(action_at(device), running.lane_of(device)))
      if (lane != running.lane_of(device))
        devices.push_back(running.job_device(lane, running.device_of(device)));
    return devices;
  }
  bool is_of_same_lane(int device, int other) const {
    return seen_.running.lane_of(device) == seen_.running.lane_of(other);
  }
  int node_of(int device, std::size_t action) const {
    return graph_.first_of_device[static_cast<std::size_t>(device)] + static_cast<int>(action);
  }

  /// Whether the device of a joint action's node waits at it, and not for its own lane.
  bool waits_within(int number, std::uint64_t step) const {
    const auto& node = graph_.nodes[static_cast<std::size_t>(number)];
    const auto& at = seen_.devices[static_cast<std::size_t>(node.device)];
    if (!at || at->step != step || node_of(node.device, at->action) != number ||
        at->activity != device_activity::waiting_for_tensor)
      return false;
    return std::ranges::all_of(node.inputs, [&](int input) {
      if (input == action_graph::none) return true;
      auto sender = graph_.nodes[static_cast<std::size_t>(input)].device;
      return sender == node.device || !is_of_same_lane(sender, node.device) || is_past(input, step);
    });
  }

  /// All of `sent` have been made, and which of them did not come is not known.
  bool blame_lost(int device, const std::vector<int>& sent) {
    auto& link = found_.chain.back();
    double for_s = link.position.for_s;
    std::string what;
    for (int node : sent) {
      const auto& sender = graph_.nodes[static_cast<std::size_t>(node)];
      link.wanted = sender.op;
      link.from = sender.device;
      for_s = std::min(for_s, seen_.devices[static_cast<std::size_t>(sender.device)]->for_s);
      bool is_within =
          !is_of_same_lane(sender.device, device) && !seen_.running.joint_axes(sender.op).empty();
      what += (what.empty() ? "what " : " or what ") + name(sender.device) + " sent " +
              (is_within ? "within " : "after ") + to_string(sender.op);
    }
    return blame(stall_cause::lost_tensor, device, for_s, "has not got " + what + of_step());
  }

  /// Whether the device of `node` has done it in `step`. Unknown devices have not.
  bool is_past(int node, std::uint64_t step) const {
    auto device = static_cast<std::size_t>(graph_.nodes[static_cast<std::size_t>(node)].device);
    const auto& at = seen_.devices[device];
    if (!at) return false;
    auto done = graph_.first_of_device[device] + static_cast<int>(at->action);
    return at->step > step || (at->step == step && done > node);
  }

  action action_at(int device) const {
    const auto& actions = seen_.running.actions_of(device);
    return actions[found_.chain.back().position.action];
  }

  std::string of_step() const { return " of step " + std::to_string(found_.chain.back().position.step); }

  double shortest_wait() const {
    return std::ranges::min(found_.chain, {}, [](const wait_link& link) { return link.position.for_s; })
        .position.for_s;
  }

  bool blame(stall_cause cause, int device, double for_s, const std::string& does) {
    found_.cause = cause;
    found_.device = device;
    found_.for_s = for_s;
    found_.problem = name(device) + " " + does;
    return false;
  }

  bool is_past_all(const wait_link& link) const {
    return link.position.action == seen_.running.actions_of(link.device).size();
  }

  std::string text_of(const wait_link& link) const {
    auto who = name(link.device);
    if (link.wanted)
      return who + " waits for " + to_string(*link.wanted) + " of " + name(link.from) + " since " +
             seconds(link.position.for_s);
    auto step = " of step " + std::to_string(link.position.step);
    switch (link.position.activity) {
      case device_activity::computing:
        return who + " has been computing " +
               to_string(seen_.running.actions_of(link.device)[link.position.action]) + step + " for " +
               seconds(link.position.for_s);
      case device_activity::applying:
        return who +
               (is_past_all(link) ? " has been finishing what is queued"
                                  : " has been in the optimizer's step") +
               step + " for " + seconds(link.position.for_s);
      case device_activity::copying_state:
        return who + " has been copying its state" + step + " for " + seconds(link.position.for_s);
      case device_activity::waiting_for_samples: {
        const auto& loader = seen_.loaders[static_cast<std::size_t>(link.device)];
        return who + " waits for samples" + step + " since " + seconds(link.position.for_s) +
               "; its loader " +
               (loader.is_working ? "has been reading the dataset for " : "has done nothing for ") +
               seconds(loader.for_s);
      }
      case device_activity::waiting_for_tensor:
        return who + " waits" + step + " since " + seconds(link.position.for_s);
      case device_activity::idle:
        return who + " has been granted no step for " + seconds(link.position.for_s);
    }
    return who;
  }

  std::string text_of_chain() const {
    std::string text;
    for (const auto& link : found_.chain) text += (text.empty() ? "" : "; ") + text_of(link);
    if (found_.cause == stall_cause::lost_tensor) text += "; that was sent and did not come";
    return text;
  }

  const job_positions& seen_;
  const action_graph& graph_;
  stall found_;
};

void check(const job_positions& seen) {
  auto num_devices = static_cast<std::size_t>(seen.running.num_job_devices());
  if (seen.devices.size() != num_devices || seen.loaders.size() != num_devices)
    throw_invalid("find_stall", std::to_string(num_devices) + " devices and loaders",
                  std::to_string(seen.devices.size()) + " and " + std::to_string(seen.loaders.size()));
  for (std::size_t device = 0; device < num_devices; ++device) {
    const auto& at = seen.devices[device];
    if (!at || at->action < seen.running.actions_of(static_cast<int>(device)).size()) continue;
    if (waits(*at) || at->activity == device_activity::computing)
      throw_invalid("find_stall", "an action of " + name(static_cast<int>(device)),
                    std::to_string(at->action));
  }
}

}  // namespace

std::vector<stall> wait_chains(const job_positions& seen) {
  check(seen);
  action_graph graph(seen.running);
  std::vector<stall> chains;
  for (int device = 0; device < seen.running.num_job_devices(); ++device)
    if (auto found = wait_walk(seen, graph).from(device); found.cause != stall_cause::none)
      chains.push_back(std::move(found));
  return chains;
}

stall find_stall(const job_positions& seen) {
  stall longest;
  for (auto& found : wait_chains(seen)) {
    bool more = found.for_s > longest.for_s ||
                (found.for_s == longest.for_s && found.chain.size() > longest.chain.size());
    if (more) longest = std::move(found);
  }
  return longest;
}

}  // namespace troupe::schedule
