#include "troupe/error/function_name.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <functional>
#include <string>
#include <string_view>

#include "troupe/error/errors.hpp"

namespace {

using Catch::Matchers::EndsWith;
using troupe::check_posix;

std::string_view short_name(std::string_view signature) { return troupe::short_function_name(signature); }

struct opener {
  std::function<void(int)> open(const std::string& /*path*/) const {
    errno = ENOENT;
    check_posix(-1, "open");
    return {};
  }
  int operator()(int result) const { return static_cast<int>(check_posix(result, "call")); }
};

}  // namespace

TEST_CASE("the name of a function is taken from what the compiler calls it") {
  CHECK(short_name("troupe::process_events troupe::read_events(const std::filesystem::path&)") ==
        "read_events");
  CHECK(short_name("int main(int, char**)") == "main");
  CHECK(short_name("void (anonymous namespace)::run(std::function<void(int)>)") == "run");
  CHECK(short_name("std::function<void(int)> troupe::made(int) [with T = a::b]") == "made");
  CHECK(short_name("char* troupe::store<int>::name() const") == "name");
  CHECK(short_name("troupe::fit(int)::<lambda(auto:1)>") == "fit");
  CHECK(short_name("troupe::block::block(int)") == "block");
  CHECK(short_name("nothing") == "nothing");
  CHECK(short_name("") == "");
}

TEST_CASE("a failed call of the system names the function in which it failed") {
  CHECK_THROWS_WITH(opener{}.open("file"), EndsWith("(in open)"));
  errno = ENOENT;
  CHECK_THROWS_WITH(opener{}(-1), EndsWith("(in operator())"));
}
