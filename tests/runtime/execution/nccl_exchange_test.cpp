// Gradients in CPU memory that replicas add up over NCCL: over the NCCL of tests, on emulated GPUs.
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "runtime/collective/libraries/nccl_members.hpp"
#include "runtime/execution/exchanging_replicas.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using namespace troupe::execution;
using namespace troupe::testing;

namespace {

std::vector<std::shared_ptr<communicator>> nccl_ends(collective::store& place, int size) {
  std::vector<std::shared_ptr<communicator>> members(static_cast<std::size_t>(size));
  std::vector<std::thread> making;
  for (int member = 0; member < size; ++member)
    making.emplace_back(
        [&, member] { members[static_cast<std::size_t>(member)] = nccl_member(place, size, member); });
  for (auto& each : making) each.join();
  return members;
}

}  // namespace

TEST_CASE("replicas add up over NCCL what they have on the CPU, in buckets and messages, in several steps") {
  collective::memory_store place;
  {
    exchanging_replicas all(nccl_ends(place, 2), {0, 1, 1});
    for (int step = 0; step < 3; ++step) {
      all.begin(3);
      auto own = static_cast<float>(step + 1);
      for (int i : all.drawn_order(3)) {
        std::vector<std::int32_t> words(static_cast<std::size_t>(i + 1), 10 * i + step);
        for (int bucket : all.drawn_order(3)) {
          if (bucket == 0) all.give(i, 0, tensor::full({40}, own * static_cast<float>(i + 1)));
          if (bucket == 1) all.give(i, 1, cast(tensor::full({7}, own), dtype::bf16));
          if (bucket == 2) all.give(i, 2, tensor::from(words, {i + 1}));
        }
      }
      for (const auto& of_replica : all.finish()) {
        for (const auto& bucket : of_replica)
          for (const auto& part : bucket) CHECK(part.device() == device{});
        CHECK(floats_of(of_replica[0].front()) == std::vector<float>(40, 6 * own));
        CHECK(of_replica[1].front().dtype() == dtype::bf16);
        CHECK(floats_of(of_replica[1].front()) == std::vector<float>(7, 3 * own));
        REQUIRE(of_replica[2].size() == 3);
        for (int i = 0; i < 3; ++i) {
          auto message = std::as_const(of_replica[2][static_cast<std::size_t>(i)]).values<std::int32_t>();
          CHECK(std::vector(message.begin(), message.end()) ==
                std::vector<std::int32_t>(static_cast<std::size_t>(i + 1), 10 * i + step));
        }
      }
    }
    CHECK(all.failures().empty());
  }
  check_nccl_is_unharmed();
}
