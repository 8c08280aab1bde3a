#include "troupe/ucx/ucx_context.hpp"

#include <sys/mman.h>
#include <ucm/api/ucm.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <future>
#include <latch>
#include <thread>
#include <utility>

namespace troupe::ucx {
namespace {

/// Blocks in a memory event of its thread, which then holds the lock of UCX's handlers.
struct held_event {
  std::latch begun{1}, may_end{1};
  std::thread::id of;
  bool was_held = false;  ///< used by that thread alone

  static void on_event(ucm_event_type_t, ucm_event_t*, void* argument) {
    auto& self = *static_cast<held_event*>(argument);
    if (std::this_thread::get_id() != self.of || std::exchange(self.was_held, true)) return;
    self.begun.count_down();
    self.may_end.wait();
  }
};

void map_a_page() {
  constexpr std::size_t size = 4096;
  auto* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) ::munmap(page, size);
}

TEST_CASE("contexts are made and destroyed while a thread is within a memory event of UCX") {
  constexpr int events = UCM_EVENT_MMAP | UCM_EVENT_MUNMAP;
  auto first = make_ucx_context("tcp", "lo");  // has configured UCX
  held_event held;
  std::latch may_map(1);
  std::jthread holder([&] {
    may_map.wait();
    map_a_page();
  });
  held.of = holder.get_id();
  auto status = ucm_set_event_handler(events, 1000, held_event::on_event, &held);
  may_map.count_down();
  if (status != UCS_OK) SKIP("UCX hooks no memory here: " << ucs_status_string(status));
  held.begun.wait();
  auto made = std::async(std::launch::async, [] { make_ucx_context("tcp", "lo", rendezvous_scheme::put); });
  auto outcome = made.wait_for(std::chrono::minutes(1));
  held.may_end.count_down();
  holder.join();
  ucm_unset_event_handler(events, held_event::on_event, &held);
  CHECK(outcome == std::future_status::ready);
}

}  // namespace
}  // namespace troupe::ucx
