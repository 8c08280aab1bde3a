#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "fuzz/fuzzer.hpp"

namespace troupe::fuzz {

void try_one_of(std::span<const decoder> decoders, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  decoders[static_cast<std::size_t>(bytes[0]) % decoders.size()].run(bytes.subspan(1));
}

std::vector<std::string> seeds_of(std::span<const decoder> decoders) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < decoders.size(); ++i)
    for (const auto& seed : decoders[i].seeds()) made.push_back(static_cast<char>(i) + seed);
  return made;
}

input_folder::input_folder() : path_("/dev/shm/troupe-fuzz-" + std::to_string(::getpid())) {
  std::filesystem::create_directories(path_);
}

input_folder::~input_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path input_folder::write(const std::string& name, std::string_view text) const {
  std::ofstream(path_ / name, std::ios::binary | std::ios::trunc) << text;
  return path_ / name;
}

const input_folder& inputs() {
  static const input_folder folder;
  return folder;
}

std::string text_in(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

namespace {

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const auto& seed : seeds())
    std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
}

}  // namespace
}  // namespace troupe::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc < 2 || std::string_view((*argv)[1]) != "--write-seeds") return 0;
  if (*argc != 3) std::exit(2);
  troupe::fuzz::write_seeds((*argv)[2]);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  troupe::fuzz::try_input({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
