#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace troupe::files {

/// A file of another format than expected, by its first bytes.
struct known_format {
  std::string name;        ///< "a zip archive, as torch.save writes (.pt, .pth)"
  std::string what_to_do;  ///< one sentence, for an error
};

/// The format of a file that begins so: those that people give by mistake for arrays and weights. Nothing for
/// other bytes. 16 bytes are enough.
std::optional<known_format> known_format_of(std::span<const std::byte> begin);

/// As above, of a file's first bytes; nothing if it cannot be read.
std::optional<known_format> known_format_of(const std::filesystem::path& file);

}  // namespace troupe::files
