#include "support/cuda_emulation/execution/fault.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/cuda_emulation/execution/block.hpp"

namespace troupe::emulation {
namespace {

std::string place() {
  if (!running) return "";
  auto at = running->index();
  auto text = " in kernel " + running->kernel() + ", block (" + std::to_string(at.x) + ", " +
              std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
  if (running->current) text += ", thread " + std::to_string(running->current->index.x);
  return text;
}

}  // namespace

bool is_same(const call& a, const call& b) {
  return a.site.line() == b.site.line() && a.site.column() == b.site.column() &&
         std::strcmp(a.function, b.function) == 0 && std::strcmp(a.site.file_name(), b.site.file_name()) == 0;
}

std::string to_string(const call& of) {
  std::string_view file = of.site.file_name();
  file = file.substr(file.rfind('/') + 1);
  return std::string(of.function) + " (" + std::string(file) + ":" + std::to_string(of.site.line()) + ", " +
         of.site.function_name() + ")";
}

void fail(const std::string& problem) {
  std::fprintf(stderr, "CUDA emulation: %s%s\n", problem.c_str(), place().c_str());
  std::abort();
}

void fail(const call& at, const std::string& problem) { fail(to_string(at) + ": " + problem); }

}  // namespace troupe::emulation
