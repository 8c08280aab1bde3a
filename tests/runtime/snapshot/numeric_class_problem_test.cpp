#include "troupe/snapshot/manifest.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Matchers::ContainsSubstring;
using troupe::snapshot::numeric_class_problem;

namespace {

std::string problem(const std::string& written_with, const std::string& own) {
  troupe::snapshot::snapshot_manifest manifest;
  manifest.step = 30;
  manifest.numeric_class = written_with;
  return numeric_class_problem(manifest, own);
}

}  // namespace

TEST_CASE("a job continues from a snapshot of the same numeric class") {
  CHECK(problem("cpu-1", "cpu-1").empty());
}

TEST_CASE("the refusal of a snapshot of another numeric class names both and what to do") {
  for (const char* written_with : {"onednn-2.6.3-avx2", "plain", "cpu-1+cuda-13.0"})
    CHECK_THAT(problem(written_with, "cpu-1"),
               ContainsSubstring("step 30") && ContainsSubstring(std::string(written_with) + ",") &&
                   ContainsSubstring("have cpu-1") && ContainsSubstring("Use the version of Troupe"));
}
