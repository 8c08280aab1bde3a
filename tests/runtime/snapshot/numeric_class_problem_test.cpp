#include "troupe/snapshot/numeric_class_problem.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Matchers::ContainsSubstring;
using troupe::numeric_class_problem;

namespace {

std::string problem(const std::string& written_with, const std::string& own) {
  troupe::snapshot_manifest manifest;
  manifest.step = 30;
  manifest.numeric_class = written_with;
  return numeric_class_problem(manifest, own);
}

}  // namespace

TEST_CASE("a job continues from a snapshot of the same numeric class") {
  CHECK(problem("onednn-2.6.3-avx2", "onednn-2.6.3-avx2").empty());
}

TEST_CASE("the refusal of a snapshot of another instruction set names both sets and the option to use") {
  CHECK_THAT(problem("onednn-2.6.3-avx2", "onednn-2.6.3-avx512_core_bf16"),
             ContainsSubstring("step 30") && ContainsSubstring("onednn-2.6.3-avx2,") &&
                 ContainsSubstring("have onednn-2.6.3-avx512_core_bf16") && ContainsSubstring("--isa avx2,"));
  CHECK_THAT(problem("onednn-2.6.3-avx512_core", "onednn-2.6.3-avx2"),
             ContainsSubstring("--isa avx512_core,"));
}

TEST_CASE("the refusal of a snapshot names no option if none helps") {
  for (const char* own : {"onednn-2.7.0-avx2", "onednn-2.6.3-avx2+cuda-13.0"})
    CHECK_THAT(problem("onednn-2.6.3-avx2", own), ContainsSubstring(own) && !ContainsSubstring("--isa"));
  CHECK_THAT(problem("plain", "onednn-2.6.3-avx2"), !ContainsSubstring("--isa"));
}
