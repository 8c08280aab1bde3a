#include "troupe/json/read_json.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Matchers::ContainsSubstring;
using nlohmann::ordered_json;
using troupe::json_text::json_error;
using troupe::json_text::read_json;

namespace {

std::string problem_with(std::string_view text) {
  try {
    troupe::json_text::read_json(
        text, 2, [](const ordered_json& read) { return read.at("steps").get<std::string>(); });
    return {};
  } catch (const json_error& problem) {
    return problem.what();
  }
}

}  // namespace

TEST_CASE("what is wrong with JSON is said without the library's names") {
  CHECK(problem_with(R"({"steps": "3"})").empty());
  CHECK(problem_with(R"({"step": 3})") == "key 'steps' not found");
  CHECK(problem_with(R"({"steps": 3})") == "type must be string, but is number");
  CHECK_THAT(problem_with("{"), ContainsSubstring("line 1") && !ContainsSubstring("exception"));
  CHECK_FALSE(problem_with("").empty());
}

TEST_CASE("JSON nests as deep as it may, however deep it is") {
  CHECK(problem_with(R"({"steps": "3", "other": [1]})").empty());
  CHECK(problem_with(R"({"steps": "3", "other": [[1]]})") == "its JSON nests deeper than 2");
  CHECK(problem_with(std::string(1'000'000, '[')) == "its JSON nests deeper than 2");
}

TEST_CASE("what the reader throws arrives as it is") {
  auto refuse = [](const ordered_json&) -> int { throw std::out_of_range("mine"); };
  CHECK_THROWS_AS(troupe::json_text::read_json("{}", 2, refuse), std::out_of_range);
}
