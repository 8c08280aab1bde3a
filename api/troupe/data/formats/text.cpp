#include "troupe/data/formats/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

struct sample_range {
  std::int64_t first = 0, count = 0;
};

/// The range of samples of a part, from the file size.
sample_range range_of(const std::filesystem::path& file, std::int64_t context, text_part part) {
  if (context < 1) throw_invalid("text_bytes", "context >= 1", std::to_string(context));
  std::error_code problem;
  auto size = std::filesystem::file_size(file, problem);
  if (problem) throw bad_input("text '" + file.string() + "' cannot be read: " + problem.message());
  auto total = size < 1 ? 0 : static_cast<std::int64_t>(size - 1) / context;
  if (total < 2)
    throw bad_input("text '" + file.string() + "' is too short: expected at least " +
                    std::to_string(2 * context + 1) + " bytes for two samples of " + std::to_string(context) +
                    ", found " + std::to_string(size));
  auto for_evaluation = std::max<std::int64_t>(total / 10, 1);
  if (part == text_part::evaluate) return {total - for_evaluation, for_evaluation};
  return {0, total - for_evaluation};
}

}  // namespace

dataset_ptr text_bytes(const std::filesystem::path& file, std::int64_t context, text_part part) {
  auto range = range_of(file, context, part);
  shape extents{range.count, context};
  auto read = [=] {
    std::ifstream stream(file, std::ios::binary);
    labelled_samples content{tensor::empty(extents, dtype::u8), tensor::empty(extents, dtype::u8)};
    for (auto [target, offset] : {std::pair(&content.samples, 0), std::pair(&content.labels, 1)}) {
      stream.seekg(range.first * context + offset);
      stream.read(reinterpret_cast<char*>(target->bytes().data()),
                  static_cast<std::streamsize>(target->size_bytes()));
    }
    if (!stream) throw bad_input("text '" + file.string() + "' cannot be read: " + std::strerror(errno));
    return content;
  };
  return std::make_shared<dataset>(extents, read);
}

}  // namespace troupe
