#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

algorithm broadcast_small(meeting at) {
  auto root = at.what().signature.root;
  auto bytes = at.what().output_bytes();
  at.come_with([&](int) { return at.member() == root ? bytes : bytes.first(0); });
  co_await until([&] { return at.everyone_is_here(); });
  if (at.member() != root)
    copy_bytes(at.left_by(root, bytes.size()), bytes.data(), bytes.size(), store_kind::cached);
}

algorithm broadcast_large(meeting at) {
  at.come_with_tensors(exposed::input);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  auto root = at.what().signature.root;
  auto output = at.what().output_bytes();
  if (at.member() != root)
    copy_bytes(at.input_of(root), output.data(), output.size(), store_for_fetched(output.size()));
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
}

}  // namespace

algorithm broadcast(meeting at) {
  return is_small(at, at.what().signature.count) ? broadcast_small(std::move(at))
                                                 : broadcast_large(std::move(at));
}

}  // namespace troupe::direct
