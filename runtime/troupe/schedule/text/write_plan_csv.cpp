#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "troupe/schedule/text/plan_csv.hpp"
#include "troupe/schedule/text/pytorch_names.hpp"

namespace troupe::schedule {
namespace {

std::vector<std::vector<std::string>> compute_only(const plan& written) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& device : written.devices) {
    auto& cells = rows.emplace_back();
    for (const auto& op : device)
      if (is_of_microbatch(op) || (op.kind == action_kind::apply && written.flush_every > 1))
        cells.push_back(troupe::to_string(op));
  }
  return rows;
}

/// A plan without R and A whose Gs stand where the sums of their stage begin: behind its last weight
/// gradient.
plan with_early_sums(plan written) {
  for (auto& device : written.devices) {
    std::map<int, action> last;  // [stage] what completes its gradients
    for (const auto& op : device)
      if (op.kind == action_kind::backward || op.kind == action_kind::weight_gradient) last[op.stage] = op;
    std::erase_if(device, [](const action& op) { return !is_of_microbatch(op) && !is_of_storage(op.kind); });
    for (const auto& [stage, op] : last)
      device.insert(std::ranges::find(device, op) + 1, {stage, action_kind::all_reduce, 0});
  }
  return written;
}

/// "0UNSHARD"
std::string name_in_pytorch(const action& op) {
  if (op.kind == action_kind::all_reduce) return std::to_string(op.stage) + "REDUCE_GRAD";
  for (const auto& [kind, name] : named_kinds)
    if (op.kind == kind) return std::to_string(op.stage) + std::string(name);
  return troupe::to_string(op);
}

/// Puts the sends and receives of a chain between its actions, as PyTorch does: a receive comes to the end of
/// what its device has done when the tensor is sent. The plan is sound.
class lowering {
 public:
  explicit lowering(const plan& written)
      : plan_(written), rows_(written.devices.size()), next_(written.devices.size(), 0) {}

  std::vector<std::vector<std::string>> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t device = 0; device < next_.size(); ++device) moved |= advance(device);
    }
    return std::move(rows_);
  }

 private:
  bool advance(std::size_t device) {
    const auto& actions = plan_.devices[device];
    if (next_[device] == actions.size() || !has_inputs(actions[next_[device]])) return false;
    const auto& op = actions[next_[device]++];
    rows_[device].push_back(name_in_pytorch(op));
    if (!reads_parameters(op.kind)) return true;
    bool is_forward = op.kind == action_kind::forward;
    done_.insert({op.stage, is_forward, op.microbatch});
    auto to = op.stage + (is_forward ? 1 : -1);
    if (to < 0 || to == plan_.num_stages || device_of(to) == device) return true;
    auto end = (is_forward ? "_F" : "_B") + std::to_string(op.microbatch);
    rows_[device].push_back(std::to_string(op.stage) + "SEND" + end);
    rows_[device_of(to)].push_back(std::to_string(to) + "RECV" + end);
    return true;
  }

  bool has_inputs(const action& op) const {
    if (!reads_parameters(op.kind)) return true;
    bool is_forward = op.kind == action_kind::forward;
    auto from = op.stage + (is_forward ? -1 : 1);
    return from < 0 || from == plan_.num_stages || done_.contains({from, is_forward, op.microbatch});
  }

  std::size_t device_of(int stage) const {
    return static_cast<std::size_t>(plan_.device_of_stage[static_cast<std::size_t>(stage)]);
  }

  const plan& plan_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> next_;              // [device] position in its list
  std::set<std::tuple<int, bool, int>> done_;  // stage, forward, microbatch
};

/// Of a plan of another graph, which PyTorch has not, without sends.
std::vector<std::vector<std::string>> lowered(const plan& written) {
  auto with_sums = with_early_sums(written);
  if (written.edges == chain_edges(written.num_stages)) return lowering(with_sums).run();
  std::vector<std::vector<std::string>> rows;
  for (const auto& device : with_sums.devices) {
    auto& cells = rows.emplace_back();
    for (const auto& op : device) cells.push_back(name_in_pytorch(op));
  }
  return rows;
}

}  // namespace

std::string to_csv(const plan& written) {
  std::string text;
  auto rows = shards_parameters(written) ? lowered(written) : compute_only(written);
  for (const auto& cells : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : ",") + cells[i];
    text += "\n";
  }
  return text;
}

}  // namespace troupe::schedule
