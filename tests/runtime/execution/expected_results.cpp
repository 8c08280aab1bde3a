// What traced programs compute without a plan (traced_program.hpp).
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "runtime/execution/traced_program.hpp"

namespace troupe::testing {
namespace {

/// Sums that are known before.
struct known_sum final : program::lane_sums {
  tensor sum;
  void all_reduce(tensor& values) override { values.copy_from(sum); }
};

/// All lanes of a plan, which do everything one after the other, in step.
class lanes_in_step {
 public:
  lanes_in_step(const plan& running, bool training) : plan_(running), training_(training) {
    for (int lane = 0; lane < num_lanes(); ++lane)
      for (int stage = 0; stage < running.num_stages; ++stage)
        programs_.push_back(std::make_unique<traced_program>(running, stage, lane));
  }

  void run_optimizer_step(std::uint64_t run, int number) {
    gather_weights();
    for (int index = 0; index < plan_.microbatches_per_step(); ++index) run_microbatch(run, number, index);
    if (training_)
      update(run * static_cast<std::uint64_t>(plan_.flush_every) + static_cast<std::uint64_t>(number));
  }

  std::vector<std::uint64_t> results() const {
    std::vector<std::uint64_t> all;
    for (const auto& each : programs_) all.push_back(each->result());
    return all;
  }

 private:
  int num_lanes() const { return plan_.num_running_lanes(); }
  traced_program& at(int lane, int stage) {
    auto number = lane * plan_.num_stages + stage;
    return *programs_[static_cast<std::size_t>(number)];
  }

  /// Those that replicas own; what no step changes once, if it is kept.
  void gather_weights() {
    for (int lane = 0; lane < num_lanes(); ++lane)
      for (int stage = 0; stage < plan_.num_stages; ++stage) {
        auto& taker = at(lane, stage);
        bool keeps = taker.keeps_weights();
        if (!keeps && has_gathered_) taker.release_weights();
        taker.attach_weights();
        auto buckets = taker.weight_buckets();
        for (std::size_t index = 0; index < buckets.size(); ++index) {
          const auto& [owner, is_stepped] = buckets[index];
          if (owner == plan_.mesh.replica_of(lane) || (keeps && !is_stepped && has_gathered_)) continue;
          auto from = plan_.mesh.lane_at(owner, plan_.mesh.slice_of(lane));
          auto number = static_cast<int>(index);
          taker.take_weights(number, at(from, stage).weights_in(number));
        }
      }
    has_gathered_ = true;
  }

  /// Calls `pass(lane, which)` for each lane with the sums of what `part(lane, which)` returns for all.
  template <class Part, class Pass>
  void run_pass(const action& op, const program::microbatch& which, Part part, Pass pass) {
    std::vector<tensor> parts;
    for (int lane = 0; lane < num_lanes(); ++lane) parts.push_back(part(lane, which));
    for (int lane = 0; lane < num_lanes(); ++lane) {
      auto summed = which;
      known_sum along[2];
      for (auto axis : plan_.joint_axes(op)) {
        bool is_dp = axis == layout::mesh_axis::dp;
        auto& known = along[is_dp ? 0 : 1];
        known.sum = tensor::zeros({1});
        for (int other : plan_.mesh.lanes_along({axis}, lane))
          known.sum.values<float>()[0] +=
              std::as_const(parts[static_cast<std::size_t>(other)]).values<float>()[0];
        (is_dp ? summed.sums : summed.slice_sums) = &known;
      }
      pass(lane, summed);
    }
  }

