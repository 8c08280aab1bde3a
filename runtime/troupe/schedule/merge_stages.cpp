#include "troupe/schedule/merge_stages.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace troupe::schedule {
namespace {

/// List scheduling: runs all stages on paper, F, I and W taking one unit each, B two, others none, and
/// always starts what can start first. Nothing scheduled later can start earlier, so a device's record is in
/// order of time.
class list_scheduler {
 public:
  list_scheduler(const std::vector<std::vector<action>>& orders, const stage_graph& graph, const plan& made)
      : orders_(orders),
        graph_(graph),
        made_(made),
        next_(orders.size(), 0),
        forward_end_(orders.size()),
        gradient_end_(orders.size()),
        end_(orders.size(), 0),
        free_at_(made.devices.size(), 0),
        done_(made.devices.size()) {}

  std::vector<std::vector<action>> run() {
    while (auto chosen = best()) start(*chosen);
    return std::move(done_);
  }

 private:
  struct candidate {
    std::size_t stage = 0;
    std::int64_t begin = 0;
  };

  std::optional<candidate> best() const {
    std::optional<candidate> found;
    for (std::size_t stage = 0; stage < orders_.size(); ++stage) {
      auto ready = ready_at(stage);
      if (!ready) continue;
      candidate other{stage, std::max(*ready, free_at_[device(stage)])};
      if (!found || goes_before(other, *found)) found = other;
    }
    return found;
  }

  /// When the inputs of a stage's next action are there; none if it has no next action or one of them has not
  /// run.
  std::optional<std::int64_t> ready_at(std::size_t stage) const {
    if (next_[stage] == orders_[stage].size()) return {};
    const auto& op = orders_[stage][next_[stage]];
    std::int64_t ready = 0;
    if (op.kind == action_kind::reduce_gradient) return shares_at(op.microbatch);
    // What a W or an A needs came before in the stage's order. At a G the other lanes are as far.
    if (!reads_parameters(op.kind)) return ready;
    bool is_forward = op.kind == action_kind::forward;
    for (const auto& each : is_forward ? graph_.inputs_of(op.stage) : graph_.outputs_of(op.stage)) {
      const auto& ends = is_forward ? forward_end_[static_cast<std::size_t>(each.from)]
                                    : gradient_end_[static_cast<std::size_t>(each.to)];
      if (static_cast<std::size_t>(op.microbatch) >= ends.size()) return {};
      ready = std::max(ready, ends[static_cast<std::size_t>(op.microbatch)]);
    }
    return ready;
  }

  /// When all stages of a reduction have come to it or done it; none if one of them has not.
  std::optional<std::int64_t> shares_at(int reduction) const {
    std::int64_t ready = 0;
    for (int stage : made_.reductions[static_cast<std::size_t>(reduction)].stages) {
      auto at = static_cast<std::size_t>(stage);
      auto found = shares_.find({reduction, stage});
      if (found == shares_.end() && !is_next(at, {stage, action_kind::reduce_gradient, reduction})) return {};
      ready = std::max(ready, found == shares_.end() ? end_[at] : found->second);
    }
    return ready;
  }

  bool is_next(std::size_t stage, const action& op) const {
    return next_[stage] < orders_[stage].size() && orders_[stage][next_[stage]] == op;
  }

  /// R, G and A go before all others: they take no time. Of others that can start at once, a forward goes
  /// first: the stages after it wait for it, and how far a stage runs ahead, which is what costs memory, its
  /// own order says. A W, for which no stage waits, goes last. Then the older microbatch, then the later
  /// stage.
  bool goes_before(const candidate& a, const candidate& b) const {
    auto rank = [this](const candidate& c) {
      const auto& op = orders_[c.stage][next_[c.stage]];
      bool is_update = !is_of_microbatch(op);
      bool is_forward = op.kind == action_kind::forward;
      bool is_weight_gradient = op.kind == action_kind::weight_gradient;
      return std::tuple(c.begin, !is_update, !is_forward, is_weight_gradient, op.microbatch, -op.stage);
    };
    return rank(a) < rank(b);
  }

  void start(const candidate& chosen) {
    const auto& op = orders_[chosen.stage][next_[chosen.stage]++];
    auto end = chosen.begin + duration_of(op);
    if (op.kind == action_kind::reduce_gradient) shares_[{op.microbatch, op.stage}] = end_[chosen.stage];
    end_[chosen.stage] = end;
    if (op.kind == action_kind::forward) forward_end_[chosen.stage].push_back(end);
    if (op.kind == action_kind::backward || op.kind == action_kind::input_gradient)
      gradient_end_[chosen.stage].push_back(end);
    free_at_[device(chosen.stage)] = end;
    done_[device(chosen.stage)].push_back(op);
  }

  static std::int64_t duration_of(const action& op) {
    if (!is_of_microbatch(op)) return 0;
    return op.kind == action_kind::backward ? 2 : 1;
  }

  std::size_t device(std::size_t stage) const {
    return static_cast<std::size_t>(made_.device_of_stage[stage]);
  }

  const std::vector<std::vector<action>>& orders_;
  const stage_graph& graph_;
  const plan& made_;
  std::vector<std::size_t> next_;                        // [stage] position in its order
  std::vector<std::vector<std::int64_t>> forward_end_;   // [stage][microbatch], as far as run
  std::vector<std::vector<std::int64_t>> gradient_end_;  // [stage][microbatch] of B or I, as far as run
  std::vector<std::int64_t> end_;                        // [stage] of what it did last
  std::map<std::pair<int, int>, std::int64_t> shares_;   // [reduction, stage] when given, of Rs that are done
  std::vector<std::int64_t> free_at_;                    // [device]
  std::vector<std::vector<action>> done_;                // [device]
};

}  // namespace

std::vector<std::vector<action>> merge_stages(const std::vector<std::vector<action>>& orders,
                                              const stage_graph& graph, const plan& made) {
  return list_scheduler(orders, graph, made).run();
}

}  // namespace troupe::schedule
