#include "troupe/config/text_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "troupe/error/errors.hpp"

namespace troupe {

std::string read_text_file(const std::filesystem::path& file, const std::string& what) {
  auto refuse = [&](const std::string& why) {
    throw bad_input("cannot read the " + what + " '" + file.string() + "': " + why);
  };
  if (std::filesystem::is_directory(file)) refuse("it is a folder");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(std::strerror(errno));
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad()) refuse(std::strerror(errno));
  return text.str();
}

}  // namespace troupe