  void run_microbatch(std::uint64_t run, int number, int index) {
    auto steps = static_cast<std::uint64_t>(plan_.flush_every);
    program::microbatch which{run * steps + static_cast<std::uint64_t>(number), index,
                              plan_.microbatches_per_step(), training_, number == 0 ? 0 : 1};
    auto op = [&](action_kind kind, int stage) {
      return action{stage, kind, number * plan_.microbatches_per_step() + index};
    };
    using ports = std::map<std::pair<int, int>, tensor>;  // [stage, port]
    std::vector<ports> outputs(static_cast<std::size_t>(num_lanes())), gradients = outputs;
    for (int stage = 0; stage < plan_.num_stages; ++stage) {
      auto of = [&](int lane) {
        auto [samples, row] = rows_of(run, number, index, lane);
        std::vector<tensor> inputs;
        for (const auto& each : graph_.inputs_of(stage))
          inputs.push_back(outputs[static_cast<std::size_t>(lane)].at({each.from, each.output}));
        if (inputs.empty()) inputs.push_back(samples.inputs.rows(row, 2));
        return std::pair(inputs, graph_.computes_loss(stage) ? samples.targets.rows(row, 2) : tensor());
      };
      run_pass(
          op(action_kind::forward, stage), which,
          [&](int lane, const program::microbatch& mb) {
            auto [inputs, targets] = of(lane);
            return at(lane, stage).part_of_forward(mb, inputs, targets);
          },
          [&](int lane, const program::microbatch& mb) {
            auto [inputs, targets] = of(lane);
            auto made = at(lane, stage).forward(mb, inputs, targets);
            for (std::size_t port = 0; port < made.size(); ++port)
              outputs[static_cast<std::size_t>(lane)][{stage, static_cast<int>(port)}] = made[port];
          });
    }
    for (int stage = plan_.num_stages; training_ && stage-- > 0;) {
      auto of = [&](int lane) {
        std::vector<tensor> sums(static_cast<std::size_t>(graph_.num_output_ports(stage)));
        for (const auto& each : graph_.outputs_of(stage)) {
          auto& sum = sums[static_cast<std::size_t>(each.output)];
          if (!sum.defined()) sum = tensor::zeros({1});
          sum.values<float>()[0] +=
              std::as_const(gradients[static_cast<std::size_t>(lane)].at({each.to, each.input}))
                  .values<float>()[0];
        }
        return sums;
      };
      auto backward = [&](const action& of_input, const action& of_weights) {
        run_pass(
            of_input, which,
            [&](int lane, const program::microbatch& mb) {
              return at(lane, stage).part_of_backward(mb, of(lane));
            },
            [&](int lane, const program::microbatch& mb) {
              auto made = at(lane, stage).backward_input(mb, of(lane));
              for (std::size_t port = 0; port < made.size(); ++port)
                gradients[static_cast<std::size_t>(lane)][{stage, static_cast<int>(port)}] = made[port];
            });
        run_pass(
            of_weights, which,
            [&](int lane, const program::microbatch& mb) { return at(lane, stage).part_of_weights(mb); },
            [&](int lane, const program::microbatch& mb) { at(lane, stage).backward_weight(mb); });
      };
      auto whole = op(action_kind::backward, stage);
      const auto& list =
          plan_.devices[static_cast<std::size_t>(plan_.device_of_stage[static_cast<std::size_t>(stage)])];
      if (std::ranges::count(list, whole) > 0)
        backward(whole, whole);
      else
        backward(op(action_kind::input_gradient, stage), op(action_kind::weight_gradient, stage));
    }
  }

  /// The batch, and the first row of a microbatch in it.
  std::pair<batch, std::int64_t> rows_of(std::uint64_t run, int number, int index, int lane) const {
    auto replica = plan_.mesh.replica_of(lane);
    auto count = plan_.microbatches_per_step();
    if (plan_.kind == schedule_kind::forward_only) {
      auto num = run * static_cast<std::uint64_t>(plan_.num_running_replicas()) +
                 static_cast<std::uint64_t>(replica);
      return {traced_samples(plan_, num), 2 * (number * count + index)};
    }
    return {traced_samples(plan_, run), 2 * ((number * plan_.mesh.num_replicas + replica) * count + index)};
  }

