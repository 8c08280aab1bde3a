#include "fake_pack.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>

namespace troupe::testing {
namespace {

namespace fs = std::filesystem;

/// What scripts may call: write_cases CASE... writes what Catch2's XML reporter would, `unfinished` ends it
/// early.
constexpr const char* catch2_words = R"(#!/bin/bash
for word in "$@"; do [[ $word != xml::out=* ]] || xml=${word#xml::out=}; done
passed() { printf '  <TestCase name="%s" line="1">\n    <OverallResult success="true" skips="0"/>\n  </TestCase>\n' "$1" >>"$xml"; ((good += 1)); }
failed() { printf '  <TestCase name="%s" line="1">\n    <Exception filename="/a/b.cpp" line="7">\n      %s\n    </Exception>\n    <OverallResult success="false" skips="0"/>\n  </TestCase>\n' "$1" "$2" >>"$xml"; ((bad += 1)); }
threw() { printf '  <TestCase name="%s" line="1">\n    <Expression success="false" type="CHECK" filename="/a/b.cpp" line="7">\n      <Original>\n        %s\n      </Original>\n      <Expanded>\n        %s\n      </Expanded>\n      <Exception filename="/a/b.cpp" line="7">\n        %s\n      </Exception>\n    </Expression>\n    <OverallResult success="false" skips="0"/>\n  </TestCase>\n' "$1" "$2" "$2" "$3" >>"$xml"; ((bad += 1)); }
skipped() { printf '  <TestCase name="%s" line="1">\n    <Skip filename="b.cpp" line="7">\n      %s\n    </Skip>\n    <OverallResult success="true" skips="1"/>\n  </TestCase>\n' "$1" "$2" >>"$xml"; ((none += 1)); }
begin() { printf '<Catch2TestRun>\n' >"$xml"; good=0 bad=0 none=0; }
under_way() { printf '  <TestCase name="%s" line="1">\n' "$1" >>"$xml"; }
end() { printf '  <OverallResultsCases successes="%d" failures="%d" skips="%d"/>\n</Catch2TestRun>\n' $good $bad $none >>"$xml"
  if ((bad > 0)); then exit 42; elif ((good == 0 && none > 0)); then exit 4; fi; exit 0; }
)";

constexpr const char* passing = "begin; passed 'one'; passed 'two'; end";

/// A job, which says so if it was started by a launcher.
constexpr const char* gpt = R"(
for step in 1 2 3; do echo "{\"event\":\"step\",\"loss\":5.5,\"samples_per_s\":2$step.5,\"step\":$step}"; done
[[ -z ${LAUNCHED-} ]] || echo '{"event":"recovered","generation":2}'
echo '{"accuracy":0.1,"event":"done","loss":5.2,"weights_sha256":"abcdef0123456789"}'
)";

constexpr const char* troupe = R"(
if [[ $1 == launch ]]; then
  while [[ $1 != -- ]]; do shift; done
  shift
  LAUNCHED=1 exec "$@"
elif [[ $2 == kernels ]]; then
  echo '{"event":"rates","device":"Fake","product_gflops_per_s":700000.5,"copy_gb_per_s":4300.25}'
  echo '{"event":"kernel","kernel":"softmax","extents":[4,4],"dtype":"f32","us":12.5,"floor_us":10.0,"of_floor":0.8}'
else
  echo '{"event":"compute","model":"gpt2","dtype":"bf16","queueing":"graph","tokens_per_s":{"median":123456.7,"n":1},"of_product_rate":{"median":0.5,"n":1},"product_gflops_per_s":{"median":700000.0,"n":1},"of_copy_rate":{"median":0.25,"n":1},"copy_gb_per_s":{"median":4300.0,"n":1}}'
fi)";

constexpr const char* nvidia_smi = R"(
case "$*" in
  *query-gpu=driver_version,*) echo '580.1, 9.0, 143771 MiB, 345 MHz, 3201 MHz, 1980 MHz, 3201 MHz, 75 W, 700 W, 30, P0, Enabled, Enabled, Disabled' ;;
  *query-gpu=name*) echo 'Fake "GPU" 9000' ;;
  *query-gpu=memory.total*) echo '143771 MiB' ;;
  *query-gpu=*) echo '[N/A]' ;;
  *) echo 'CUDA Version                              : 13.1' ;;
