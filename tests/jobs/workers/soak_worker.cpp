// Trains as small a model as there is for very many calls or very many steps, and fails if the memory of the
// process grows. Rank 0 writes a line "done,heap_bytes,resident_bytes" for each of 100 marks.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <troupe/troupe.hpp>
#include <vector>

using namespace troupe;

namespace {

struct mark {
  double done = 0, heap_bytes = 0, resident_bytes = 0;
};

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// What malloc has given out: exact, where the resident memory moves by whole arenas.
double heap_bytes() {
  auto in_use = ::mallinfo2();
  return static_cast<double>(in_use.uordblks + in_use.hblkhd);
}

class memory_curve {
 public:
  memory_curve(std::uint64_t total, const std::string& file) : every_(total / 100) {
    if (every_ == 0) throw bad_input("a soak needs at least 100 calls or steps");
    if (!file.empty()) out_.open(file);
    out_ << "done,heap_bytes,resident_bytes\n";
  }
  void look(std::uint64_t done) {
    if (done % every_ != 0) return;
    marks_.push_back({static_cast<double>(done), heap_bytes(), resident_bytes()});
    out_ << done << "," << static_cast<std::uint64_t>(marks_.back().heap_bytes) << ","
         << static_cast<std::uint64_t>(marks_.back().resident_bytes) << "\n";
  }
  /// Bytes for each call or step after the warm-up, which is the first half: from the least of the third
  /// quarter to the least of the last one. Steps that the program has not heard of yet come and go above it.
  /// Caches and samples of bounded size are full after 2,048 steps and 256 calls.
  double growth(double mark::*of) const {
    auto quarter = marks_.size() / 4;
    if (quarter == 0) throw std::runtime_error("nothing was measured: this process was started again");
    auto least = [&](std::size_t number) {
      auto begin = marks_.begin() + static_cast<std::ptrdiff_t>(number * quarter);
      auto in_quarter = std::ranges::subrange(begin, begin + static_cast<std::ptrdiff_t>(quarter));
      return std::ranges::min(in_quarter, {}, of).*of;
    };
    return (least(3) - least(2)) / (marks_[3 * quarter].done - marks_[2 * quarter].done);
  }

 private:
  std::uint64_t every_;
  std::ofstream out_;
  std::vector<mark> marks_;
};

/// In bytes for each call or step.
struct growth_limits {
  double heap = 1;
  double resident = 1;
};

void expect_flat(const memory_curve& curve, const growth_limits& limits) {
  auto heap = curve.growth(&mark::heap_bytes), resident = curve.growth(&mark::resident_bytes);
  std::cout << "bytes for each: heap " << heap << ", resident " << resident << "\n";
  if (heap > limits.heap || resident > limits.resident)
    throw std::runtime_error("memory grows by " + std::to_string(heap) + " bytes (heap) and " +
                             std::to_string(resident) + " bytes (resident) each, expected at most " +
                             std::to_string(limits.heap) + " and " + std::to_string(limits.resident));
}

}  // namespace

int main(int argc, char** argv) {
  std::string calls = "0", csv, limit = "1", resident_limit = "1";
  auto body = [&](const job_options& options) {
    auto world = World::init(options);
    std::vector<std::int64_t> labels{0, 1, 0, 1};
    auto samples =
        std::make_shared<dataset>(labelled_samples{tensor::full({4, 2}, 0.5f), tensor::from(labels, {4})});
    nn::Sequential model;
    for (int stage = 0; stage < world.num_devices(); ++stage) model.push_back(nn::Linear(2, 2));
    auto num_calls = std::stoull(calls);
    memory_curve curve(num_calls != 0 ? num_calls : options.steps, world.rank() == 0 ? csv : "");
    trainer_callbacks callbacks;
    if (num_calls == 0) callbacks.on_step = [&](const step_event& event) { curve.look(event.step); };
    Trainer trainer(world, Pipeline(model).microbatches(1).loss(nn::CrossEntropy()), callbacks);
    for (std::uint64_t call = 1; call <= std::max<std::uint64_t>(num_calls, 1); ++call) {
      trainer.fit(samples);
      if (num_calls != 0) curve.look(call);
    }
    // Steps are told on rank 0 only.
    if (num_calls != 0 || world.rank() == 0)
      expect_flat(curve, {std::stod(limit), std::stod(resident_limit)});
  };
  return run_program(argc, argv, {}, body,
                     {{"--calls", "of fit, of --steps steps each; 0: one", &calls},
                      {"--csv", "where the curve goes", &csv},
                      {"--limit", "bytes of the heap for each call or step", &limit},
                      {"--resident-limit", "bytes of resident memory for each of them", &resident_limit}});
}
