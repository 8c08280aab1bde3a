#include "troupe/collective/ucx/bell_watch.hpp"

#include <utility>

namespace troupe {
namespace {

constexpr auto longest_wait = std::chrono::seconds(60);

}  // namespace

bell_watch::bell_watch(direct::board of, std::function<void()> on_ring)
    : board_(of), on_ring_(std::move(on_ring)), thread_([this, heard = of.num_rings()] { watch(heard); }) {}

bell_watch::~bell_watch() {
  ending_ = true;
  board_.ring(board_.member());
  thread_.join();
}

void bell_watch::watch(std::uint32_t heard) {
  while (true) {
    board_.await_ring(heard, longest_wait);
    if (ending_) return;
    auto now = board_.num_rings();
    if (std::exchange(heard, now) != now) on_ring_();
  }
}

}  // namespace troupe
