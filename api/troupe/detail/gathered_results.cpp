#include "troupe/detail/gathered_results.hpp"

#include <cstddef>
#include <span>
#include <system_error>

#include "troupe/files/durable_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/files/temporary_name.hpp"
#include "troupe/snapshot/gathered_tensor.hpp"
#include "troupe/snapshot/saved_tensors.hpp"
#include "troupe/wire/packed_state.hpp"

namespace troupe::detail {

std::vector<named_tensor> unpack_weights(const std::vector<tensor>& packed_stages) {
  std::vector<wire::unpacked_state> parts;
  for (const auto& packed : packed_stages) parts.push_back(wire::unpack_contents(packed));
  return snapshot::whole_tensors(parts);
}

std::vector<named_tensor> weights_in(const std::vector<tensor>& packed_states) {
  std::vector<wire::unpacked_state> parts;
  for (const auto& packed : packed_states) {
    auto state = wire::unpack_contents(packed);
    auto& part = parts.emplace_back();
    for (std::size_t at = 0; at < state.tensors.size(); ++at) {
      if (!snapshot::is_weight_name(state.contents[at].name)) continue;
      part.tensors.push_back(state.tensors[at]);
      part.contents.push_back(state.contents[at]);
    }
  }
  return snapshot::whole_tensors(parts);
}

std::uint64_t weights_bytes(const nn::Module& model) {
  auto described = model.clone();
  std::int64_t elements = 0;
  for (const auto& each : described->named_parameters()) elements += each.target->extents.num_elements();
  for (const auto& each : described->named_buffers()) elements += each.target->extents.num_elements();
  return static_cast<std::uint64_t>(elements) * sizeof(float);
}

std::string why_not_writable(const std::filesystem::path& file, std::uint64_t size_bytes) {
  auto folder = file.parent_path().empty() ? std::filesystem::path(".") : file.parent_path();
  try {
    files::require_replaceable(file);
    std::error_code problem;
    if (!std::filesystem::is_directory(folder, problem))
      return "cannot write " + file.string() + ": there is no folder " + folder.string() +
             ". Create it, or name another file";
    auto probe = folder / files::temporary_name(file.filename().string());
    files::write_durably(probe, std::span<const std::byte>());
    files::remove_durably(probe);
    auto room = std::filesystem::space(folder, problem);
    if (!problem && room.available < size_bytes)
      return "cannot write " + file.string() + ": the weights take " + std::to_string(size_bytes) +
             " bytes, and the disk has room for " + std::to_string(room.available) +
             ". Make room, or name another file";
    return {};
  } catch (const files::snapshot_error& found) {
    return found.what();
  }
}

}  // namespace troupe::detail
