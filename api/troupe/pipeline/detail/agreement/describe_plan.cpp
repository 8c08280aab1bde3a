#include "troupe/pipeline/detail/agreement/describe_plan.hpp"

#include <cstddef>
#include <span>
#include <string>

#include "troupe/schedule/text/plan_text.hpp"

namespace troupe::detail {
namespace {

/// Longer texts are cut.
constexpr std::size_t longest = 160;

std::string hash_of(const std::string& text) { return agreement::short_hash(std::as_bytes(std::span(text))); }

template <class List, class Text>
std::string listed(const List& list, Text text_of) {
  std::string text;
  for (const auto& each : list) text += (text.empty() ? "" : " ") + text_of(each);
  if (text.empty()) return "nothing";
  if (text.size() <= longest) return text;
  return text.substr(0, longest) + "... (" + std::to_string(list.size()) + ", hash " + hash_of(text) + ")";
}

std::string number(int value) { return std::to_string(value); }

}  // namespace

void describe_plan(const plan& described, agreement::job_description& into) {
  into.add("hash of the plan", hash_of(schedule::plan_text(described)));
  into.add("edges between stages",
           listed(described.edges, [](const schedule::edge& each) { return "(" + to_string(each) + ")"; }));
  into.add("devices of the stages", listed(described.device_of_stage, number));
  into.add("stages of the reductions", listed(described.reductions, [](const schedule::reduction& each) {
             return "(" + to_string(each) + ")";
           }));
  into.add("actions that lanes run together",
           listed(described.joint, [](const schedule::joint_kind& each) { return to_string(each); }));
  into.add("replicas that share an evaluation", number(described.num_evaluating_replicas()));
  for (std::size_t device = 0; device < described.devices.size(); ++device)
    into.add("plan of device " + std::to_string(device),
             listed(described.devices[device], [](const action& op) { return to_string(op); }));
}

}  // namespace troupe::detail
