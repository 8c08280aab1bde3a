#include "troupe/execution/replicas/sum_buffers.hpp"

#include <algorithm>
#include <memory>

namespace troupe::execution {
namespace {

constexpr std::int64_t first_block = std::int64_t{64} << 10, largest_block = std::int64_t{8} << 20;
constexpr std::int64_t alignment = 64;

}  // namespace

tensor sum_buffers::of(int stage, int bucket, std::int64_t num_elements, dtype type) {
  auto& memory = buckets_[{stage, bucket}];
  auto wanted = num_elements * static_cast<std::int64_t>(size_bytes(type));
  if (!memory.defined() || memory.num_elements() < wanted)
    memory = take((wanted + alignment - 1) / alignment * alignment);
  return tensor::wrap(std::make_shared<tensor>(memory), memory.bytes().data(), {num_elements}, type);
}

tensor sum_buffers::take(std::int64_t num_bytes) {
  if (!block_.defined() || block_.num_elements() - num_used_ < num_bytes) {
    auto doubled = block_.defined() ? std::min(2 * block_.num_elements(), largest_block) : first_block;
    block_ = source_({std::max(num_bytes, doubled)}, dtype::u8);
    num_used_ = 0;
  }
  num_used_ += num_bytes;
  return block_.rows(num_used_ - num_bytes, num_bytes);
}

void sum_buffers::clear() {
  buckets_.clear();
  block_ = {};
}

}  // namespace troupe::execution
