#include "troupe/autograd/autocast.hpp"

#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

thread_local dtype current = dtype::f32;

}  // namespace

autocast::autocast(dtype type) : outer_(current) {
  if (!is_floating(type)) throw_invalid("autocast", "bf16, f16 or f32", to_string(type));
  current = type;
}
autocast::~autocast() { current = outer_; }

dtype compute_dtype() { return current; }

}  // namespace troupe
