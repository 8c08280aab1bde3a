#include "bench/measure/report.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <sstream>

using namespace troupe::bench;

namespace {

/// The lines that `print` writes to standard output.
std::vector<std::string> printed_lines(const std::function<void()>& print) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  REQUIRE(file);
  std::fflush(stdout);
  auto saved = ::dup(STDOUT_FILENO);
  REQUIRE(::dup2(::fileno(file.get()), STDOUT_FILENO) == STDOUT_FILENO);
  print();
  std::fflush(stdout);
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  std::rewind(file.get());
  std::string text;
  for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get())) text += static_cast<char>(c);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const columns shown{{"model", 6}, {"step_s"}, {"samples_per_s"}, {"peaks"}, {"equal"}};

nlohmann::ordered_json result() {
  return {{"model", "mlp"},
          {"step_s", spread_json({0.001, 0.002, 0.004})},
          {"samples_per_s", 12.4},
          {"peaks", {3, 2}},
          {"equal", nullptr}};
}

}  // namespace

TEST_CASE("a spread has the quantiles of the values in any order, and their number") {
  CHECK(spread_json({5, 1, 4, 2, 3}).dump() ==
        R"({"median":3.0,"p25":2.0,"p75":4.0,"min":1.0,"max":5.0,"n":5})");
  CHECK(spread_json({7}).dump() == R"({"median":7.0,"p25":7.0,"p75":7.0,"min":7.0,"max":7.0,"n":1})");
}

TEST_CASE("a median is the middle value, and of none is zero") {
  CHECK(median_of({5, 1, 4, 2, 3}) == 3);
  CHECK(median_of({}) == 0);
}

TEST_CASE("a spread of nothing is null as JSON") { CHECK(spread_json({}).is_null()); }

TEST_CASE("a report as text has the machine, headings once, and a line for each result") {
  auto lines = printed_lines([] {
    report output("compute", false);
    output.note("torch", "no peer was measured");
    output.add(shown, result());
    output.add(shown, result());
  });
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with("machine    "));
  CHECK(lines[1] == "torch      no peer was measured");
  CHECK(lines[2] == "model  step_s                         samples_per_s peaks equal");
  CHECK(lines[3] == "mlp    0.002 [0.001..0.004]           12.4          3,2   -");
  CHECK(lines[4] == lines[3]);
}

TEST_CASE("a report as blocks has a line for each field") {
  auto lines = printed_lines([] {
    report output("compute", false);
    output.add_block(result());
  });
  REQUIRE(lines.size() == 7);
  CHECK(lines[1].empty());
  CHECK(lines[2] == "model          mlp");
  CHECK(lines[4] == "samples_per_s  12.4");
}

TEST_CASE("a report as text has four significant digits of a number, and no exponent of a large one") {
  auto lines = printed_lines([] {
    report output("compute", false);
    output.add_block({{"step_s", 0.123456}, {"tokens_per_s", 123456.7}, {"bytes", 67108864}});
  });
  REQUIRE(lines.size() == 5);
  CHECK(lines[2] == "step_s        0.1235");
  CHECK(lines[3] == "tokens_per_s  123457");
  CHECK(lines[4] == "bytes         67108864");
}

TEST_CASE("a report as JSON is the bench, the machine and the result, a line each, and nothing else") {
  auto lines = printed_lines([] {
    report output("compute", true);
    output.note("torch", "no peer was measured");
    output.add(shown, result());
    output.add_detail(shown, result());
  });
  REQUIRE(lines.size() == 1);
  auto line = nlohmann::json::parse(lines[0]);
  CHECK(line.at("bench") == "compute");
  CHECK(line.at("machine").at("cores") >= 1);
  CHECK(line.at("step_s").at("median") == 0.002);
  CHECK(line.at("equal").is_null());
}

TEST_CASE("the interval of a median is that of the binomial distribution") {
  std::vector<double> values;
  for (int i = 30; i > 0; --i) values.push_back(i);
  CHECK(median_interval(values) == nlohmann::json({10, 21}));
  values.resize(6);  // 25 to 30
  CHECK(median_interval(values) == nlohmann::json({25, 30}));
  values.resize(5);
  CHECK(median_interval(values).is_null());
  CHECK(median_interval({}).is_null());
}
