// What the host gets of a GPU's results without waiting for it (async_host_copy, deferred_reads).
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/bits.hpp"
#include "support/devices.hpp"
#include "troupe/tensor/async/async_host_copy.hpp"
#include "troupe/tensor/async/deferred_reads.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::Equals;

namespace {

tensor numbers(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(first + i);
  return tensor::from(values, {count});
}

}  // namespace

TEST_CASE(
    "an asynchronous copy has the elements, whichever thread takes it and whatever is queued after it") {
  auto where = device_under_test();
  for (std::int64_t count : {1, 5000, 700'000}) {
    auto computed = numbers(7, count).to(where);
    async_host_copy copy(computed);
    auto other = tensor::zeros({count}, dtype::i64, where);
    other.copy_from(computed);
    tensor taken;
    std::thread([&] { taken = copy.take(); }).join();
    CHECK(taken.device() == device());
    CHECK(same_bits(taken, numbers(7, count)));
  }
  CHECK(async_host_copy(tensor::empty({0}, dtype::f32, where)).take().num_elements() == 0);
}

TEST_CASE("asynchronous copies may be dropped, and taken in any order") {
  auto where = device_under_test();
  async_host_copy dropped(numbers(0, 10).to(where)), second(numbers(1, 10).to(where)),
      third(numbers(2, 10).to(where));
  CHECK(same_bits(third.take(), numbers(2, 10)));
  second = std::move(dropped);
  CHECK(same_bits(second.take(), numbers(0, 10)));
}

TEST_CASE("what operations defer is read in order, each with its form") {
  auto where = device_under_test();
  deferred_reads reads;
  std::vector<tensor> seen;
  auto keep = [&](const tensor& on_cpu) { seen.push_back(on_cpu.clone()); };
  CHECK_FALSE(deferred_reads::defer(deferred_reads::content::checks, numbers(0, 3).to(where), keep));
  {
    deferred_reads::scope outer(reads, deferred_reads::content::losses, {});
    CHECK(deferred_reads::defer(deferred_reads::content::losses, numbers(0, 3).to(where), keep));
    deferred_reads::scope inner(reads, deferred_reads::content::checks, {});
    CHECK(deferred_reads::defer(deferred_reads::content::checks, tensor::full({2, 3}, 2.5F).to(where), keep));
    CHECK_FALSE(deferred_reads::defer(deferred_reads::content::losses, numbers(0, 3).to(where), keep));
  }
  CHECK_FALSE(deferred_reads::defer(deferred_reads::content::checks, numbers(0, 3).to(where), keep));
  CHECK(seen.empty());
  reads.read_all();
  REQUIRE(seen.size() == 2);
  CHECK(same_bits(seen[0], numbers(0, 3)));
  CHECK(same_bits(seen[1], tensor::full({2, 3}, 2.5F)));
  reads.read_all();
  CHECK(seen.size() == 2);
}

TEST_CASE("what a reader refuses names what was done, and what is deferred is forgotten") {
  auto where = device_under_test();
  deferred_reads reads;
  int num_read = 0;
  auto refuse = [](const tensor&) { throw std::invalid_argument("label 11"); };
  for (int microbatch : {0, 1}) {
    deferred_reads::scope scope(reads, deferred_reads::content::checks, {3, microbatch});
    REQUIRE(deferred_reads::defer(deferred_reads::content::checks, numbers(0, 1).to(where), refuse));
  }
  CHECK_THROWS_WITH(reads.read_all(), Equals("step 3 microbatch 0: label 11"));
  reads.read_all();
  {
    deferred_reads::scope scope(reads, deferred_reads::content::checks, {});
    REQUIRE(deferred_reads::defer(deferred_reads::content::checks, numbers(0, 1).to(where),
                                  [&](const tensor&) { ++num_read; }));
  }
  reads.clear();
  reads.read_all();
  CHECK(num_read == 0);
}
