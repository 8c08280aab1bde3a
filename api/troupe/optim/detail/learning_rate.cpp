#include "troupe/optim/detail/learning_rate.hpp"

#include "troupe/optim/adam.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"

namespace troupe::optim::detail {
namespace {

using rate_of_step = std::function<double(std::uint64_t step)>;

template <class Kind>
rate_of_step rate_if(const Optimizer& optimizer) {
  const auto* known = optimizer.target<Kind>();
  if (!known) return {};
  return [rate = known->options().lr, schedule = known->options().schedule](std::uint64_t step) {
    return schedule ? rate * schedule(step) : rate;
  };
}

}  // namespace

rate_of_step learning_rate_of(const Optimizer& optimizer) {
  for (auto found : {rate_if<SGD>(optimizer), rate_if<Adam>(optimizer), rate_if<AdamW>(optimizer),
                     rate_if<LAMB>(optimizer)})
    if (found) return found;
  return {};
}

}  // namespace troupe::optim::detail
