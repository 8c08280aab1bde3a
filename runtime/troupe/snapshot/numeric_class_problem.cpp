#include "troupe/snapshot/numeric_class_problem.hpp"

namespace troupe {
namespace {

/// The instruction set that a class names, as --isa takes it: "avx2" of "onednn-2.6.3-avx2"; empty if it
/// names none.
std::string isa_of(const std::string& numeric_class) {
  auto cpu = numeric_class.substr(0, numeric_class.find('+'));
  for (const char* isa : {"sse41", "avx2", "avx512_core", "avx512_core_bf16"})
    if (cpu.ends_with(std::string("-") + isa)) return isa;
  return {};
}

}  // namespace

std::string numeric_class_problem(const snapshot_manifest& manifest, const std::string& own) {
  if (manifest.numeric_class == own) return {};
  auto isa = isa_of(manifest.numeric_class);
  auto advice = isa.empty() || isa == isa_of(own)
                    ? std::string("Use a machine and libraries of its class")
                    : "Use --isa " + isa + ", on machines that have these instructions";
  return "the snapshot of step " + std::to_string(manifest.step) + " was computed with the numeric class " +
         manifest.numeric_class + ", these processes have " + own +
         ": continuing from it would not give the bits of its job. " + advice +
         ", or start from scratch in another --snapshot-dir";
}

}  // namespace troupe
