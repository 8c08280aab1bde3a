#include "troupe/autograd/checkpoint.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/detail/graph_node.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/autograd/pass_id.hpp"
#include "troupe/autograd/saved_parameter.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using segment_function = std::function<variable(const std::vector<variable>&)>;

/// The detached inputs of a segment, and the state of the pass under which it ran.
struct origin {
  std::vector<tensor> values;
  std::vector<bool> are_wanted;
  dtype type = compute_dtype();
  pass_state pass = current_pass();

  explicit origin(const std::vector<variable>& inputs) {
    for (const auto& each : inputs) {
      values.push_back(each.value);
      are_wanted.push_back(each.requires_gradient());
    }
  }
  std::vector<variable> inputs() const {
    std::vector<variable> result;
    for (std::size_t i = 0; i < values.size(); ++i)
      result.push_back(are_wanted[i] ? leaf(values[i]) : variable{values[i]});
    return result;
  }
};

/// The parameters to which the recorded segment adds gradients. Its nodes are newer than `before`; throws if
/// it depends on older ones.
std::vector<saved_parameter> parameters_behind(const variable& output, std::uint64_t before) {
  std::vector<saved_parameter> found;
  if (!output.node) return found;
  for (const auto& node : reachable_nodes(output.node)) {
    if (node->order() <= before)
      throw_invalid("checkpoint", "a segment that reads no variable but its inputs",
                    "one that reads " + describe(node->form()) + " from outside; make it an input");
    if (node->is_leaf()) continue;
    for (auto* each : node->recorded->parameters())
      if (std::ranges::find(found, each, &saved_parameter::target) == found.end()) found.emplace_back(each);
  }
  return found;
}

class checkpoint_operation : public operation {
 public:
  checkpoint_operation(segment_function segment, origin from, std::vector<saved_parameter> used)
      : segment_(std::move(segment)), from_(std::move(from)), used_(std::move(used)) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    for (const auto& each : used_) each.require_unchanged();
    auto inputs = from_.inputs();
    compute_again(inputs);
    again_->run_inputs(dy);
    std::vector<tensor> gradients;
    for (const auto& each : inputs)
      gradients.push_back(each.node ? std::exchange(each.node->gradient, {}) : tensor());
    return gradients;
  }
  void backward_weight(const tensor&) override {
    again_->run_weights();
    again_.reset();
  }
  std::vector<parameter*> parameters() const override {
    std::vector<parameter*> result;
    for (const auto& each : used_) result.push_back(each.target());
    std::erase_if(result, [](const auto* each) { return !each->requires_gradient; });
    return result;
  }
  void release_inputs() override { from_.values.clear(); }

 private:
  void compute_again(const std::vector<variable>& inputs) {
    enable_grad recording;
    autocast computes(from_.type);
    auto pass = from_.pass;
    pass.is_recomputed = true;
    pass_scope repeated(pass);
    again_.emplace(segment_(inputs));
  }

  segment_function segment_;
  origin from_;
  std::vector<saved_parameter> used_;
  std::optional<backward_pass> again_;
};

}  // namespace

// The forward pass records the segment to find the parameters it uses, and discards the graph at once;
// backward records it again.
variable checkpoint(segment_function segment, const std::vector<variable>& inputs) {
  if (!is_grad_enabled()) return segment(inputs);
  origin from(inputs);
  auto before = newest_sequence_number();
  auto output = segment(from.inputs());
  auto used = parameters_behind(output, before);
  if (!output.requires_gradient()) return output;
  return record(std::move(output.value), inputs,
                std::make_unique<checkpoint_operation>(std::move(segment), std::move(from), std::move(used)));
}

variable checkpoint(std::function<variable(const variable&)> segment, const variable& x) {
  auto of_one = [segment = std::move(segment)](const std::vector<variable>& inputs) {
    return segment(inputs.front());
  };
  return checkpoint(segment_function(of_one), std::vector{x});
}

}  // namespace troupe
