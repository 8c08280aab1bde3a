#include "troupe/pipeline/detail/module_program.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/detail/graph_node.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/autograd/pass_id.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/detail/replica_scope.hpp"
#include "troupe/nn/evaluation_scope.hpp"
#include "troupe/ops/copy_by_name.hpp"
#include "troupe/pipeline/detail/first_pass_checks.hpp"
#include "troupe/pipeline/detail/initial_weights.hpp"
#include "troupe/pipeline/detail/parameters/order_of_use.hpp"
#include "troupe/pipeline/detail/tied_weights.hpp"
#include "troupe/tensor/async/async_device_copy.hpp"

namespace troupe::detail {
namespace {

std::string text_of(const program::microbatch& mb) {
  return "step " + std::to_string(mb.step) + " microbatch " + std::to_string(mb.index);
}

deferred_reads::origin origin_of(const program::microbatch& mb) { return {mb.step, mb.index}; }

/// Gives the gradients of a stage's outputs to a backward pass through all of them.
class join_operation : public operation {
 public:
  explicit join_operation(std::vector<tensor>& gradients) : gradients_(gradients) {}
  std::vector<tensor> backward_input(const tensor&) override { return std::exchange(gradients_, {}); }

 private:
  std::vector<tensor>& gradients_;
};

/// Null where the replicas do not run the pass together.
nn::sum_over_members sums_of(const program::microbatch& mb) {
  if (!mb.sums) return {};
  return [sums = mb.sums](tensor& values) { sums->all_reduce(values); };
}

std::vector<tensor> moved(std::vector<tensor> values, device target) {
  for (auto& each : values) each = async_device_copy(each, target);
  return values;
}

std::vector<tensor> values_of(const std::vector<variable>& variables) {
  std::vector<tensor> values;
  for (const auto& each : variables) values.push_back(each.value);
  return values;
}

std::vector<parameter*> targets_of(const std::vector<named_parameter>& parameters) {
  std::vector<parameter*> targets;
  for (const auto& each : parameters) targets.push_back(each.target);
  return targets;
}

}  // namespace

module_program::module_program(const nn::Graph& model, const std::vector<stage_range>& partition, int stage,
                               const module_program_options& options, device place, int shard)
    : place_(place),
      is_last_(static_cast<std::size_t>(stage) + 1 == partition.size()),
      values_(cut_model(model.wiring(), partition).stages.at(static_cast<std::size_t>(stage))),
      loss_(options.loss),
      precision_(options.numerics.precision),
      looks_for_non_finite_(options.numerics.on_non_finite != non_finite_policy::go_on),
      flush_every_(static_cast<std::uint64_t>(options.flush_every)),
      counted_targets_(options.loss, options.numerics.exchange.average_every > 0) {
  std::vector<std::shared_ptr<nn::Module>> layers;
  bool frees_values = options.num_shards > 1 && options.numerics.shard == shard_strategy::full;
  bool frees_gradients = options.num_shards > 1 && options.numerics.shard >= shard_strategy::grad;
  for (int index = values_.nodes.first; index < values_.nodes.last; ++index) {
    auto prefix = model.prefix_of(index);
    layers.push_back(model[index]->clone());
    layers.back()->materialize(options.seed, prefix);
    if (frees_gradients)
      for (const auto& each : layers.back()->named_parameters(prefix)) each.target->detach_gradient();
    std::ranges::move(layers.back()->named_parameters(prefix), std::back_inserter(parameters_));
    std::ranges::move(layers.back()->named_buffers(prefix), std::back_inserter(buffers_));
  }
  layers_.emplace(model.wiring(), values_.nodes.first, std::move(layers), values_.inputs, values_.outputs);
  std::ranges::sort(buffers_, {}, &nn::named_buffer::name);
  auto uses = targets_of(parameters_);
  std::vector<tied_gradients::weight> tied;
  std::vector<std::vector<named_parameter>> sharing;
  for (const auto& weight : tied_weights_of(model)) {
    auto stages = stages_of(weight, partition);
    if (!std::ranges::count(stages, stage)) continue;
    auto here = take_uses(weight, parameters_, options.seed);
    parameters_.push_back({weight.name, here.front().target});
    sharing.push_back(here);
    if (stages.front() != stage) borrowed_.insert(weight.name);
    if (weight.requires_gradient) tied.push_back({names_of_uses(weight), here, stages.size() > 1});
  }
  std::ranges::sort(parameters_, {}, &named_parameter::name);
  if (options.initial_weights) begin(*options.initial_weights);
  if (place_ != device()) {
    for (const auto& each : layers_->modules()) each->to(place_);
    for (const auto& each : sharing) share_value(each);
  }
  std::erase_if(uses, [](const parameter* each) { return !each->requires_gradient; });
  if (flush_every_ > 1) versions_.emplace(std::move(uses));
  if (auto period = options.numerics.exchange.average_every; period > 0)
    average_.emplace(period, targets_of(parameters_));
  auto by_use = in_order_of_use(weights_by_layer(layers_->modules(), parameters_, tied), parameters_.size());
  if (options.num_shards > 1) {
    auto is_elementwise = optim::make_state(options.optimizer, {})->is_elementwise();
    shards_.emplace(parameters_, by_use,
                    owned_shard{.index = shard,
                                .count = options.num_shards,
                                .granularity = is_elementwise ? layout::shard_granularity::blocks
                                                              : layout::shard_granularity::tensors,
                                .rotation = stage,
                                .frees_gradients = frees_gradients,
                                .frees_values = frees_values},
                    sharing);
  }
  optimizer_ = optim::make_state(options.optimizer, stepped());
  deferred_.emplace(parameters_, tied, [this](std::size_t index) {
    return shards_ ? shards_->is_gathered(index) : gradients_->is_stepped(index);
  });
  gradients_.emplace(options.numerics, reductions_of(model, partition, options.numerics), counted_in(model),
                     parameters_, by_use, tied_gradients(std::move(tied), frees_gradients),
                     shards_ ? &*shards_ : nullptr);
  if (options.numerics.skips_steps() && flush_every_ == 1)
    for (const auto& each : buffers_) kept_buffers_.push_back(each.target->value.clone());
  if (shards_) shards_->release_values();
}

void module_program::begin(const std::vector<named_tensor>& weights) {
  std::map<std::string, tensor> own;
  for (const auto& each : parameters_) own.emplace(each.name, each.target->value());
  for (const auto& each : buffers_) own.emplace(each.name, each.target->value);
  for (const auto& [name, value] : weights)
    if (auto found = own.find(name); found != own.end()) found->second.copy_from(value);
}

std::vector<optim::detail::indexed_parameter> module_program::counted_in(const nn::Graph& model) const {
  auto names = parameter_names_of(model);
  std::vector<optim::detail::indexed_parameter> counted;
  auto count = [&](const named_parameter& one, std::int64_t first) {
    if (!borrowed_.contains(one.name))
      counted.push_back({std::ranges::lower_bound(names, one.name) - names.begin(), one.target, first});
  };
  if (!shards_)
    for (const auto& each : parameters_) count(each, 0);
  else
    for (std::size_t piece = 0; piece < shards_->pieces().size(); ++piece)
      if (shards_->is_owned(piece)) count(shards_->pieces()[piece], shards_->first_of(piece));
  return counted;
}

std::vector<tensor> module_program::forward(const program::microbatch& mb, std::vector<tensor> inputs,
                                            tensor targets) {
  autocast computes(precision_);
  inputs = moved(std::move(inputs), place_);
  if (!mb.training) {
    no_grad nothing_recorded;
    std::vector<variable> constants;
    for (auto& each : inputs) constants.push_back({std::move(each), nullptr});
    auto outputs = run_layers(mb, std::move(constants));
    if (!is_last_ || !targets.defined()) return values_of(outputs);
    evaluate_loss(mb, outputs.front(), targets);
    return {};
  }
  std::optional<weight_versions::scope> version;
  use_version(mb, version);
  pass_scope scope(
      pass_id{static_cast<std::uint32_t>(mb.step), static_cast<std::uint32_t>(mb.global_index())});
  nn::detail::replica_scope replicas(mb.num_replicas, sums_of(mb));
  auto& recorded = begin_pass(mb, std::move(inputs));
  if (!is_checked_ && mb.num_replicas > 1 && (shards_ || steps_by_parts())) deferred_->require_waits();
  auto outputs = run_layers(mb, recorded.inputs);
  if (!is_checked_) check_first_pass(mb, outputs, targets);
  auto from = is_last_ ? take_loss(mb, outputs.front(), targets)
                       : record(tensor::zeros({}), outputs,
                                std::make_unique<join_operation>(recorded.output_gradients));
  if (from.requires_gradient()) recorded.back.emplace(from, options_of(mb));
  if (is_last_) return {};
  // Else the last stage might find first that its loss is no number, and the step would end for that.
  if (mb.index + 1 == mb.count) read_deferred();
  return values_of(outputs);
}

/// Finds errors in user-defined modules and losses that would otherwise only show in wrong results.
void module_program::check_first_pass(const program::microbatch& mb, const std::vector<variable>& outputs,
                                      const tensor& targets) {
  deferred_->end();  // of require_waits
  for (const auto& each : outputs) check_parameters(each, layers_->modules());
  if (is_last_) {
    auto num_counted = check_loss(loss_, outputs.front().value, async_device_copy(targets, place_));
    check_equal_counts(loss_, outputs.front().value, targets, mb.batch_targets);
    if (counted_targets_.needs_example()) counted_targets_.learn(num_counted);
  }
  is_checked_ = true;
}

std::vector<variable> module_program::run_layers(const program::microbatch& mb,
                                                 std::vector<variable> inputs) {
  // In training each module has the mode that the model came with.
  std::optional<nn::evaluation_scope> evaluating;
  if (!mb.training) evaluating.emplace(layers_->modules());
  deferred_reads::scope deferring(reads_, deferred_reads::content::checks, origin_of(mb));
  return layers_->run(std::move(inputs), [this](std::size_t) { deferred_->progress(); });
}

module_program::pass& module_program::begin_pass(const program::microbatch& mb, std::vector<tensor> inputs) {
  auto [at, is_new] = passes_.try_emplace({mb.step, mb.index});
  if (!is_new) throw std::logic_error("[module_program::forward] " + text_of(mb) + " is in flight already");
  for (auto& each : inputs) {
    auto is_constant = values_.takes_samples || !is_floating(each.dtype());
    at->second.inputs.push_back(is_constant ? variable{std::move(each), nullptr} : leaf(std::move(each)));
  }
  return at->second;
}

/// The weights that the microbatch's forward had, or will have.
void module_program::use_version(const program::microbatch& mb,
                                 std::optional<weight_versions::scope>& scope) {
  if (versions_)
    scope.emplace(*versions_, mb.step - static_cast<std::uint64_t>(mb.delay));
  else if (mb.delay != 0)
    throw std::logic_error("[module_program] expected weights without a delay, got " + text_of(mb) +
                           ": set module_program_options::flush_every as the plan has it");
}

/// Recorded only in a batch of which something counts: without it there is nothing to learn.
variable module_program::take_loss(const program::microbatch& mb, const variable& output,
                                   const tensor& targets) {
  auto batch = counted_targets_.of_batch(mb, targets);
  auto scale = batch > 0 ? gradients_->loss_scale() / static_cast<double>(batch) : 0;
  auto result = compute_loss(mb, output, targets, scale);
  if (batch > 0 && result.num_counted > 0 && output.requires_gradient()) require_recorded(result);
  if (!result.deferred) counted_targets_.require(targets, result.num_counted);
  add_metrics(result, targets);
  return batch > 0 ? result.loss : detach(result.loss);
}

void module_program::evaluate_loss(const program::microbatch& mb, const variable& output,
                                   const tensor& targets) {
  add_metrics(compute_loss(mb, output, targets, 1), {});
}

/// A user's function may compute with the numbers of a loss, which it must find there.
loss_result module_program::compute_loss(const program::microbatch& mb, const variable& output,
                                         const tensor& targets, double scale) {
  std::optional<deferred_reads::scope> deferring;
  if (loss_.target<nn::CrossEntropy>())
    deferring.emplace(reads_, deferred_reads::content::losses, origin_of(mb));
  return loss_(output, async_device_copy(targets, place_), scale);
}

void module_program::add_metrics(const loss_result& result, const tensor& targets) {
  if (result.deferred)
    deferred_losses_.emplace_back(result.deferred, targets);
  else
    metrics_ += {result.loss_sum, result.num_counted, result.num_correct};
}

/// Throws what operations on a GPU have found out of range.
void module_program::read_deferred() {
  auto losses = std::exchange(deferred_losses_, {});
  reads_.read_all();
  for (const auto& [known, targets] : losses) {
    if (targets.defined()) counted_targets_.require(targets, known->num_counted);
    metrics_ += {known->loss_sum, known->num_counted, known->num_correct};
  }
}

module_program::pass& module_program::pass_of(const program::microbatch& mb, const char* action) {
  auto at = passes_.find({mb.step, mb.index});
  if (at == passes_.end())
    throw std::logic_error("[module_program::" + std::string(action) + "] no forward of " + text_of(mb));
  return at->second;
}

/// Gradients, and blocks of rows of large ones, leave while others are computed. Every schedule computes the
/// last microbatch by rows, since products of blocks have other bits than those of whole matrices.
backward_options module_program::options_of(const program::microbatch& mb) {
  if (mb.num_replicas == 1 || mb.gradient_index() + 1 < mb.count || average_) return {};
  auto give = [this](const parameter& whose, std::int64_t num_elements) {
    if (on_bucket_) gradients_->give_buckets_of(whose, num_elements, on_bucket_);
  };
  return {.on_gradient = [give](const parameter& whose) { give(whose, whose.extents.num_elements()); },
          .on_rows =
              [give](const parameter& whose, std::int64_t num_rows) {
                give(whose, num_rows * (whose.extents.num_elements() / whose.extents[0]));
              }};
}

/// Without recorded.back nothing here is learned, and nothing before.
void module_program::run_backward(pass& recorded, std::vector<tensor> output_gradients,
                                  void (backward_pass::*run)(const tensor&)) {
  recorded.output_gradients = moved(std::move(output_gradients), place_);
  if (recorded.back) ((*recorded.back).*run)({});
}

std::vector<tensor> module_program::backward_input(const program::microbatch& mb,
                                                   std::vector<tensor> output_gradients) {
  auto& recorded = pass_of(mb, "backward_input");
  std::optional<weight_versions::scope> version;
  use_version(mb, version);
  nn::detail::replica_scope replicas(mb.num_replicas, sums_of(mb));
  deferred_reads::scope deferring(reads_, deferred_reads::content::checks, origin_of(mb));
  run_backward(recorded, std::move(output_gradients), &backward_pass::run_inputs);
  if (values_.takes_samples) return {};
  std::vector<tensor> gradients;
  for (auto& each : recorded.inputs)
    gradients.push_back(each.node ? std::exchange(each.node->gradient, {}) : tensor());
  return gradients;
}

void module_program::accumulate(const program::microbatch& mb, const bucket_callback& on_bucket) {
  auto& saved = pass_of(mb, "backward_weight");
  require_in_order(mb);
  std::optional<weight_versions::scope> version;
  use_version(mb, version);
  on_bucket_ = on_bucket;
  nn::detail::replica_scope replicas(mb.num_replicas, sums_of(mb));
  deferred_reads::scope deferring(reads_, deferred_reads::content::checks, origin_of(mb));
  if (saved.back) saved.back->run_weights();
  end_accumulation(mb);
}

/// Where no stage waits for the input gradients, both are computed layer by layer, so that the last layers'
/// weight gradients are there before the first layers' input gradients.
void module_program::backward_last(const program::microbatch& mb, std::vector<tensor> output_gradients,
                                   const inputs_callback& on_inputs, const bucket_callback& on_bucket) {
  if (!values_.takes_samples)
    return program::stage_program::backward_last(mb, std::move(output_gradients), on_inputs, on_bucket);
  auto& recorded = pass_of(mb, "backward_last");
  require_in_order(mb);
  std::optional<weight_versions::scope> version;
  use_version(mb, version);
  on_bucket_ = on_bucket;
  nn::detail::replica_scope replicas(mb.num_replicas, sums_of(mb));
  deferred_reads::scope deferring(reads_, deferred_reads::content::checks, origin_of(mb));
  run_backward(recorded, std::move(output_gradients), &backward_pass::run);
  end_accumulation(mb);
  on_inputs({});
}

void module_program::require_in_order(const program::microbatch& mb) const {
  if (mb.gradient_index() > last_accumulated_) return;
  auto before = mb.gradients_descend ? mb.count - 1 - last_accumulated_ : last_accumulated_;
  throw std::logic_error("[module_program::backward_weight] expected a microbatch " +
                         std::string(mb.gradients_descend ? "before " : "after ") + std::to_string(before) +
                         ", got " + text_of(mb));
}

void module_program::end_accumulation(const program::microbatch& mb) {
  on_bucket_ = nullptr;
  passes_.erase({mb.step, mb.index});
  last_accumulated_ = mb.gradient_index();
  accumulated_step_ = mb.step;
  num_replicas_ = mb.num_replicas;
  if (mb.gradient_index() + 1 == mb.count) gradients_->accumulated();
}

program::program_factory make_module_programs(nn::Graph model, int stages, module_program_options options) {
  auto partition = partition_into_stages(model, stages);
  return make_module_programs(std::move(model), std::move(partition), std::move(options));
}

program::program_factory make_module_programs(nn::Graph model, std::vector<stage_range> partition,
                                              module_program_options options) {
  if (options.initial_weights) check_initial_weights(model, *options.initial_weights);
  return [model = std::move(model), partition = std::move(partition), options = std::move(options)](
             const layout::cell& computed) -> std::unique_ptr<program::stage_program> {
    auto place = options.place ? options.place(computed) : device();
    auto shard = options.num_shards > 1 ? computed.replica : 0;
    return std::make_unique<module_program>(model, partition, computed.stage, options, place, shard);
  };
}

}  // namespace troupe::detail
