#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "troupe/inspector/views/views.hpp"
#include "troupe/job/step_timeline.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::actors::inspector {
namespace {

using json = nlohmann::ordered_json;

json timeline_object(const timeline& shown, const char* unit) {
  json devices = json::array();
  for (const auto& device : shown.devices) {
    json actions = json::array();
    for (const auto& one : device)
      actions.push_back({{"action", to_string(one.op)}, {"begin", one.begin}, {"end", one.end}});
    devices.push_back(std::move(actions));
  }
  return {{"unit", unit}, {"makespan", shown.makespan}, {"idle", shown.idle}, {"devices", devices}};
}

const plan* plan_of(const job_view& view) {
  return view.scheduler && view.scheduler->job ? &view.scheduler->job->training : nullptr;
}

json joint_json(const plan& shown) {
  json rows = json::array();
  for (const auto& each : shown.joint)
    rows.push_back({{"stage", each.stage},
                    {"kind", std::string(1, letter_of(each.kind))},
                    {"axis", layout::to_string(each.axis)}});
  return rows;
}

}  // namespace

json plan_json(const job_view& view) {
  const auto* shown = plan_of(view);
  if (!shown) return {{"plan", nullptr}, {"simulated", nullptr}};
  json devices = json::array();
  for (int device = 0; device < shown->num_devices(); ++device) {
    json actions = json::array(), stages = json::array(), rank;
    for (const auto& one : shown->devices[static_cast<std::size_t>(device)])
      actions.push_back(to_string(one));
    for (int stage = 0; stage < shown->num_stages; ++stage)
      if (shown->device_of_stage[static_cast<std::size_t>(stage)] == device) stages.push_back(stage);
    if (device < view.scheduler->hosts.num_devices())
      rank = view.scheduler->hosts.member_of({device}).value();
    devices.push_back({{"device", device}, {"rank", rank}, {"stages", stages}, {"actions", actions}});
  }
  json known = {{"schedule", to_string(shown->kind)},
                {"num_stages", shown->num_stages},
                {"num_microbatches", shown->num_microbatches},
                {"steps_per_run", shown->flush_every},
                {"num_slices", shown->mesh.num_slices},
                {"joint", joint_json(*shown)},
                {"devices", devices}};
  return {{"plan", known},
          {"simulated", timeline_object(simulate(*shown, {}), "forwards of one microbatch")}};
}

json timeline_json(const job_view& view) {
  const auto* shown = plan_of(view);
  const auto& last = view.last_training;
  json nothing = {{"step", nullptr}, {"measured", nullptr}};
  if (!shown) return nothing;
  auto json_of = [&](std::uint64_t runs, const std::vector<job::measured_action>& actions) -> json {
    if (std::ranges::any_of(actions, [&](const job::measured_action& one) {
          return one.device >= static_cast<std::uint32_t>(shown->num_job_devices());
        }))
      return nothing;  // of an earlier job of this program, with another plan
    return {{"step", runs * static_cast<std::uint64_t>(shown->flush_every)},
            {"measured", timeline_object(timeline_of(actions, shown->num_job_devices(), 1e-9), "s")}};
  };
  if (view.measured) return json_of(view.measured->step, view.measured->actions);
  return last && !last->last_step.empty() ? json_of(last->steps_done, last->last_step) : nothing;
}

}  // namespace troupe::actors::inspector
