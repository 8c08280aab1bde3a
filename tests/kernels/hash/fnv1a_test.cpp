#include "troupe/hash/fnv1a.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

// The answers that the authors publish (RFC 9923, section 8.2).
TEST_CASE("FNV-1a gives the published answers in 64 and 32 bits") {
  CHECK(troupe::fnv1a().value() == 0xcbf29ce484222325);
  CHECK(troupe::fnv1a().add("a").value() == 0xaf63dc4c8601ec8c);
  CHECK(troupe::fnv1a().add("foobar").value() == 0x85944171f73967e8);
  CHECK(troupe::fnv1a_32().add("a").value() == 0xe40c292c);
  CHECK(troupe::fnv1a_32().add("foobar").value() == 0xbf9cf968);
}

TEST_CASE("FNV-1a takes letters as bytes from 0 to 255, and numbers whole") {
  CHECK(troupe::fnv1a().add("\xff").value() == troupe::fnv1a().add(255).value());
  CHECK(troupe::fnv1a().add(256).value() != troupe::fnv1a().add(0).add(1).value());
  CHECK(troupe::fnv1a().add(std::string("a") + '\0').value() == troupe::fnv1a().add("a").add(0).value());
}
