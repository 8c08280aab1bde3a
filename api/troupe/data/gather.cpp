#include "troupe/data/gather.hpp"

#include <cstring>

#include "troupe/error/errors.hpp"

namespace troupe {

tensor gather_rows(const tensor& source, std::span<const std::int64_t> indices) {
  if (source.extents().rank() == 0) throw_invalid("gather_rows", "a tensor with rows", describe(source));
  auto total = source.extents()[0];
  auto extents = source.extents().extents();
  extents[0] = static_cast<std::int64_t>(indices.size());
  auto result = tensor::empty(shape(std::move(extents)), source.type(), source.where());
  auto row_bytes = total == 0 ? 0 : source.size_bytes() / static_cast<std::size_t>(total);
  auto* out = result.bytes().data();
  for (auto index : indices) {
    if (index < 0 || index >= total)
      throw_invalid("gather_rows", "indices in [0, " + std::to_string(total) + ")", std::to_string(index));
    if (row_bytes != 0)
      std::memcpy(out, source.bytes().data() + static_cast<std::size_t>(index) * row_bytes, row_bytes);
    out += row_bytes;
  }
  return result;
}

}  // namespace troupe
