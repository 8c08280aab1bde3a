#include "troupe/collective/libraries/nccl/nccl_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/collective/cases/elements.hpp"
#include "support/devices.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

double value(std::int64_t i) { return static_cast<double>(i % 50 + 1); }

/// A group of this process only, whose results equal its inputs.
class group_of_one {
 public:
  group_of_one()
      : gpu(first_gpu()),
        place(folder_.path()),
        group(make_nccl_group({"all", {0}, 0}, place, make_nccl_connections(gpu))) {}

  tensor input(std::int64_t count, dtype type) const { return filled(count, type, value).to(gpu); }
  tensor room(std::int64_t count, dtype type) const { return tensor::zeros({count}, type, gpu); }
  static void expect_input(const tensor& x) { expect_elements(x.to({}), value); }

 private:
  temp_folder folder_;

 public:
  device gpu;
  folder_store place;
  std::unique_ptr<communicator> group;
};

}  // namespace

TEST_CASE("GPUs: reductions of one member over NCCL return its input") {
  group_of_one one;
  for (auto type : collective_types)
    for (auto op : reduce_ops)
      for (std::int64_t count : {0, 1, 33, 70001}) {
        auto x = one.input(count, type), result = one.room(count, type);
        one.group->all_reduce(x, op).wait();
        group_of_one::expect_input(x);
        one.group->reduce(x, result, 0, op).wait();
        group_of_one::expect_input(result);
        result.fill_zero();
        one.group->reduce_scatter(x, result, op).wait();
        group_of_one::expect_input(result);
      }
}

TEST_CASE("GPUs: copies of one member over NCCL return its input") {
  group_of_one one;
  for (auto type : collective_types)
    for (std::int64_t count : {0, 1, 33, 70001}) {
      auto x = one.input(count, type);
      auto check_into = [&](auto call) {
        auto result = one.room(count, type);
        call(result).wait();
        group_of_one::expect_input(result);
      };
      check_into([&](tensor& result) { return one.group->all_gather(x, result); });
      check_into([&](tensor& result) { return one.group->gather(x, result, 0); });
      check_into([&](tensor& result) { return one.group->scatter(x, result, 0); });
      check_into([&](tensor& result) { return one.group->all_to_all(x, result); });
      one.group->broadcast(x, 0).wait();
      group_of_one::expect_input(x);
    }
  one.group->barrier().wait();
}

TEST_CASE("GPUs: an NCCL group allocates on its GPU and refuses tensors on other devices") {
  group_of_one one;
  CHECK(one.group->allocate({3}).device() == one.gpu);
  CHECK_THROWS_AS(one.group->all_reduce(tensor::zeros({3})).wait(), std::exception);
}

TEST_CASE("GPUs: the formation of an NCCL group ends at its time-out") {
  temp_folder folder;
  folder_store place(folder.path());
  auto gpu = first_gpu();
  CHECK_THROWS_AS(make_nccl_group({"all", {0, 1}, 1}, place, make_nccl_connections(gpu),
                                  {.timeout = std::chrono::milliseconds(50)}),
                  collective_error);
}

TEST_CASE("NCCL's groups are refused on a CPU, and in a build without NCCL", "[host]") {
  temp_folder folder;
  folder_store place(folder.path());
  CHECK_THROWS_WITH(make_nccl_connections(device{}), Catch::Matchers::ContainsSubstring("NCCL"));
}
