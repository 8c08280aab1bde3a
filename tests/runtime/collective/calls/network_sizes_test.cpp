#include "troupe/collective/calls/network_sizes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::collective;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

#define CHECK_REFUSED(text, part) \
  CHECK_THROWS_MATCHES(network_sizes_from(text), bad_input, MessageMatches(ContainsSubstring(part)))

TEST_CASE("sizes between hosts are the given ones, or the measured ones by default") {
  CHECK(to_string(network_sizes_from("")) == to_string(network_sizes()));
  auto sizes = network_sizes_from("whole_inputs=64K,block=1M");
  CHECK(sizes.whole_inputs == 65536);
  CHECK(sizes.block == std::size_t{1} << 20);
  CHECK(sizes.whole_broadcast == network_sizes().whole_broadcast);
  CHECK(to_string(network_sizes_from("whole_inputs=0,whole_broadcast=7,block=4096,blocks_ahead=2")) ==
        "whole_inputs=0,whole_broadcast=7,block=4096,blocks_ahead=2");
  CHECK(to_string(network_sizes_from(to_string(sizes))) == to_string(sizes));
}

TEST_CASE("malformed or useless sizes between hosts are refused with what is expected") {
  CHECK_REFUSED("whole=64K", "whole_inputs, whole_broadcast, block, blocks_ahead");
  CHECK_REFUSED("whole_inputs", "whole_inputs from 0 to 1073741824");
  CHECK_REFUSED("whole_inputs=", "such as 4096, 64K or 1M, got ''");
  CHECK_REFUSED("whole_inputs=64k", "got '64k'");
  CHECK_REFUSED("whole_inputs=-1", "got '-1'");
  CHECK_REFUSED("whole_inputs=2048M", "got '2048M'");
  CHECK_REFUSED("block=0", "block from 1024");
  CHECK_REFUSED("blocks_ahead=0", "blocks_ahead from 1 to 1024");
  CHECK_REFUSED("block=1M,,", "NAME=SIZE");
}
