#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What a safetensors file holds (https://github.com/huggingface/safetensors, "Format").
struct safetensors_file {
  std::vector<named_tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// The tensors of `file`, in the CPU's memory and in the order of their bytes in the file, and its metadata.
/// F32, BF16, F16, I64, I32, U8 and BOOL are understood. Throws bad_input with the file, the tensor, what was
/// expected, what was found and what to do, for a file that is missing, truncated, or not strictly in the
/// format. Each size in the file is checked against the file's own size before it is used.
safetensors_file read_safetensors(const std::filesystem::path& file);

/// Writes the tensors, from any device, and the metadata to `file`, or leaves the file unchanged (as
/// write_durably does). The tensors are ordered by dtype (I64, F32, I32, BF16, F16, U8, BOOL), then by name;
/// the header is padded to 8 bytes with spaces, as the reference implementation does. Throws
/// std::invalid_argument for an undefined tensor, a name that occurs twice, is "__metadata__" or no UTF-8,
/// and bad_input if the file cannot be written.
void write_safetensors(const std::filesystem::path& file, const std::vector<named_tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace troupe
