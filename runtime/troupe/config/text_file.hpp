#pragma once
#include <filesystem>
#include <string>

namespace troupe {

/// The contents of a file. Throws bad_input with the reason if it cannot be read, for a folder too; `what`
/// the file is, for its errors: "configuration file".
std::string read_text_file(const std::filesystem::path& file, const std::string& what);

}  // namespace troupe
