#include "troupe/http/listen_address.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::http;

TEST_CASE("an address to listen on is an address, a port or both") {
  CHECK(listen_address_from("8080") == listen_address{"127.0.0.1", 8080});
  CHECK(listen_address_from("127.0.0.2") == listen_address{"127.0.0.2", 0});
  CHECK(listen_address_from("localhost:80") == listen_address{"127.0.0.1", 80});
  CHECK(listen_address_from("0.0.0.0:8080") == listen_address{"0.0.0.0", 8080});
  CHECK(listen_address_from("[::1]:8080") == listen_address{"::1", 8080});
  CHECK(listen_address_from("::1") == listen_address{"::1", 0});
  CHECK(to_string(listen_address{"::1", 8080}) == "[::1]:8080");
  CHECK(to_string(listen_address{}) == "127.0.0.1:0");
}

TEST_CASE("what is no address to listen on is refused with its text") {
  auto text = GENERATE("", "example.org:80", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:8x", "[::1",
                       "[::1]80", "99999", "127.0.0.1:80:80", "-1", "1.2.3");
  CHECK_THROWS_AS(listen_address_from(text), bad_input);
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_WITH(listen_address_from(text), ContainsSubstring("'" + std::string(text) + "'") &&
                                                   ContainsSubstring("Expected ADDRESS:PORT"));
}

TEST_CASE("only addresses of this machine alone are loopback") {
  CHECK(listen_address{"127.0.0.1", 1}.is_loopback());
  CHECK(listen_address{"127.3.2.1", 1}.is_loopback());
  CHECK(listen_address{"::1", 1}.is_loopback());
  CHECK_FALSE(listen_address{"0.0.0.0", 1}.is_loopback());
  CHECK_FALSE(listen_address{"::", 1}.is_loopback());
  CHECK_FALSE(listen_address{"192.168.0.1", 1}.is_loopback());
}
