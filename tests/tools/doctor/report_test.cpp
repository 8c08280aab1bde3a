#include "report.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace troupe::doctor;

namespace {

const findings sample{{"machine", "cores", verdict::ok, "4", ""},
                      {"machine", "shared memory", verdict::warning, "64 MiB", "mount more"},
                      {"data", "Fashion-MNIST", verdict::missing, "no folder", "apt-get install it"}};

}  // namespace

TEST_CASE("the table is aligned, with remedies and a conclusion") {
  std::ostringstream out;
  print_table(sample, out);
  CHECK(out.str() ==
        "machine\n"
        "  ok       cores          4\n"
        "  warning  shared memory  64 MiB\n"
        "                          -> mount more\n"
        "\n"
        "data\n"
        "  missing  Fashion-MNIST  no folder\n"
        "                          -> apt-get install it\n"
        "\n"
        "The demo cannot run here: see what is missing.\n");
}

TEST_CASE("JSON output has one object per line, and the last one says whether the demo can run") {
  std::ostringstream out;
  print_json(sample, out);
  std::istringstream lines(out.str());
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  REQUIRE(objects.size() == 4);
  CHECK(objects[1] == nlohmann::json{{"group", "machine"},
                                     {"name", "shared memory"},
                                     {"status", "warning"},
                                     {"value", "64 MiB"},
                                     {"remedy", "mount more"}});
  CHECK(objects[3] == nlohmann::json{{"event", "done"}, {"demo_can_run", false}});
}

TEST_CASE("only missing requirements keep the demo from running") {
  CHECK_FALSE(demo_can_run(sample));
  CHECK(demo_can_run({sample[0], sample[1], {"gpus", "GPU", verdict::absent, "none", ""}}));
}

TEST_CASE("a value that is no UTF-8 is printed as valid JSON") {
  std::ostringstream out;
  print_json({{"data", "folder", verdict::ok, "\xff", ""}}, out);
  CHECK(nlohmann::json::accept(out.str().substr(0, out.str().find('\n'))));
}
