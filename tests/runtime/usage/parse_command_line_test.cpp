#include "troupe/usage/parse_command_line.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"
#include "troupe/usage/usage_problem.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::usage;

namespace {

/// A program with a command `show`, and a command `start` that starts another program.
class program {
 public:
  program() : app_("", "program") {
    auto* show = app_.add_subcommand("show");
    show->add_option("FILE", file);
    show->add_option("--output", output);
    show->add_option("--step", step);
    show->add_option("--level", level);
    show->add_option("--count", count);
    show->add_flag("--json", json);
    // As `troupe launch`.
    auto* start = app_.add_subcommand("start");
    start->add_option("PROGRAM")->check([](const std::string&) { return std::string("left to it"); });
    start->validate_positionals()->prefix_command()->allow_extras();
    start->add_option("--output", output);
    start->add_flag("--json", json);
    app_.add_flag("--verbose");
  }

  void parse(std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    parse_command_line(app_, static_cast<int>(words.size()), words.data());
  }
  /// Empty: the words are a command line of the program.
  std::string problem_of(std::vector<const char*> words) {
    try {
      parse(std::move(words));
    } catch (const bad_input& problem) {
      return problem.what();
    } catch (const CLI::ParseError& problem) {
      return usage_problem(app_, problem);
    }
    return {};
  }

  std::string output, file;
  std::uint64_t step = 0;
  std::int64_t level = 0;
  int count = 0;
  bool json = false;

 private:
  CLI::App app_;
};

std::string problem_of(std::vector<const char*> words) { return program().problem_of(std::move(words)); }

}  // namespace

TEST_CASE("an option of the command or of its program is no value") {
  CHECK_THAT(problem_of({"show", "--output", "--json"}),
             ContainsSubstring("--output needs a value, got the option --json. --output=--json gives") &&
                 ContainsSubstring("See `program show --help`"));
  CHECK_THAT(problem_of({"show", "file", "--output", "--verbose"}),
             ContainsSubstring("the option --verbose"));
  CHECK_THAT(problem_of({"show", "--output=", "--json"}),
             ContainsSubstring("--output needs a value after the '=', got none"));
  CHECK_THAT(problem_of({"show", "--output"}),
             ContainsSubstring("--output needs a value after it, got none"));
  program given;
  given.parse({"show", "--output=--json", "file"});
  CHECK(given.output == "--json");
  CHECK_FALSE(given.json);
  given.parse({"show", "--", "--output="});  // after -- all words are values
  CHECK(given.file == "--output=");
}

TEST_CASE("the words of another program are its own") {
  for (const auto& words : {std::vector<const char*>{"start", "other", "--output", "--json"},
                            {"start", "--", "other", "--output=", "--json"},
                            {"start", "--output", "file", "other", "--output=", "--", "show"}}) {
    program given;
    CHECK(given.problem_of(words).empty());
    CHECK_FALSE(given.json);
  }
  CHECK_THAT(problem_of({"start", "--output", "--", "other"}),
             ContainsSubstring("--output needs a value, got --"));
}

TEST_CASE("whole numbers that the type does not hold are refused instead of changed") {
  CHECK_THAT(problem_of({"show", "--step", "-1"}),
             ContainsSubstring("--step: expected a whole number from 0 on, got '-1'"));
  CHECK_THAT(problem_of({"show", "--step=-1"}), ContainsSubstring("from 0 on, got '-1'"));
  for (const auto& words : {std::vector<const char*>{"show", "--step", "99999999999999999999"},
                            {"show", "--step=99999999999999999999"}})
    CHECK_THAT(problem_of(words), ContainsSubstring("--step: expected a whole number of at most "
                                                    "18446744073709551615, got '99999999999999999999'"));
  CHECK_THAT(problem_of({"show", "--level", "99999999999999999999"}),
             ContainsSubstring("--level: expected a whole number of at most 9223372036854775807"));
  CHECK_THAT(problem_of({"show", "--level", "-99999999999999999999"}),
             ContainsSubstring("of at least -9223372036854775808"));
  CHECK_THAT(problem_of({"show", "--count", "99999999999"}),
             ContainsSubstring("--count: expected a smaller whole number, got '99999999999'"));
  program given;
  given.parse({"show", "--level", "-1", "--count", "+2", "--step", "18446744073709551615"});
  CHECK(given.level == -1);
  CHECK(given.count == 2);
  CHECK(given.step == ~std::uint64_t{0});
}

TEST_CASE("the message about a switch says what it may be") {
  CHECK_THAT(problem_of({"show", "--json=maybe"}),
             ContainsSubstring("--json: expected true or false, got 'maybe'"));
}
