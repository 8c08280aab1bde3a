#include "troupe/config/text_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "troupe/error/errors.hpp"

namespace troupe::config {

std::string read_text_file(const std::filesystem::path& file, const std::string& what,
                           std::size_t most_bytes) {
  auto refuse = [&](const std::string& why) {
    throw bad_input("cannot read the " + what + " '" + file.string() + "': " + why);
  };
  std::error_code problem;
  if (std::filesystem::is_directory(file, problem)) refuse("it is a folder");
  if (problem) refuse(problem.message());
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(std::strerror(errno));
  std::string text;
  std::vector<char> piece(std::size_t{1} << 16);
  while (text.size() <= most_bytes && stream) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) refuse(std::strerror(errno));
  if (text.size() > most_bytes)
    refuse("expected " + std::to_string(most_bytes) +
           " bytes at most, and it has more. Is it the right file?");
  return text;
}

}  // namespace troupe::config