  /// One tensor of all lanes along an axis: adds them up and gives each the sum.
  template <class Part, class Take>
  void sum_along(layout::mesh_axis axis, Part part, Take take) {
    std::vector<tensor> parts;
    for (int lane = 0; lane < num_lanes(); ++lane) parts.push_back(part(lane));
    for (int lane = 0; lane < num_lanes(); ++lane) {
      auto sum = tensor::zeros(parts[static_cast<std::size_t>(lane)].shape());
      for (int other : plan_.mesh.lanes_along({axis}, lane))
        for (std::int64_t i = 0; i < sum.num_elements(); ++i)
          sum.values<float>()[static_cast<std::size_t>(i)] +=
              std::as_const(parts[static_cast<std::size_t>(other)])
                  .values<float>()[static_cast<std::size_t>(i)];
      take(lane, sum);
    }
  }

  void sum_over_replicas() {
    for (int stage = 0; plan_.mesh.num_replicas > 1 && stage < plan_.num_stages; ++stage)
      for (int bucket = 0; bucket < 2; ++bucket)
        sum_along(
            layout::mesh_axis::dp,
            [&](int lane) { return at(lane, stage).bucket(layout::mesh_axis::dp, bucket); },
            [&](int lane, const tensor& sum) {
              at(lane, stage).take_sums(layout::mesh_axis::dp, bucket, {sum});
            });
  }

  void sum_over_slices(std::uint64_t step) {
    for (int stage = 0; stage < plan_.num_stages; ++stage) {
      const auto& list =
          plan_.devices[static_cast<std::size_t>(plan_.device_of_stage[static_cast<std::size_t>(stage)])];
      action sum{stage, action_kind::all_reduce, static_cast<int>(step) % plan_.flush_every,
                 layout::mesh_axis::tp};
      if (std::ranges::count(list, sum) > 0)
        sum_along(
            layout::mesh_axis::tp, [&](int lane) { return at(lane, stage).bucket(layout::mesh_axis::tp, 0); },
            [&](int lane, const tensor& total) {
              at(lane, stage).take_sums(layout::mesh_axis::tp, 0, {total});
            });
    }
  }

  void combine(bool before_sums) {
    for (int reduction = 0; reduction < plan_.reductions_per_step(); ++reduction) {
      const auto& each = plan_.reductions[static_cast<std::size_t>(reduction)];
      if (each.before_sums != before_sums) continue;
      std::vector<std::vector<tensor>> of_lane;
      for (int lane = 0; lane < num_lanes(); ++lane) {
        auto& partials = of_lane.emplace_back();
        for (int stage : each.stages) partials.push_back(at(lane, stage).partial_for_reduction(reduction));
      }
      for (int lane = 0; lane < num_lanes(); ++lane) {
        std::vector<tensor> partials;
        for (int other : plan_.mesh.lanes_along(each.axes, lane))
          std::ranges::copy(of_lane[static_cast<std::size_t>(other)], std::back_inserter(partials));
        for (int stage : each.stages) at(lane, stage).reduce(reduction, partials);
      }
    }
  }

  void update(std::uint64_t step) {
    bool averages = schedule::averages_weights(plan_);
    sum_over_slices(step);
    combine(true);
    if (!averages) sum_over_replicas();
    combine(false);
    for (auto& each : programs_) each->apply(step);
    if (averages) sum_over_replicas();
  }

  const plan& plan_;
  bool training_, has_gathered_ = false;
  schedule::stage_graph graph_{plan_.num_stages, plan_.edges};
  std::vector<std::unique_ptr<traced_program>> programs_;
};

}  // namespace

std::vector<std::uint64_t> expected_results(const plan& running, bool training, std::uint64_t num_steps) {
  lanes_in_step lanes(running, training);
  for (std::uint64_t run = 0; run < num_steps; ++run)
    for (int number = 0; number < running.flush_every; ++number) lanes.run_optimizer_step(run, number);
  return lanes.results();
}

}  // namespace troupe::testing
