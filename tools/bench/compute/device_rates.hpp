#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "troupe/tensor/tensor.hpp"

namespace troupe::bench {

/// In what a bench computes products: f32, tf32 or bf16.
struct bench_precision {
  std::string name = "f32";

  /// Of the operands: those of tf32 are f32.
  troupe::dtype dtype() const { return name == "bf16" ? troupe::dtype::bf16 : troupe::dtype::f32; }
  /// Chooses TF32 for this process if that is its name. Throws bad_input for another name, and for TF32 on
  /// the CPU, which has none.
  void choose(device where) const;
};

/// How long `work` takes, with what it queues on `where`, where nothing else is queued.
double seconds_of(device where, const std::function<void()>& work);

/// The best time of one `work` among `rounds`, each of as many in a row as take a few milliseconds, so that
/// waiting for a GPU does not count. `work` has run before.
double best_seconds_of(device where, int rounds, const std::function<void()>& work);

/// The best rate of a square matrix product of random numbers, from which the least time of a step follows.
/// On a GPU the product has 8192 rows (f32 without TF32: 4096), on the CPU it lies in the caches.
class product_rate {
 public:
  product_rate(dtype type, device where);
  /// Some more products: the best of all counts.
  void measure();
  double flops_per_s() const;

 private:
  device where_;
  std::int64_t size_;
  tensor a_, b_;
  double best_s_ = 1e9;
};

/// The best rate at which a copy within the device's memory goes, in bytes read plus bytes written.
double copy_bytes_per_s(device where);

/// Uniform in [-1, 1], made on the CPU, of a floating dtype.
tensor random_values(shape extents, dtype type, device where, const char* name);

}  // namespace troupe::bench
