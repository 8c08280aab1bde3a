#include "troupe/ops/convert.hpp"

#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

class cast_operation : public operation {
 public:
  explicit cast_operation(dtype from) : from_(from) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return {cast(dy, from_)}; }

 private:
  dtype from_;
};

}  // namespace

variable cast(const variable& x, dtype type) {
  if (x.value.defined() && x.value.dtype() == type) return x;
  auto y = cast(x.value, type);
  if (!would_record({&x})) return {y};
  if (!is_floating(type))
    throw_invalid("cast", "a floating dtype where a gradient is wanted", to_string(type));
  return record(y, {x}, std::make_unique<cast_operation>(x.value.dtype()));
}

variable in_compute_dtype(const variable& x) {
  auto type = compute_dtype();
  auto is_mixed = type != dtype::f32 && x.value.defined() && is_floating(x.value.dtype());
  return is_mixed ? cast(x, type) : x;
}

variable to_float(const variable& x, float scale) {
  if (x.requires_gradient())
    throw_invalid("to_float", "an input of which no gradient is wanted", describe(x.value));
  return {to_float(x.value, scale)};
}

}  // namespace troupe
