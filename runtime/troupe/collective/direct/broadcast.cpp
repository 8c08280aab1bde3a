#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

algorithm broadcast_small(meeting& at) {
  auto root = at.what().signature.root;
  auto output = at.what().output;
  auto bytes = output.bytes();
  at.come_with([&](int) { return at.member() == root ? bytes : bytes.first(0); });
  co_await until([&] { return at.everyone_is_here(); });
  if (at.member() != root)
    copy_bytes(at.left_by(root, bytes.size()), bytes.data(), bytes.size(), store_kind::cached);
}

algorithm broadcast_large(meeting& at) {
  at.come_with_tensors(exposed::input);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  auto root = at.what().signature.root;
  auto output = at.what().output;
  if (at.member() != root)
    copy_bytes(at.input_of(root), output.bytes().data(), output.size_bytes(),
               store_for_fetched(output.size_bytes()));
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
}

}  // namespace

algorithm broadcast(meeting at) {
  auto part = is_small(at, at.what().signature.count) ? broadcast_small(at) : broadcast_large(at);
  co_await finished(part);
}

}  // namespace troupe::direct
