#include "troupe/wire/packed_state.hpp"

#include <algorithm>
#include <cereal/types/optional.hpp>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::wire {
namespace {

constexpr std::size_t alignment_bytes = 64;

std::size_t aligned(std::size_t size_bytes) {
  return (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

/// Throws unless these are the contents of the state's tensors.
void require_fitting(const std::vector<named_tensor>& state, const std::vector<tensor_contents>& contents) {
  auto fits = [](const named_tensor& held, const tensor_contents& says) {
    return held.name == says.name && held.value.dtype() == says.type && problem_of(says).empty() &&
           held.value.shape() == stored_shape(says);
  };
  auto [held, says] = std::ranges::mismatch(state, contents, fits);
  if (held == state.end() && says == contents.end()) return;
  throw_invalid("pack_state", "the contents of each tensor, in its order",
                held == state.end() ? "contents of " + says->name + ", which is no tensor of the state"
                : says == contents.end()
                    ? "none of " + held->name
                    : "those of " + says->name + " for " + held->name + ", " + describe(held->value));
}

/// Zeros after `used` bytes up to `size_bytes`; the rest of `out`. The memory may hold earlier data of this
/// process, which must not leave it: packed states go over the network and to disk.
std::span<std::byte> pad(std::span<std::byte> out, std::size_t used, std::size_t size_bytes) {
  std::ranges::fill(out.subspan(used, size_bytes - used), std::byte{0});
  return out.subspan(size_bytes);
}

/// What the table says of a tensor. Throws std::runtime_error if there is no such one.
std::pair<shape, dtype> layout_of(const tensor_contents& what) {
  auto problem = problem_of(what);
  try {
    if (problem.empty()) return {stored_shape(what), dtype_from_number(static_cast<std::uint8_t>(what.type))};
  } catch (const std::invalid_argument& thrown) {
    problem = thrown.what();
  }
  throw std::runtime_error("packed state: '" + what.name + "' is no tensor: " + problem);
}

/// Keeps `whole` alive for a view into it.
tensor view_of(const tensor& whole, std::size_t offset, const tensor_contents& what) {
  auto [extents, type] = layout_of(what);
  auto elements = static_cast<std::size_t>(extents.num_elements());
  if (offset > whole.size_bytes() || elements > (whole.size_bytes() - offset) / size_bytes(type))
    throw std::runtime_error("packed state: '" + what.name + "' reaches beyond the end");
  auto owner = std::make_shared<tensor>(whole);
  auto* first = owner->bytes().data() + offset;
  return tensor::wrap(std::move(owner), first, std::move(extents), type);
}

}  // namespace

tensor packed_state_pool::take(std::size_t size_bytes) {
  tensor memory;
  {
    std::lock_guard lock(shelf_->mutex);
    auto fits = std::ranges::find(shelf_->free, size_bytes, &tensor::size_bytes);
    if (fits != shelf_->free.end()) {
      memory = std::move(*fits);
      shelf_->free.erase(fits);
    }
  }
  if (!memory.defined()) memory = tensor::empty({static_cast<std::int64_t>(size_bytes)}, dtype::u8);
  auto back = [home = std::weak_ptr(shelf_)](tensor* returned) {
    std::unique_ptr<tensor> owned(returned);
    if (auto shelf = home.lock()) {
      std::lock_guard lock(shelf->mutex);
      shelf->free.push_back(std::move(*owned));
    }
  };
  std::shared_ptr<tensor> owner(new tensor(memory), back);
  return tensor::wrap(std::move(owner), memory.bytes().data(), memory.shape(), dtype::u8);
}

tensor pack_state(const std::vector<named_tensor>& state, const std::vector<tensor_contents>& contents,
                  packed_state_pool& pool) {
  auto from_any_device = [&](std::size_t index, std::span<std::byte> to) {
    const auto& value = state[index].value;
    tensor::wrap({}, to.data(), value.shape(), value.dtype()).copy_from(value);
  };
  return pack_state(state, contents, pool, from_any_device);
}

tensor pack_state(const std::vector<named_tensor>& state, const std::vector<tensor_contents>& contents,
                  packed_state_pool& pool, const element_copy& copy) {
  require_fitting(state, contents);
  auto table = encode(contents);
  auto total = aligned(sizeof(std::uint64_t) + table.size());
  for (const auto& item : state) total += aligned(item.value.size_bytes());
  auto packed = pool.take(total);
  auto out = packed.bytes();
  std::uint64_t table_bytes = table.size();
  std::memcpy(out.data(), &table_bytes, sizeof table_bytes);
  out = out.subspan(sizeof table_bytes);
  if (!table.empty()) std::memcpy(out.data(), table.data(), table.size());
  out = pad(out, table.size(), aligned(sizeof table_bytes + table.size()) - sizeof table_bytes);
  for (std::size_t index = 0; index < state.size(); ++index) {
    auto size_bytes = state[index].value.size_bytes();
    copy(index, out.first(size_bytes));
    out = pad(out, size_bytes, aligned(size_bytes));
  }
  return packed;
}

tensor pack_state(const std::vector<named_tensor>& state, packed_state_pool& pool) {
  return pack_state(state, whole_contents(state), pool);
}

unpacked_state unpack_contents(const tensor& packed) {
  auto bytes = packed.bytes();
  std::uint64_t table_bytes = 0;
  if (bytes.size() < sizeof table_bytes) throw std::runtime_error("packed state: too short");
  std::memcpy(&table_bytes, bytes.data(), sizeof table_bytes);
  if (table_bytes > bytes.size() - sizeof table_bytes)
    throw std::runtime_error("packed state: truncated table");
  unpacked_state state;
  state.contents = decode<std::vector<tensor_contents>>(bytes.subspan(sizeof table_bytes, table_bytes));
  auto offset = aligned(sizeof table_bytes + table_bytes);
  for (const auto& what : state.contents) {
    state.tensors.push_back({what.name, view_of(packed, offset, what)});
    offset += aligned(state.tensors.back().value.size_bytes());
  }
  return state;
}

std::vector<named_tensor> unpack_state(const tensor& packed) { return unpack_contents(packed).tensors; }

}  // namespace troupe::wire
