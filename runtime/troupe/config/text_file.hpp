#pragma once
#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe::config {

/// Far above any file of options or layers.
constexpr std::size_t most_settings_bytes = std::size_t{4} << 20;
/// Far above any other text.
constexpr std::size_t most_text_bytes = std::size_t{1} << 30;

/// The contents of a file. Throws bad_input with the reason if it cannot be read, for a folder too, or has
/// more than `most_bytes`, of which it reads no more; `what` the file is, for its errors: "configuration
/// file".
std::string read_text_file(const std::filesystem::path& file, const std::string& what,
                           std::size_t most_bytes = most_text_bytes);

}  // namespace troupe::config
