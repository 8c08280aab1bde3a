#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>

#include "fake_pack.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string reason_of(const nlohmann::json& step) { return step.at("reason"); }

}  // namespace

TEST_CASE("where everything passes, the exit code is 0 and the report names every part and figure",
          "[.soak]") {
  fake_pack pack;
  auto seen = pack.run();
  INFO(seen.output << seen.errors);
  CHECK(seen.exit_code == 0);
  auto report = pack.report();
  CHECK(report.at("format") == "troupe_gpu_check");
  CHECK(report.at("format_version") == 1);
  CHECK(report.at("state") == "finished");
  CHECK(report.at("exit_code") == 0);
  std::vector<std::string> parts;
  for (const auto& part : report.at("parts")) {
    CHECK(part.at("state") == "passed");
    parts.push_back(part.at("part"));
  }
  CHECK(parts == std::vector<std::string>{"versions", "memory", "operations", "sanitizer", "gpu_tests",
                                          "nccl", "jobs", "jobs_killed", "bench_kernels", "bench_compute",
                                          "bench_jobs"});
  CHECK(report.at("machine").at("gpu").at("name") == "Fake \"GPU\" 9000");
  CHECK(report.at("machine").at("driver_cuda") == "13.1");
  CHECK(report.at("machine").at("gpu").at("mig.mode.current") == "Disabled");
  CHECK_THAT(report.at("machine").at("libraries").at("nccl").at("file").get<std::string>(),
             ContainsSubstring("/libraries/libfake_nccl.so"));
  CHECK(pack.step("memory", "gpu_memory_test").at("cases").at("passed") == 2);
  CHECK(pack.part("bench_compute").at("results").size() == 6);
  CHECK(pack.part("jobs").at("steps").size() == 20);
  CHECK(pack.part("bench_jobs").at("results").at(0).at("samples_per_s") == 22.5);
  CHECK(pack.part("bench_kernels").at("results").at(0).at("product_gflops_per_s") == 700000.5);
  CHECK_THAT(pack.text(),
             ContainsSubstring("123457 tokens/s   50.0 % of 700 TFLOP/s   25.0 % of 4300 GB/s") &&
                 ContainsSubstring("80.0 %  softmax") && ContainsSubstring("exit code 0"));
  CHECK_THAT(pack.text(), ContainsSubstring("22.5 samples/s  1 --stages 1"));
  CHECK(std::ranges::count(pack.text(), '\n') <= 60);
  CHECK_THAT(seen.output, ContainsSubstring(pack.text()));
}

TEST_CASE("with --json each part is one object as soon as it is over, and the report is the last") {
  fake_pack pack;
  auto seen = pack.run({"--json", "--only", "memory,nccl"});
  CHECK(seen.exit_code == 0);
  std::istringstream lines(seen.output);
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  REQUIRE(objects.size() == 3);
  CHECK(objects[0].at("part") == "memory");
  CHECK(objects[1].at("part") == "nccl");
  CHECK(objects[2].at("format") == "troupe_gpu_check");
  CHECK(pack.part("operations").at("state") == "not asked");
}

TEST_CASE("a failing case fails its part by name, and the others still run", "[.soak]") {
  fake_pack pack;
  pack.set_program("ops_gpu_test",
                   "begin; passed one; failed 'softmax of &lt;long&gt; rows' '0.1 == 0.2'; end");
  auto seen = pack.run();
  CHECK(seen.exit_code == 1);
  CHECK(pack.part("operations").at("state") == "failed");
  auto step = pack.step("operations", "ops_gpu_test");
  CHECK(step.at("exit_code") == 42);
  CHECK(step.at("cases").at("failed") == 1);
  CHECK(step.at("failures") == "softmax of <long> rows: 0.1 == 0.2 (b.cpp:7)");
  CHECK_THAT(pack.text(), ContainsSubstring("softmax of <long> rows: 0.1 == 0.2"));
  CHECK(pack.part("bench_compute").at("state") == "passed");
}

