#include "troupe/device/outgoing_copies.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using actors::devices::outgoing_copies;

namespace {

transport::tensor_tag step(std::uint64_t number) { return {.generation = 1, .step = number}; }

/// What is sent, and a gate that it waits at.
struct sent_tensors {
  std::mutex mutex;
  std::vector<std::uint64_t> steps;
  std::condition_variable changed;
  std::atomic<bool> may_send = true;

  void send(const transport::tensor_tag& tag) {
    may_send.wait(false);
    std::lock_guard lock(mutex);
    steps.push_back(tag.step);
    changed.notify_all();
  }
  std::vector<std::uint64_t> wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return steps.size() >= count; });
    return steps;
  }
  void open() {
    may_send = true;
    may_send.notify_all();
  }
};

}  // namespace

TEST_CASE("tensors are sent in the order in which they are given, while the giver goes on") {
  sent_tensors sent;
  sent.may_send = false;
  outgoing_copies copies(
      [&](int rank, const transport::tensor_tag& tag, const tensor& value) {
        CHECK(rank == 3);
        CHECK(value.values<float>()[0] == static_cast<float>(tag.step));
        sent.send(tag);
      },
      [](const transport::tensor_tag&, std::exception_ptr) { FAIL("nothing fails here"); });
  for (std::uint64_t number = 0; number < 50; ++number)
    copies.add(3, step(number), tensor::full({1}, static_cast<float>(number)));
  sent.open();
  auto all = sent.wait_for(50);
  CHECK(std::ranges::is_sorted(all));
  CHECK(all.size() == 50);
}

TEST_CASE("what is not sent is forgotten, and what is being sent is waited for") {
  sent_tensors sent;
  sent.may_send = false;
  std::promise<void> begun;
  bool is_first = true;
  outgoing_copies copies(
      [&](int, const transport::tensor_tag& tag, const tensor&) {
        if (std::exchange(is_first, false)) begun.set_value();
        sent.send(tag);
      },
      [](const transport::tensor_tag&, std::exception_ptr) {});
  for (std::uint64_t number = 0; number < 5; ++number) copies.add(0, step(number), tensor::zeros({1}));
  begun.get_future().wait();
  auto cleared = std::async(std::launch::async, [&] { copies.clear(); });
  sent.open();
  cleared.wait();
  auto number_sent = sent.wait_for(1).size();
  copies.add(0, step(9), tensor::zeros({1}));
  auto all = sent.wait_for(number_sent + 1);
  CHECK(all.size() == number_sent + 1);
  CHECK(all.front() == 0);
  CHECK(all.back() == 9);
}

TEST_CASE("a failure is told once, and nothing is sent after it until all is forgotten") {
  sent_tensors sent;
  std::promise<std::string> told;
  outgoing_copies copies(
      [&](int, const transport::tensor_tag& tag, const tensor&) {
        if (tag.step == 1) throw std::runtime_error("no buffers");
        sent.send(tag);
      },
      [&](const transport::tensor_tag& tag, std::exception_ptr cause) {
        CHECK(tag.step == 1);
        try {
          std::rethrow_exception(cause);
        } catch (const std::exception& problem) {
          told.set_value(problem.what());  // twice would throw
        }
      });
  for (std::uint64_t number = 0; number < 4; ++number) copies.add(0, step(number), tensor::zeros({1}));
  CHECK(told.get_future().get() == "no buffers");
  copies.clear();
  copies.add(0, step(7), tensor::zeros({1}));
  CHECK(sent.wait_for(2) == std::vector<std::uint64_t>{0, 7});
}
