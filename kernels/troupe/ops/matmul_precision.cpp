#include "troupe/ops/matmul_precision.hpp"

#include <atomic>

namespace troupe {
namespace {

std::atomic<matmul_precision> chosen = matmul_precision::f32;

}  // namespace

void set_matmul_precision(matmul_precision precision) { chosen = precision; }
matmul_precision current_matmul_precision() { return chosen; }

}  // namespace troupe
