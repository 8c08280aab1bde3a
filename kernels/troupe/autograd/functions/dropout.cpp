#include "troupe/ops/dropout.hpp"

#include "troupe/autograd/functions.hpp"

namespace troupe {
namespace {

class dropout_operation : public operation {
 public:
  dropout_operation(double p, const philox_stream& stream) : p_(p), stream_(stream) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return {dropout(dy, p_, stream_)}; }

 private:
  double p_;
  philox_stream stream_;
};

}  // namespace

variable dropout(const variable& x, double p, const philox_stream& stream) {
  return record(dropout(x.value, p, stream), {x}, std::make_unique<dropout_operation>(p, stream));
}

}  // namespace troupe
