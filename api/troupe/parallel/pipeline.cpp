#include "troupe/parallel/pipeline.hpp"

#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {

Pipeline& Pipeline::stages(int count) {
  stages_ = count;
  return *this;
}

Pipeline& Pipeline::microbatches(int count) {
  microbatches_ = count;
  return *this;
}

Pipeline& Pipeline::schedule(schedule_kind kind) {
  schedule_ = kind;
  return *this;
}

Pipeline& Pipeline::loss(nn::Loss loss) {
  if (!loss) throw_invalid("Pipeline::loss", "a loss, for example nn::MSELoss()", "none");
  loss_ = std::move(loss);
  return *this;
}

Pipeline& Pipeline::optimizer(optim::Optimizer optimizer) {
  optimizer_ = std::move(optimizer);
  return *this;
}

}  // namespace troupe
