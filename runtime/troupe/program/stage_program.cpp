#include "troupe/program/stage_program.hpp"

namespace troupe {

step_metrics& step_metrics::operator+=(const step_metrics& other) {
  loss_sum += other.loss_sum;
  num_samples += other.num_samples;
  num_correct += other.num_correct;
  return *this;
}

double step_metrics::mean_loss() const {
  return num_samples == 0 ? 0 : loss_sum / static_cast<double>(num_samples);
}

double step_metrics::accuracy() const {
  return num_samples == 0 ? 0 : static_cast<double>(num_correct) / static_cast<double>(num_samples);
}

}  // namespace troupe
