#include "bench/compute/device_rates.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/ops/matmul_precision.hpp"
#include "troupe/random/fill.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::bench {
namespace {

constexpr auto cpu = device::kind::cpu;

std::int64_t product_size(dtype type, device where) {
  if (where.type == cpu) return 1024;
  auto is_f32 = type == dtype::f32 && current_matmul_precision() == matmul_precision::f32;
  return is_f32 ? 4096 : 8192;
}

}  // namespace

void bench_precision::choose(device where) const {
  if (name != "f32" && name != "tf32" && name != "bf16")
    throw bad_input("--dtype " + name + ": expected f32, tf32 or bf16");
  if (name == "tf32" && where.type == cpu)
    throw bad_input("--dtype tf32: only GPUs compute in TF32; choose one with --device cuda:0");
  set_matmul_precision(name == "tf32" ? matmul_precision::tf32 : matmul_precision::f32);
}

double seconds_of(device where, const std::function<void()>& work) {
  synchronize(where);
  auto begin = std::chrono::steady_clock::now();
  work();
  synchronize(where);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double best_seconds_of(device where, int rounds, const std::function<void()>& work) {
  constexpr double worth_measuring_s = 5e-3;
  auto best = std::max(1e-7, seconds_of(where, work));
  auto repeats = std::clamp(static_cast<int>(std::ceil(worth_measuring_s / best)), 1, 1000);
  for (int round = 0; round < rounds; ++round) {
    auto all = seconds_of(where, [&] {
      for (int i = 0; i < repeats; ++i) work();
    });
    best = std::min(best, all / repeats);
  }
  return best;
}

product_rate::product_rate(dtype type, device where)
    : where_(where),
      size_(product_size(type, where)),
      a_(random_values({size_, size_}, type, where, "a")),
      b_(random_values({size_, size_}, type, where, "b")) {
  matmul(a_, b_);
}

void product_rate::measure() {
  best_s_ = std::min(best_s_, best_seconds_of(where_, 5, [this] { matmul(a_, b_); }));
}

double product_rate::flops_per_s() const {
  auto size = static_cast<double>(size_);
  return 2 * size * size * size / best_s_;
}

double copy_bytes_per_s(device where) {
  auto size = std::int64_t{where.type == cpu ? 64 : 1024} << 20;
  auto from = tensor::zeros({size}, dtype::u8, where), to = tensor::zeros({size}, dtype::u8, where);
  return 2 * static_cast<double>(size) / best_seconds_of(where, 5, [&] { to.copy_from(from); });
}

tensor random_values(shape extents, dtype type, device where, const char* name) {
  auto made = tensor::empty(std::move(extents));
  fill_uniform(made, -1, 1, 1, name);
  return cast(made, type).to(where);
}

}  // namespace troupe::bench
