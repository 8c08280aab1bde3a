#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// A program here searches for inputs on which a decoder fails (libFuzzer: inputs that take new branches are
/// kept and changed further). It defines the two functions below; fuzzer_main.cpp calls them.
///
///   NAME --write-seeds FOLDER    writes what the search begins with
///   NAME FOLDER -max_total_time=SECONDS ...    searches; see llvm.org/docs/LibFuzzer.html
namespace troupe::fuzz {

/// Decodes any bytes. The decoder's own exceptions are caught here; whatever else is thrown, a failed
/// expectation and what the sanitizers see end the search and leave the input in a file.
void try_input(std::span<const std::byte> bytes);
/// Valid inputs, made by the project's own writers, and texts that a grammar makes hard to find.
std::vector<std::string> seeds();

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::string text_of(const std::vector<std::byte>& bytes) {
  return std::string(text_of(std::span(bytes)));
}

/// One of the decoders of a program, and what the search for it begins with.
struct decoder {
  void (*run)(std::span<const std::byte> bytes);
  std::vector<std::string> (*seeds)();
};
/// The first byte of an input chooses the decoder, which gets the others.
void try_one_of(std::span<const decoder> decoders, std::span<const std::byte> bytes);
std::vector<std::string> seeds_of(std::span<const decoder> decoders);

/// Runs `call`; an exception of one of the types is what it may do with a wrong input.
template <class... Allowed, class Call>
void allow(const Call& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    if (!(... || (dynamic_cast<const Allowed*>(&failure) != nullptr))) throw;
  }
}

/// Ends the search if it does not hold: the decoder has returned something wrong.
inline void expect(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Files of one input, in memory, for decoders that read files.
class input_folder {
 public:
  input_folder();
  ~input_folder();
  input_folder(const input_folder&) = delete;
  input_folder& operator=(const input_folder&) = delete;
  /// Replaces the file, and returns its path.
  std::filesystem::path write(const std::string& name, std::string_view text) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
/// That of this program.
const input_folder& inputs();
/// What a writer has written to a file.
std::string text_in(const std::filesystem::path& file);

}  // namespace troupe::fuzz
