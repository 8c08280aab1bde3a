#include "bench/compute/compute_training.hpp"

#include "troupe/tensor/memory.hpp"

namespace troupe::bench {

compute_training::compute_training(compute_model& model, queueing how)
    : model_(model), optimizer_(model.optimizer(model.module->named_parameters())) {
  auto where = model.inputs.device();
  if (how == queueing::each_kernel || where.type == device::kind::cpu) return;
  auto first = batch_of(model, 0);
  batch_ = {first.inputs.clone(), first.labels.clone()};
  auto work = [this] {
    memory_scope counted(memory_category::activations);
    auto result = loss_of(model_, batch_, [this](const variable& x) { return model_.module->forward(x); });
    result.loss.backward();
    loss_sum_ = result.device_loss_sum;
  };
  pass_.emplace(where, work, model.module->parameters());
}

double compute_training::step() {
  return pass_ ? recorded_step() : train_step(model_, *optimizer_, number_++);
}

double compute_training::recorded_step() {
  auto next = batch_of(model_, number_);
  batch_.inputs.copy_from(next.inputs);
  batch_.labels.copy_from(next.labels);
  pass_->run();
  optimizer_->apply(number_++);
  return loss_sum_.to({}).values<float>()[0] / static_cast<double>(batch_.labels.num_elements());
}

}  // namespace troupe::bench
