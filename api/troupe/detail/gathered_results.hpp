#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::detail {

/// Unpacks the packed states of all stages into one list of tensors, sorted by name, each in its own memory.
/// Throws std::runtime_error for a malformed packed state. This header is not installed.
std::vector<named_tensor> unpack_weights(const std::vector<tensor>& packed_stages);

/// The parameters and buffers in copies of the states of all stages, sorted by name, each in its own memory.
/// One that several stages hold (a tied weight) is listed once. Throws as unpack_weights does.
std::vector<named_tensor> weights_in(const std::vector<tensor>& packed_states);

/// The size of a model's parameters and buffers in bytes.
std::uint64_t weights_bytes(const nn::Module& model);

/// Checks, without writing, whether a file of `size_bytes` can be written to `file`. Returns the reason if
/// not (the folder is missing or not writable, `file` is not a regular file, the disk is too full), and an
/// empty string if no obstacle is found.
std::string why_not_writable(const std::filesystem::path& file, std::uint64_t size_bytes);

}  // namespace troupe::detail
