#include "troupe/tensor/cuda/dynamic_library.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using troupe::dynamic_library;
using troupe::library_location;

namespace {

const library_location there{.file_name = "libc.so.6", .folder = "/nowhere", .need = "everything needs C"};

}  // namespace

TEST_CASE("functions of a library are found by name") {
  CHECK(dynamic_library::can_load(there));
  int (*absolute)(int) = nullptr;
  dynamic_library(there).find(absolute, "abs");
  CHECK(absolute(-3) == 3);
}

TEST_CASE("a library that cannot be loaded is named, with what needs it and what to do") {
  library_location place{.file_name = "libnowhere.so.1", .folder = "/nowhere", .need = "tests need it"};
  CHECK_FALSE(dynamic_library::can_load(place));
  CHECK_THROWS_MATCHES(
      dynamic_library(place), troupe::bad_input,
      MessageMatches(ContainsSubstring("tests need it, which cannot be loaded: ") &&
                     ContainsSubstring("libnowhere.so.1") && ContainsSubstring("; install it")));
}

TEST_CASE("a function that a library lacks is named") {
  void (*function)() = nullptr;
  CHECK_THROWS_MATCHES(
      dynamic_library(there).find(function, "troupe_is_not_there"), troupe::bad_input,
      MessageMatches(ContainsSubstring("everything needs C") && ContainsSubstring("troupe_is_not_there")));
}
