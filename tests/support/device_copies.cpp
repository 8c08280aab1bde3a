#include "support/device_copies.hpp"

#include <functional>
#include <utility>

namespace troupe::testing {
namespace {

tensor flat(const tensor& x) { return x.reshape({x.num_elements()}); }

/// Whether all of `part` lies in `whole`.
bool is_within(const tensor& part, const tensor& whole) {
  std::less_equal<const std::byte*> up_to;
  auto inner = part.bytes(), outer = whole.bytes();
  return up_to(outer.data(), inner.data()) && up_to(inner.data() + inner.size(), outer.data() + outer.size());
}

/// The elements of `part` in a copy of `whole`.
tensor same_rows(const tensor& part, const tensor& whole, const tensor& copy) {
  auto first =
      (part.bytes().data() - whole.bytes().data()) / static_cast<std::ptrdiff_t>(size_bytes(whole.dtype()));
  return copy.rows(first, part.num_elements());
}

collective::collective_operation on_device(const collective::collective_operation& what, device where) {
  auto copied = what;
  if (what.input.defined()) copied.input = flat(what.input).to(where);
  if (!what.output.defined()) return copied;
  bool has_input = what.input.defined() && what.input.num_elements() > 0;
  if (has_input && is_within(what.output, what.input)) {
    copied.output = same_rows(what.output, what.input, copied.input);
    return copied;
  }
  copied.output = flat(what.output).to(where);
  if (has_input && is_within(what.input, what.output))
    copied.input = same_rows(what.input, what.output, copied.output);
  return copied;
}

}  // namespace

collective::algorithm device_copies::run(const collective::collective_operation& what,
                                         std::uint64_t sequence) {
  auto copied = on_device(what, below_->device());
  auto below = below_->run(copied, sequence);
  co_await finished(below);
  if (what.output.defined()) flat(what.output).copy_from(copied.output);
}

}  // namespace troupe::testing
