#include "troupe/ops/cpu/onednn/relayout.hpp"

#include <oneapi/dnnl/dnnl_version.h>

#if DNNL_VERSION_MAJOR >= 3
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "troupe/ops/cpu/parallel.hpp"
#else
#include <unordered_map>
#endif

namespace troupe::cpu {
namespace {

#if DNNL_VERSION_MAJOR >= 3

constexpr std::size_t most_axes = 5;
using position = std::array<std::int64_t, most_axes>;

/// Where a format has its elements: strides between blocks, and the blocks within each other, the innermost
/// last.
struct placement {
  explicit placement(const dnnl::memory::desc& description)
      : strides(description.get_strides()),
        blocks(description.get_inner_blks()),
        blocked_axes(description.get_inner_idxs()) {}

  std::int64_t offset_of(position at) const {
    std::int64_t offset = 0, within = 1;
    for (auto i = blocks.size(); i-- > 0;) {
      auto& index = at[static_cast<std::size_t>(blocked_axes[i])];
      offset += index % blocks[i] * within;
      index /= blocks[i];
      within *= blocks[i];
    }
    for (std::size_t axis = 0; axis < strides.size(); ++axis) offset += at[axis] * strides[axis];
    return offset;
  }
  bool is_blocked(std::size_t axis) const {
    return std::ranges::find(blocked_axes, static_cast<std::int64_t>(axis)) != blocked_axes.end();
  }

  dnnl::memory::dims strides, blocks, blocked_axes;
};

template <class Element>
void copy_row(const Element* from, std::int64_t from_step, Element* to, std::int64_t to_step,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
}

/// Row by row along the last axis, which is blocked in no format of images or weights that oneDNN chooses.
class looped_relayout : public relayout {
 public:
  looped_relayout(const dnnl::memory& from, const dnnl::memory& to)
      : from_(from),
        to_(to),
        extents_(from.get_desc().get_dims()),
        source_(from.get_desc()),
        target_(to.get_desc()),
        element_bytes_(dnnl::memory::data_type_size(from.get_desc().get_data_type())),
        is_padded_(to.get_desc().get_padded_dims() != to.get_desc().get_dims()) {}

  void run(const dnnl::stream& /*on*/) const override {
    auto* to = static_cast<std::byte*>(to_.get_data_handle());
    const auto* from = static_cast<const std::byte*>(from_.get_data_handle());
    if (is_padded_) std::memset(to, 0, to_.get_desc().get_size());
    const auto last = extents_.size() - 1;
    const bool is_strided = !source_.is_blocked(last) && !target_.is_blocked(last);
    const auto length = is_strided ? extents_[last] : 1;
    std::int64_t num_elements = 1;
    for (auto extent : extents_) num_elements *= extent;
    if (num_elements == 0) return;
    parallel_for(num_elements / length, num_elements, [&](std::int64_t row) {
      auto at = position_of(row * length);
      const auto* here = from + source_.offset_of(at) * element_bytes_;
      auto* there = to + target_.offset_of(at) * element_bytes_;
      if (element_bytes_ == sizeof(float))
        copy_row(reinterpret_cast<const std::uint32_t*>(here), source_.strides[last],
                 reinterpret_cast<std::uint32_t*>(there), target_.strides[last], length);
      else
        copy_row(reinterpret_cast<const std::uint16_t*>(here), source_.strides[last],
                 reinterpret_cast<std::uint16_t*>(there), target_.strides[last], length);
    });
  }

 private:
  position position_of(std::int64_t element) const {
    position at{};
    for (auto axis = extents_.size(); axis-- > 0;) {
      at[axis] = element % extents_[axis];
      element /= extents_[axis];
    }
    return at;
  }

  dnnl::memory from_, to_;
  dnnl::memory::dims extents_;
  placement source_, target_;
  std::ptrdiff_t element_bytes_;  ///< 4 or 2: f32 or bf16
  bool is_padded_;
};

#else

class library_relayout : public relayout {
 public:
  library_relayout(const dnnl::memory& from, const dnnl::memory& to)
      : reorder_(from, to), arguments_{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}} {}

  void run(const dnnl::stream& on) const override { reorder_.execute(on, arguments_); }

 private:
  dnnl::reorder reorder_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

#endif

}  // namespace

std::unique_ptr<const relayout> make_relayout(const dnnl::memory& from, const dnnl::memory& to) {
#if DNNL_VERSION_MAJOR >= 3
  return std::make_unique<looped_relayout>(from, to);
#else
  return std::make_unique<library_relayout>(from, to);
#endif
}

}  // namespace troupe::cpu
