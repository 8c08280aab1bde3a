#include "inspect/inspector_address.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "troupe/error/errors.hpp"

using namespace troupe;

TEST_CASE("an inspector's address is read as the job's start prints it") {
  auto at = inspector_address_from("http://127.0.0.1:41873/#token=5f0c");
  CHECK(at.host == "127.0.0.1");
  CHECK(at.port == 41873);
  CHECK(at.token == "5f0c");
  CHECK(inspector_address_from("http://[::1]:80/").host == "::1");
  CHECK(inspector_address_from("node7:8080").port == 8080);
  CHECK(inspector_address_from("node7:8080").token.empty());
}

TEST_CASE("what is no address is refused") {
  auto url = GENERATE("", "http://", "127.0.0.1", "http://:80/", "host:0", "host:65536", "host:8x",
                      "https://h:1", "a/b:80", "http://user@host:80");
  INFO(url);
  CHECK_THROWS_AS(inspector_address_from(url), bad_input);
}
