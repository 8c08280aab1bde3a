#include "troupe/usage/help_formatter.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::usage;

TEST_CASE("help shows defaults as they are typed, and none for an empty list") {
  CLI::App app("", "program");
  app.formatter(std::make_shared<help_formatter>());
  std::vector<int> steps{20, 60}, ranks;
  std::string prompt = "\n";
  app.add_option("--steps", steps, "Fewest and most")->capture_default_str();
  app.add_option("--ranks", ranks, "Whom to kill")->capture_default_str();
  app.add_option("--prompt", prompt, "How the text begins")->capture_default_str();
  auto help = app.help();
  CHECK_THAT(help, ContainsSubstring("--steps N=20,60") && ContainsSubstring("--ranks N ...") &&
                       ContainsSubstring("--prompt TEXT=\\n"));
}
