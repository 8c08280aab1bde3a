#include "troupe/tensor/host_reads.hpp"

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {
namespace {

thread_local host_reads::scope* innermost = nullptr;

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

host_reads::scope::scope(host_reads& into, content left, const moment& during)
    : into_(into), left_(left), during_(during), outer_(std::exchange(innermost, this)) {}
host_reads::scope::~scope() { innermost = outer_; }

bool host_reads::leave(content what, const tensor& on_gpu, reader read) {
  if (!innermost || (what == content::losses && innermost->left_ != content::losses)) return false;
  innermost->into_.left_.push_back({on_gpu, std::move(read), innermost->during_});
  return true;
}

void host_reads::read_all() {
  auto all = std::exchange(left_, {});
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
      throw std::invalid_argument("step " + std::to_string(each.during.step) + " microbatch " +
                                  std::to_string(each.during.microbatch) + ": " + problem.what());
    }
    next += aligned(size);
  }
}

}  // namespace troupe