TEST_CASE("a job that ends with other weights fails, as does one that lost no process where one is killed",
          "[.soak]") {
  fake_pack pack;
  pack.set_program("gpt", R"(
hash=abc
[[ "$*" != *zb_v* ]] || hash=def
echo "{\"event\":\"done\",\"weights_sha256\":\"$hash\"}")");
  CHECK(pack.run({"--only", "jobs,jobs_killed"}).exit_code == 1);
  auto step = pack.step("jobs", "bf16 2 --stages 4 --schedule zb_v");
  CHECK(step.at("state") == "failed");
  CHECK_THAT(reason_of(step), ContainsSubstring("its weights are def") && ContainsSubstring("abc"));
  CHECK(pack.step("jobs", "f32 4 --stages 4 --schedule gpipe").at("state") == "passed");
  CHECK_THAT(reason_of(pack.step("jobs_killed", "rank 0 killed at step 35")),
             ContainsSubstring("no process was lost"));
}

TEST_CASE("a pack without jobs skips them with the reason") {
  fake_pack pack;
  pack.remove_program("gpt");
  CHECK(pack.run({"--only", "jobs,bench_jobs"}).exit_code == 3);
  CHECK_THAT(reason_of(pack.step("jobs", "jobs")), ContainsSubstring("the build has no actors"));
}

TEST_CASE("a program that crashes, or ends with 0 without results, has failed") {
  fake_pack pack;
  pack.set_program("gpu_memory_test", "begin; passed one; under_way 'rows are copied'; kill -SEGV $$");
  pack.set_program("nn_gpu_test", "exit 0");
  CHECK(pack.run({"--only", "memory,gpu_tests"}).exit_code == 1);
  CHECK_THAT(
      reason_of(pack.step("memory", "gpu_memory_test")),
      ContainsSubstring("SIGSEGV") && ContainsSubstring("in \"rows are copied\", after 1 cases passed"));
  CHECK(pack.step("gpu_tests", "nn_gpu_test").at("state") == "failed");
  CHECK(pack.step("gpu_tests", "autograd_functions_gpu_test").at("state") == "passed");
}

TEST_CASE("cases that skip themselves do not pass") {
  fake_pack pack;
  pack.set_program("gpu_memory_test", "begin; skipped one 'no GPU here'; end");
  pack.set_program("ops_gpu_test", "begin; passed one; skipped two 'no GPU here'; end");
  pack.set_program("collective_nccl_gpu_test", "begin; passed one; skipped two 'one GPU here'; end");
  CHECK(pack.run({"--only", "memory,operations,nccl"}).exit_code == 3);
  CHECK(pack.part("memory").at("state") == "skipped");
  CHECK_THAT(reason_of(pack.part("memory")),
             ContainsSubstring("no GPU here") && ContainsSubstring("driver new enough"));
  CHECK(pack.step("operations", "ops_gpu_test").at("state") == "skipped");
  CHECK(pack.part("operations").at("state") == "incomplete");
  CHECK(pack.part("nccl").at("state") == "passed");
  CHECK_THAT(reason_of(pack.part("nccl")), ContainsSubstring("1 cases skipped themselves: one GPU here"));
}

TEST_CASE("without a GPU parts that need one are skipped, and the exit code shows it", "[.soak]") {
  fake_pack pack;
  pack.set_machine("nvidia-smi", "echo 'no devices were found'; exit 6");
  for (const char* name : {"gpu_memory_test", "ops_gpu_test", "autograd_functions_gpu_test", "nn_gpu_test",
                           "collective_nccl_gpu_test"})
    pack.set_program(name, "begin; skipped one 'no GPU here'; end");
  auto seen = pack.run();
  CHECK(seen.exit_code == 3);
  CHECK_THAT(seen.output, ContainsSubstring("No GPU is to be seen here"));
  for (const char* name : {"versions", "memory", "sanitizer", "gpu_tests", "nccl", "jobs", "jobs_killed",
                           "bench_kernels", "bench_compute", "bench_jobs"})
    CHECK(pack.part(name).at("state") == "skipped");
}

