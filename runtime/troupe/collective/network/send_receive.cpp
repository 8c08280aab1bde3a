#include "troupe/collective/network/algorithms.hpp"

namespace troupe::network {

algorithm send(conversation at) {
  at.send(at.what().peer, carried::inputs, 0, at.what().input.bytes());
  co_await until([&] { return at.all_done(); });
}

algorithm receive(conversation at) {
  at.receive(at.what().peer, carried::inputs, 0, at.output({0, at.what().signature.count}));
  co_await until([&] { return at.all_done(); });
}

}  // namespace troupe::network
