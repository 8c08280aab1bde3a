#include "troupe/autograd/pass_id.hpp"

#include <limits>
#include <utility>

namespace troupe {
namespace {

thread_local pass_state current;

}  // namespace

pass_state current_pass() { return current; }

pass_scope::pass_scope(pass_state state) : outer_(std::exchange(current, state)) {}
pass_scope::~pass_scope() { current = outer_; }

pass_id next_pass_id() {
  if (current.is_set) return current.id;
  return {current.calls++, std::numeric_limits<std::uint32_t>::max()};
}

}  // namespace troupe
