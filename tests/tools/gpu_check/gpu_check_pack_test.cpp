// Packs this build and runs what was packed, as on a machine that has nothing of the project.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

process_result pack(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TROUPE_GPU_CHECK, "--pack"});
  run_options options;
  options.command = std::move(arguments);
  options.deadline = std::chrono::seconds(120);
  return run_process(options);
}

nlohmann::json report_in(const std::filesystem::path& folder) {
  std::ifstream file(folder / "gpu_check.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("the packed folder of a build is small and runs by itself") {
  temp_folder folder;
  auto there = folder.path() / "there";
  auto packed = pack({"--build", TROUPE_BUILD, "--output", there.string()});
  INFO(packed.output << packed.errors);
  REQUIRE(packed.exit_code == 0);
  CHECK_THAT(packed.output, ContainsSubstring("for GPUs ") && ContainsSubstring(" MiB"));
  CHECK(std::filesystem::file_size(there / "programs.tar.gz") < std::size_t{64} << 20);

  run_options options;
  options.command = {(there / "gpu_check").string(),
                     "--only",
                     "versions,memory,operations,gpu_tests,nccl",
                     "--time",
                     "200",
                     "--output",
                     (folder.path() / "results").string()};
  options.environment["PATH"] = "/usr/bin:/bin";
  options.deadline = std::chrono::seconds(220);
  auto seen = run_process(options);
  INFO(seen.output << seen.errors);
  auto report = report_in(folder.path() / "results");
  CHECK(report.at("exit_code") == seen.exit_code);
  // Every program starts: each counts its cases, whether there is a GPU or not.
  int steps = 0;
  for (const auto& part : report.at("parts"))
    for (const auto& step : part.at("steps")) {
      if (!step.contains("cases")) continue;
      ++steps;
      INFO(step.dump());
      CHECK(step.at("state") != "failed");
      CHECK(step.at("cases").at("passed").get<int>() + step.at("cases").at("skipped").get<int>() > 0);
    }
  CHECK(steps >= 5);
}

TEST_CASE("packed programs link only packed libraries and the C library") {
  temp_folder folder;
  REQUIRE(pack({"--build", TROUPE_BUILD, "--output", folder.path().string()}).exit_code == 0);
  run_options options;
  options.command = {"bash", "-c",
                     "cd $0 && tar -xzf programs.tar.gz && LD_LIBRARY_PATH=lib:lib/compiler ldd bin/* | "
                     "awk '$2 == \"=>\" && $3 !~ /^lib\\// { print $1 }' | sort -u",
                     folder.path().string()};
  auto seen = run_process(options);
  CHECK(seen.exit_code == 0);
  std::istringstream names(seen.output);
  for (std::string name; std::getline(names, name);) {
    CAPTURE(name);
    CHECK((name.starts_with("libc.so") || name.starts_with("libm.so") || name.starts_with("libdl.so") ||
           name.starts_with("librt.so") || name.starts_with("libpthread.so")));
  }
}

TEST_CASE("an unsuitable build is refused") {
  temp_folder folder;
  auto seen = pack({"--build", folder.path().string()});
  CHECK(seen.exit_code == 2);
  CHECK_THAT(seen.errors, ContainsSubstring("no build folder"));

  auto cached = [&](const std::string& lines) {
    std::ofstream(folder.path() / "CMakeCache.txt") << lines;
    return pack({"--build", folder.path().string(), "--arch", "90"});
  };
  CHECK_THAT(cached("TROUPE_CUDA:BOOL=OFF\n").errors, ContainsSubstring("built without CUDA"));
  CHECK_THAT(cached("TROUPE_CUDA:BOOL=ON\n").errors, ContainsSubstring("gpu_memory_test"));
}
