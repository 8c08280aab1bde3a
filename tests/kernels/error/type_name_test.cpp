#include "troupe/error/type_name.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "troupe/error/errors.hpp"

using troupe::type_name;

TEST_CASE("a type is named as in its source") {
  CHECK(type_name(typeid(troupe::bad_input)) == "troupe::bad_input");
  CHECK(type_name(typeid(int)) == "int");
  const std::runtime_error& by_content = troupe::bad_input("");
  CHECK(type_name(typeid(by_content)) == "troupe::bad_input");
}
