#include "troupe/autograd/pass_place.hpp"

#include <limits>
#include <utility>

namespace troupe {
namespace {

thread_local pass_position current;

}  // namespace

pass_position current_pass() { return current; }

pass_scope::pass_scope(pass_position position) : outer_(std::exchange(current, position)) {}
pass_scope::~pass_scope() { current = outer_; }

pass_place next_pass_place() {
  if (current.is_set) return current.place;
  return {current.calls++, std::numeric_limits<std::uint32_t>::max()};
}

}  // namespace troupe
