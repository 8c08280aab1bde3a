#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// A tensor of a file that was left out.
struct left_out_tensor {
  std::string name;
  std::string dtype;  ///< as in the file: "F64"
  shape extents;
};

/// What a safetensors file holds (https://github.com/huggingface/safetensors, "Format").
struct safetensors_file {
  std::vector<named_tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::vector<left_out_tensor> left_out = {};
};

/// What happens with tensors whose numbers are of no dtype here.
enum class other_numbers : std::uint8_t {
  refuse,    ///< the file is refused, and each of them is named
  convert,   ///< F64 becomes f32; I8, I16 and U16 i32; U32 and U64 i64; others (such as F8_E4M3) are refused
  leave_out  ///< they are not read, only listed
};

struct safetensors_options {
  other_numbers others = other_numbers::refuse;
};

/// The tensors of `file`, in the CPU's memory and in the order of their bytes in the file, and its metadata.
/// F32, BF16, F16, I64, I32, U8 and BOOL are understood, others as `options` say. Throws bad_input for a file
/// that is missing, truncated, or not strictly in the format. The message has the file, the tensor, what was
/// expected, what was found and what to do. It names the format of a file that is, for example, PyTorch's.
/// Each size in the file is checked against the file's own size before it is used.
safetensors_file read_safetensors(const std::filesystem::path& file, const safetensors_options& options = {});

/// The tensors of all shards of a model, which its index (model.safetensors.index.json) names, in the order
/// of the shards' names. Throws as read_safetensors, and bad_input for an index of another form, for a shard
/// that is missing, and for tensors that are not in the shard that the index names, or not in the index.
safetensors_file read_sharded_safetensors(const std::filesystem::path& index,
                                          const safetensors_options& options = {});

/// Writes the tensors, from any device, and the metadata to `file`, or leaves the file unchanged (as
/// write_durably does). The tensors are ordered by dtype (I64, F32, I32, BF16, F16, U8, BOOL), then by name;
/// the header is padded to 8 bytes with spaces, as the reference implementation does. Throws
/// std::invalid_argument for an undefined tensor, a name that occurs twice, is "__metadata__" or no UTF-8,
/// and bad_input if the file cannot be written.
void write_safetensors(const std::filesystem::path& file, const std::vector<named_tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// The size of a file of a model in several, as Hugging Face's save_pretrained has it.
constexpr std::uint64_t usual_file_bytes = 5'000'000'000;

/// Writes a model in several files and its index, as read_sharded_safetensors reads them: in the order given,
/// at most `max_file_bytes` of elements in each, or one tensor. The index is "NAME.safetensors.index.json",
/// the files beside it "NAME-00001-of-00003.safetensors". Each file is written as a whole or not at all, and
/// the index at last. An index that was there is removed first, and the files that it alone had named at the
/// end, so that no index ever names files of two models. Throws as write_safetensors, and
/// std::invalid_argument for an index of another name and for 0 bytes.
void write_sharded_safetensors(const std::filesystem::path& index, const std::vector<named_tensor>& tensors,
                               std::uint64_t max_file_bytes = usual_file_bytes,
                               const std::map<std::string, std::string>& metadata = {});

/// Whether a file has the name of an index: "NAME.safetensors.index.json".
bool is_safetensors_index(const std::filesystem::path& file);

}  // namespace troupe
