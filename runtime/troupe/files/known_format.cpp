#include "troupe/files/known_format.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

namespace troupe::files {
namespace {

using namespace std::string_view_literals;

struct row {
  std::string_view begin, name, what_to_do;
};

constexpr std::array rows{
    row{"PK\x03\x04"sv, "a zip archive, as torch.save (.pt, .pth, .bin) and numpy.savez (.npz) write",
        "Save a state_dict with safetensors.torch.save_file, an array with numpy.save"},
    row{"\x80\x02"sv, "a Python pickle, as old versions of torch.save (.pt, .pth, .bin) write",
        "Load it in Python, and save the state_dict with safetensors.torch.save_file"},
    row{"\x80\x03"sv, "a Python pickle",
        "Load it in Python, and save the state_dict with safetensors.torch.save_file"},
    row{"\x80\x04"sv, "a Python pickle",
        "Load it in Python, and save the state_dict with safetensors.torch.save_file"},
    row{"\x80\x05"sv, "a Python pickle",
        "Load it in Python, and save the state_dict with safetensors.torch.save_file"},
    row{"\x1f\x8b"sv, "a gzip file", "Unpack it first: gunzip"},
    row{"\x28\xb5\x2f\xfd"sv, "a Zstandard file", "Unpack it first: unzstd"},
    row{"\xfd"
        "7zXZ\0"sv,
        "an xz file", "Unpack it first: unxz"},
    row{"BZh"sv, "a bzip2 file", "Unpack it first: bunzip2"},
    row{"\x93NUMPY"sv, "NumPy's .npy", "read_npy and npy_dataset read it"},
    row{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", "Save its arrays as .npy or safetensors"},
    row{"GGUF"sv, "a GGUF file", "Get the model's weights as safetensors"},
    row{"version https:"sv, "a pointer of Git LFS instead of the file", "Get the file itself: git lfs pull"},
    row{"<!DOCTYPE"sv, "a web page", "Download the file itself"},
    row{"<!doctype"sv, "a web page", "Download the file itself"},
    row{"<html"sv, "a web page", "Download the file itself"},
    row{"{\""sv, "JSON",
        "Of a model in several shards name the index *.safetensors.index.json or the folder"},
    row{"{\n"sv, "JSON",
        "Of a model in several shards name the index *.safetensors.index.json or the folder"},
};

}  // namespace

std::optional<known_format> known_format_of(std::span<const std::byte> begin) {
  std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  // Some of these two bytes are also the length of a safetensors header, followed by zeros.
  if (text.size() < 3 || text[2] == '\0') return {};
  auto found = std::ranges::find_if(rows, [text](const row& each) { return text.starts_with(each.begin); });
  if (found == rows.end()) return {};
  return known_format{std::string(found->name), std::string(found->what_to_do)};
}

std::optional<known_format> known_format_of(const std::filesystem::path& file) {
  std::array<std::byte, 16> begin{};
  std::ifstream stream(file, std::ios::binary);
  stream.read(reinterpret_cast<char*>(begin.data()), begin.size());
  return known_format_of(std::span(begin).first(static_cast<std::size_t>(stream.gcount())));
}

}  // namespace troupe::files