esac)";

}  // namespace

fake_pack::fake_pack() {
  const fs::path source = TROUPE_GPU_CHECK;
  fs::create_directories(folder_.path() / "pack");
  fs::copy(source, folder_.path() / "pack/gpu_check");
  fs::copy(source.string() + ".d", folder_.path() / "pack/gpu_check.d", fs::copy_options::recursive);
  std::ofstream(folder_.path() / "pack.txt")
      << "commit=abc\narchitectures=90\ncuda=13.0\ncuda_driver=libfake_driver.so\n"
         "cublaslt=libfake_blas.so\ncudnn=libfake_dnn.so\nnccl=libfake_nccl.so\n";
  fs::create_directories(folder_.path() / "libraries");
  for (const char* name : {"driver", "blas", "dnn", "nccl"})
    std::ofstream(folder_.path() / "libraries" / ("libfake_" + std::string(name) + ".so"));
  fs::create_directories(folder_.path() / "lib");
  for (const char* name : {"gpu_memory_test", "ops_gpu_test", "ops_cuda_test", "autograd_functions_gpu_test",
                           "nn_gpu_test", "stage_programs_gpu_test", "collective_nccl_gpu_test"})
    set_program(name, passing);
  set_program("gpt", gpt);
  set_program("troupe", troupe);
  set_machine("nvidia-smi", nvidia_smi);
  set_machine("compute-sanitizer", "while [[ $1 != */bin/* ]]; do shift; done; exec \"$@\"");
}

void fake_pack::write_script(const fs::path& file, const std::string& body) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << catch2_words << body << "\n";
  fs::permissions(file, fs::perms::owner_all);
}

void fake_pack::set_program(const std::string& name, const std::string& body) {
  write_script(folder_.path() / "bin" / name, body);
}
void fake_pack::set_machine(const std::string& name, const std::string& body) {
  write_script(folder_.path() / "machine" / name, body);
}
void fake_pack::remove_program(const std::string& name) { fs::remove(folder_.path() / "bin" / name); }
void fake_pack::remove_library(const std::string& file_name) {
  fs::remove(folder_.path() / "libraries" / file_name);
}

run_options fake_pack::command(const std::vector<std::string>& arguments) const {
  auto at = folder_.path().string();
  run_options archive;
  archive.command = {"tar", "-C", at, "-czf", at + "/pack/programs.tar.gz", "bin", "lib", "pack.txt"};
  run_process(archive);
  run_options made;
  made.command = {at + "/pack/gpu_check", "--output", at + "/results", "--libraries", at + "/libraries"};
  made.command.insert(made.command.end(), arguments.begin(), arguments.end());
  made.environment["PATH"] = at + "/machine:/usr/bin:/bin";
  made.environment["TMPDIR"] = at;
  return made;
}

process_result fake_pack::run(const std::vector<std::string>& arguments) {
  return run_process(command(arguments));
}

std::string fake_pack::text() const {
  std::ifstream file(folder_.path() / "results/gpu_check.txt");
  std::ostringstream read;
  read << file.rdbuf();
  return read.str();
}

nlohmann::json fake_pack::report() const {
  std::ifstream file(folder_.path() / "results/gpu_check.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

nlohmann::json fake_pack::part(const std::string& name) const {
  auto all = report();
  for (const auto& each : all.at("parts"))
    if (each.at("part") == name) return each;
  FAIL("the report has no part " << name);
  return {};
}

nlohmann::json fake_pack::step(const std::string& part_name, const std::string& name) const {
  auto all = part(part_name);
  for (const auto& each : all.at("steps"))
    if (each.at("step") == name) return each;
  FAIL(part_name << " has no step " << name << ": " << all.dump());
  return {};
}

}  // namespace troupe::testing
