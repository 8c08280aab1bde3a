#include "troupe/tensor/async/deferred_reads.hpp"

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {
namespace {

thread_local deferred_reads::scope* innermost = nullptr;

constexpr std::int64_t alignment = 16;

std::int64_t aligned(std::int64_t num_bytes) { return (num_bytes + alignment - 1) / alignment * alignment; }

tensor as_bytes(tensor of) {
  auto owner = std::make_shared<tensor>(std::move(of));
  auto bytes = owner->bytes();
  auto where = owner->device();
  return tensor::wrap(std::move(owner), bytes.data(), {static_cast<std::int64_t>(bytes.size())}, dtype::u8,
                      where);
}

/// Like `model`, from the bytes at the beginning of `bytes`.
tensor view_of(const tensor& bytes, const tensor& model) {
  auto owner = std::make_shared<tensor>(bytes);
  auto* first = owner->bytes().data();
  return tensor::wrap(std::move(owner), first, model.shape(), model.dtype());
}

}  // namespace

deferred_reads::scope::scope(deferred_reads& to, content what, const origin& from)
    : to_(to), what_(what), from_(from), outer_(std::exchange(innermost, this)) {}
deferred_reads::scope::~scope() { innermost = outer_; }

bool deferred_reads::defer(content what, const tensor& on_gpu, reader read) {
  if (!innermost || (what == content::losses && innermost->what_ != content::losses)) return false;
  innermost->to_.deferred_.push_back({on_gpu, std::move(read), innermost->from_});
  return true;
}

void deferred_reads::read_all() {
  auto all = std::exchange(deferred_, {});
  if (all.empty()) return;
  std::int64_t total = 0;
  for (const auto& each : all) total += aligned(static_cast<std::int64_t>(each.on_gpu.size_bytes()));
  auto together = tensor::empty({total}, dtype::u8, all.front().on_gpu.device());
  std::int64_t next = 0;
  for (const auto& each : all) {
    auto size = static_cast<std::int64_t>(each.on_gpu.size_bytes());
    together.rows(next, size).copy_from(as_bytes(each.on_gpu));
    next += aligned(size);
  }
  auto here = together.to({});
  next = 0;
  for (const auto& each : all) {
    auto size = static_cast<std::int64_t>(each.on_gpu.size_bytes());
    try {
      each.read(view_of(here.rows(next, size), each.on_gpu));
    } catch (const std::invalid_argument& problem) {
      throw std::invalid_argument("step " + std::to_string(each.from.step) + " microbatch " +
                                  std::to_string(each.from.microbatch) + ": " + problem.what());
    }
    next += aligned(size);
  }
}

}  // namespace troupe
