#include "examine.hpp"

#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "support/temp_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe::doctor;

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text << '\n';
}

const finding* find(const findings& found, const std::string& name) {
  for (const auto& line : found)
    if (line.name == name) return &line;
  return nullptr;
}

}  // namespace

TEST_CASE("every library is listed with its version") {
  auto found = examine_libraries();
  for (auto name : {"CAF", "UCX", "libsodium", "zlib", "libdeflate", "spdlog", "yaml-cpp", "cereal", "CLI11",
                    "nlohmann-json"}) {
    CAPTURE(name);
    const auto* line = find(found, name);
    REQUIRE(line);
    CHECK(line->status == verdict::ok);
    CHECK(line->value.find('.') != std::string::npos);
  }
  REQUIRE(find(found, "numeric class"));
}

TEST_CASE("a library of another version than at build time is a warning") {
  CHECK(library("x", "1.2", "1.2").value == "1.2");
  auto other = library("x", "1.2", "1.3");
  CHECK(other.status == verdict::warning);
  CHECK_THAT(other.value, ContainsSubstring("1.2") && ContainsSubstring("1.3"));
  CHECK_FALSE(other.remedy.empty());
}

TEST_CASE("the machine is described, and missing shared memory is a warning") {
  troupe::testing::temp_folder folder;
  auto found = examine_machine(folder.path() / "none");
  for (auto name :
       {"system", "processor", "instruction sets", "cores", "memory", "open files", "locked memory"})
    CHECK(find(found, name));
  CHECK(find(found, "shared memory")->status == verdict::warning);
  CHECK_THAT(find(found, "shared memory")->remedy, ContainsSubstring("mount"));
  CHECK_THAT(find(examine_machine(folder.path()), "shared memory")->value, ContainsSubstring("MiB free"));
}

TEST_CASE("limits that are too low are reported with the command that raises them") {
  CHECK(open_files(1024).status == verdict::ok);
  CHECK(open_files(RLIM_INFINITY).value == "unlimited");
  CHECK(open_files(256).status == verdict::warning);
  CHECK(open_files(256).remedy == "ulimit -n 1024");
  CHECK(locked_memory(65536, false).status == verdict::ok);
  CHECK(locked_memory(RLIM_INFINITY, true).status == verdict::ok);
  CHECK(locked_memory(65536, true).remedy == "ulimit -l unlimited");
}

TEST_CASE("UCX without tcp on the loopback cannot run the demo") {
  CHECK(transports({"self/memory", "tcp/lo", "posix/memory"}).size() == 1);
  auto none = transports({});
  CHECK(find(none, "UCX over loopback")->status == verdict::missing);
  CHECK(find(none, "UCX shared memory")->status == verdict::warning);
  auto other = transports({"tcp/eth0", "sysv/memory"});
  CHECK(find(other, "UCX over loopback")->status == verdict::missing);
  CHECK(find(other, "UCX over loopback")->remedy == "ip link set lo up");
}

TEST_CASE("a loopback missing from the system's list is reported with the remedy /sys") {
  troupe::testing::temp_folder folder;
  auto unlisted = transports({"posix/memory"}, folder.path());
  CHECK_THAT(find(unlisted, "UCX over loopback")->value, ContainsSubstring(folder.path().string()));
  CHECK(find(unlisted, "UCX over loopback")->remedy == "mount -t sysfs sysfs /sys");
}

TEST_CASE("UCX sees the loopback of this machine") {
  auto found = examine_network();
  CHECK(find(found, "loopback")->status == verdict::ok);
  CHECK_THAT(find(found, "UCX transports")->value, ContainsSubstring("tcp/lo"));
}

TEST_CASE("GPUs show their model, their missing driver, or their absence") {
  troupe::testing::temp_folder folder;
  auto driver = folder.path() / "nvidia", devices = folder.path() / "pci";
  CHECK(examine_gpus(driver, devices).at(0).status == verdict::absent);
  write(devices / "0000:00:01.0" / "vendor", "0x10de");
  write(devices / "0000:00:01.0" / "class", "0x010000");
  CHECK(examine_gpus(driver, devices).at(0).status == verdict::absent);
  write(devices / "0000:00:02.0" / "vendor", "0x10de");
  write(devices / "0000:00:02.0" / "class", "0x030200");
  CHECK(examine_gpus(driver, devices).at(0).status == verdict::warning);
  CHECK_THAT(examine_gpus(driver, devices).at(0).remedy, ContainsSubstring("nvidia-driver"));
  write(driver / "gpus" / "0000:00:02.0" / "information", "Model: \t\t NVIDIA H100");
  CHECK(examine_gpus(driver, devices).at(0).value == "NVIDIA H100");
}

TEST_CASE("a missing data set is reported with the package to install") {
  troupe::testing::temp_folder folder;
  auto found = examine_data(folder.path());
  CHECK(found.at(0).status == verdict::missing);
  CHECK_THAT(found.at(0).remedy, ContainsSubstring("dataset-fashion-mnist"));
}