TEST_CASE("a missing library is named, and only parts that need it are skipped", "[.soak]") {
  fake_pack pack;
  pack.remove_library("libfake_nccl.so");
  pack.remove_library("libfake_blas.so");
  pack.set_program(
      "ops_gpu_test",
      "begin; passed one; failed linear 'products need cuBLASLt, which cannot be loaded: x'; end");
  CHECK(pack.run().exit_code == 3);
  CHECK_THAT(reason_of(pack.part("nccl")),
             ContainsSubstring("libfake_nccl.so") && ContainsSubstring("--libraries"));
  CHECK(pack.part("nccl").at("state") == "skipped");
  CHECK(pack.part("bench_compute").at("state") == "skipped");
  CHECK(pack.step("operations", "ops_gpu_test").at("state") == "incomplete");
  CHECK(pack.part("gpu_tests").at("state") == "passed");
}

TEST_CASE("a library that ldconfig lists and that was removed counts as missing", "[.soak]") {
  fake_pack pack;
  pack.remove_library("libfake_nccl.so");
  pack.set_machine("ldconfig", "echo 'libfake_nccl.so (libc6,x86-64) => /nowhere/libfake_nccl.so'");
  CHECK(pack.run({"--only", "nccl"}).exit_code == 3);
  CHECK_THAT(reason_of(pack.part("nccl")), ContainsSubstring("not found here: libfake_nccl.so"));
}

TEST_CASE("a check that cannot load its library is skipped, and one that throws fails with the exception",
          "[.soak]") {
  fake_pack pack;
  pack.remove_library("libfake_blas.so");
  pack.set_program(
      "ops_cuda_test",
      "begin; threw version 'get_version() == 13' 'products need cuBLASLt, which cannot be loaded: "
      "x'; end");
  CHECK(pack.run({"--only", "operations"}).exit_code == 3);
  auto step = pack.step("operations", "ops_cuda_test");
  CHECK(step.at("state") == "skipped");
  CHECK(step.at("cases").at("without_library") == 1);
  pack.set_program("ops_cuda_test", "begin; threw version 'get_version() == 13' 'out of memory'; end");
  CHECK(pack.run({"--only", "operations"}).exit_code == 1);
  CHECK(pack.step("operations", "ops_cuda_test").at("failures") == "version: out of memory (b.cpp:7)");
}

TEST_CASE("an existing library that cannot be loaded is a failure", "[.soak]") {
  fake_pack pack;
  pack.set_program("ops_gpu_test",
                   "begin; failed linear 'products need cuBLASLt, which cannot be loaded: x'; end");
  CHECK(pack.run({"--only", "operations"}).exit_code == 1);
}

TEST_CASE("a program that hangs is ended at its timeout, and the cases that did not run are named",
          "[.soak]") {
  fake_pack pack;
  pack.set_program("ops_gpu_test", "begin; passed one; under_way 'it hangs'; sleep 300");
  CHECK(pack.run({"--time", "15"}).exit_code == 3);
  CHECK(pack.part("memory").at("state") == "passed");
  auto step = pack.step("operations", "ops_gpu_test");
  CHECK(step.at("state") == "incomplete");
  CHECK_THAT(reason_of(step), ContainsSubstring("was up in \"it hangs\", after 1 cases passed"));
  CHECK_THAT(reason_of(pack.part("bench_compute")), ContainsSubstring("no time was left"));
}

