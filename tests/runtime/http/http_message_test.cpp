#include "troupe/http/http_message.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::http;

TEST_CASE("a target is a path and parameters, which are percent-decoded") {
  http_request request{"GET", "/api/v1/metrics?after=12&name=a%20b+c%2&flag"};
  CHECK(request.path() == "/api/v1/metrics");
  CHECK(request.parameter("after") == "12");
  CHECK(request.parameter("name") == "a b c%2");
  CHECK(request.parameter("flag") == "");
  CHECK(request.parameter("none") == std::nullopt);
  CHECK(http_request{"GET", "/path"}.parameter("after") == std::nullopt);
}

TEST_CASE("a number parameter is within its bounds or refused") {
  http_request request{"GET", "/?a=5&b=-1&c=&d=99999999999999999999999&e=5x"};
  CHECK(number_parameter(request, "a", 1, 0, 10) == 5);
  CHECK(number_parameter(request, "a", 1, 6, 10) == std::nullopt);
  CHECK(number_parameter(request, "z", 1, 0, 10) == 1);
  for (const char* name : {"b", "c", "d", "e"})
    CHECK(number_parameter(request, name, 1, 0, 10) == std::nullopt);
}
