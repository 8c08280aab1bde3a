#include "troupe/collective/shm/local_group.hpp"

#include <catch2/catch_test_macros.hpp>
#include <thread>

using namespace troupe;
using namespace troupe::collective;

namespace {

template <class Body>
void on_threads(int count, Body body, communicator_options options = {}) {
  auto members = make_local_group(count, options);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] { body(*members[static_cast<std::size_t>(i)]); });
  for (auto& each : threads) each.join();
}

}  // namespace

TEST_CASE("threads of a local group sum their inputs") {
  for (std::int64_t size : {1, 5, 1024, 3001, 600001}) {
    std::vector<float> seen(4);
    on_threads(4, [&](communicator& group) {
      auto x = tensor::full({size}, static_cast<float>(group.rank() + 1));
      for (int i = 0; i < 20; ++i) group.all_reduce(x, reduce_op::mean).wait();
      auto values = x.values<float>();
      seen[static_cast<std::size_t>(group.rank())] =
          *std::min_element(values.begin(), values.end()) + *std::max_element(values.begin(), values.end());
    });
    for (float each : seen) CHECK(each == 5.0F);
  }
}

TEST_CASE("a member that calls another operation is named on all members") {
  std::vector<std::string> told(3);
  on_threads(3, [&](communicator& group) {
    try {
      if (group.rank() == 1)
        group.barrier().wait();
      else
        group.all_reduce(tensor::zeros({10})).wait();
    } catch (const collective_error& error) {
      told[static_cast<std::size_t>(group.rank())] = error.what();
    }
  });
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    const auto& each = told[rank];
    INFO(each);
    CHECK(each.find("barrier") != std::string::npos);
    CHECK(each.find("all_reduce(sum, f32[10])") != std::string::npos);
    CHECK(each.find("The last calls of rank " + std::to_string(rank) + ":\n#1 ") != std::string::npos);
  }
}