TEST_CASE("a bench that is interrupted keeps its complete lines", "[.soak]") {
  fake_pack pack;
  pack.set_program("troupe",
                   R"(echo '{"event":"kernel","kernel":"one"}'; printf '{"event":"kernel","ker'; sleep 300)");
  CHECK(pack.run({"--time", "15", "--only", "bench_kernels"}).exit_code == 3);
  CHECK(pack.step("bench_kernels", "bf16").at("state") == "incomplete");
  CHECK(pack.part("bench_kernels").at("results").at(0).at("kernel") == "one");
}

TEST_CASE("a bench that fails fails its part with its last lines", "[.soak]") {
  fake_pack pack;
  pack.set_program("troupe", "echo 'out of memory' >&2; exit 1");
  CHECK(pack.run({"--only", "bench_compute"}).exit_code == 1);
  CHECK_THAT(reason_of(pack.step("bench_compute", "bf16")), ContainsSubstring("exit code 1: out of memory"));
}

TEST_CASE("an error found by the sanitizer fails its part, and a machine that it does not support skips it",
          "[.soak]") {
  fake_pack pack;
  pack.set_machine("compute-sanitizer",
                   "echo '========= Invalid __global__ write of size 4 bytes'; echo '========= ERROR "
                   "SUMMARY: 1 error'; exit 86");
  CHECK(pack.run({"--only", "sanitizer"}).exit_code == 1);
  CHECK_THAT(reason_of(pack.step("sanitizer", "racecheck")),
             ContainsSubstring("Invalid __global__ write") && ContainsSubstring("ERROR SUMMARY: 1 error"));
  pack.set_machine("compute-sanitizer", "yes '========= Invalid __global__ read' | head -n 50000; exit 86");
  CHECK(pack.run({"--only", "sanitizer,nccl"}).exit_code == 1);
  CHECK(pack.part("nccl").at("state") == "passed");
  pack.set_machine("compute-sanitizer", "exit 86");
  CHECK(pack.run({"--only", "sanitizer,nccl"}).exit_code == 1);
  CHECK(pack.part("nccl").at("state") == "passed");
  pack.set_machine("compute-sanitizer", "echo '========= Error: Device not supported'; exit 1");
  CHECK(pack.run({"--only", "sanitizer"}).exit_code == 3);
  CHECK_THAT(reason_of(pack.step("sanitizer", "memcheck")), ContainsSubstring("Device not supported"));
}

TEST_CASE("a sanitizer that times out without errors is reported as incomplete", "[.soak]") {
  fake_pack pack;
  pack.set_machine("compute-sanitizer", "begin; passed one; under_way two; sleep 300");
  CHECK(pack.run({"--only", "sanitizer", "--time", "16"}).exit_code == 3);
  CHECK(pack.part("sanitizer").at("state") == "incomplete");
  CHECK_THAT(reason_of(pack.step("sanitizer", "memcheck")),
             ContainsSubstring("after 1 cases without an error"));
}

TEST_CASE("a killed run leaves a complete report of the finished parts", "[.soak]") {
  fake_pack pack;
  pack.set_program("ops_gpu_test", "begin; sleep 300");
  for (int number : {SIGKILL, SIGTERM}) {
    CAPTURE(number);
    background_process run(pack.command());
    run.wait_for_line("memory        passed");
    ::kill(run.pid(), number);
    auto ended = run.wait();
    auto report = pack.report();
    CHECK(pack.part("memory").at("state") == "passed");
    CHECK(pack.step("memory", "gpu_memory_test").at("cases").at("passed") == 2);
    CHECK(report.at("state") == (number == SIGKILL ? "running" : "interrupted"));
    CHECK_THAT(pack.text(), ContainsSubstring("memory        passed"));
    if (number == SIGTERM) CHECK(ended.exit_code == 1);
  }
}

TEST_CASE("bad arguments are refused with what was expected") {
  fake_pack pack;
  auto check_refused = [&](const std::vector<std::string>& arguments, const std::string& part) {
    CAPTURE(arguments);
    auto seen = pack.run(arguments);
    CHECK(seen.exit_code == 2);
    CHECK_THAT(seen.errors, ContainsSubstring(part));
  };
  check_refused({"--fast"}, "unknown argument '--fast'");
  check_refused({"--only", "memory,disk"}, "--only 'disk': expected some of versions memory");
  check_refused({"--time", "soon"}, "--time 'soon'");
  check_refused({"--time", "0"}, "--time '0'");
  check_refused({"--time"}, "--time needs a value");
  check_refused({"--libraries", "/nowhere"}, "no folder '/nowhere'");
  check_refused({"--arch", "90"}, "--arch and --build go with --pack");
  check_refused({"--pack", "--arch", "hopper"}, "--arch 'hopper'");
}

TEST_CASE("outside a packed folder the error says how to make one") {
  run_options options;
  options.command = {TROUPE_GPU_CHECK};
  auto seen = run_process(options);
  CHECK(seen.exit_code == 2);
  CHECK_THAT(seen.errors, ContainsSubstring("tools/gpu_check --pack"));
}
