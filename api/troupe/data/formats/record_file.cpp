#include "troupe/data/formats/record_file.hpp"

#include <zlib.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "troupe/data/formats/detail/data_file.hpp"
#include "troupe/data/formats/detail/record_format.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/temporary_name.hpp"

namespace troupe {
namespace {

void check_record_header(detail::data_file& file, const std::array<char, 8>& magic) {
  auto fail = [&](const std::string& problem) {
    throw bad_input("cannot read " + file.path().string() + ": " + problem);
  };
  detail::record_header found{};
  if (file.size_bytes() < detail::record_header_bytes)
    fail("it is truncated: expected at least " + std::to_string(detail::record_header_bytes) +
         " bytes, found " + std::to_string(file.size_bytes()) + ". Write it again");
  file.read_at(0, std::as_writable_bytes(std::span(&found, 1)));
  if (found.magic != magic)
    fail("expected a file that begins with " + std::string(magic.data(), magic.size()) +
         ", as record_writer writes it");
  if (found.version != detail::record_version)
    fail("expected format version " + std::to_string(detail::record_version) + ", found " +
         std::to_string(found.version) + ": write it again with this version of Troupe, or use a newer one");
}

/// The index under a temporary name that a writer has left behind which ended while it published the two
/// files, if there is one in which the records of `file` end.
std::optional<std::filesystem::path> left_index_of(const std::filesystem::path& file) {
  auto begin = files::temporary_name_begin(detail::index_of_records(file).filename().string());
  auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  std::error_code ignored;
  auto size_bytes = std::filesystem::file_size(file, ignored);
  for (const auto& each : std::filesystem::directory_iterator(folder, ignored)) {
    if (!each.path().filename().string().starts_with(begin)) continue;
    try {
      detail::data_file index(each.path());
      check_record_header(index, detail::record_index_magic);
      auto index_bytes = index.size_bytes() - detail::record_header_bytes;
      detail::record_index_entry last{detail::record_header_bytes, 0, 0};
      if (index_bytes > 0)
        index.read_at(index.size_bytes() - sizeof last, std::as_writable_bytes(std::span(&last, 1)));
      if (index_bytes % sizeof last == 0 && last.end == size_bytes) return each.path();
    } catch (const bad_input&) {
      continue;  // it is no index, and what is said about the missing one holds
    }
  }
  return {};
}

/// Without an index nothing says where a record ends.
std::filesystem::path index_of(const std::filesystem::path& file) {
  auto index = detail::index_of_records(file);
  if (std::filesystem::exists(index)) return index;
  auto text = "cannot read " + file.string() + ": expected its index " + index.string() + ", found none. ";
  if (auto left = left_index_of(file))
    throw bad_input(text +
                    "The program that wrote the records ended before it gave the index its name, and it is "
                    "whole: mv '" +
                    left->string() + "' '" + index.string() + "'");
  throw bad_input(text + "Copy it too from where the records come from, or write the records again");
}

}  // namespace

std::filesystem::path detail::index_of_records(const std::filesystem::path& file) {
  return file.string() + ".index";
}

std::uint32_t detail::record_crc(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

struct record_file::files {
  explicit files(const std::filesystem::path& file) : records(file), index(index_of(file)) {}

  std::uint64_t end_of(std::int64_t count) {
    if (count == 0) return detail::record_header_bytes;
    return entry(count - 1).end;
  }
  detail::record_index_entry entry(std::int64_t number) {
    detail::record_index_entry found{};
    index.read_at(detail::record_header_bytes + static_cast<std::uint64_t>(number) * sizeof found,
                  std::as_writable_bytes(std::span(&found, 1)));
    return found;
  }
  [[noreturn]] void fail(std::int64_t number, const std::string& problem) const {
    throw bad_input("cannot read record " + std::to_string(number) + " of " + records.path().string() + ": " +
                    problem + ". Write the file again, or copy it again from where it is whole");
  }

  detail::data_file records, index;
  std::int64_t num_records = 0;
};

record_file::record_file(const std::filesystem::path& file) : files_(std::make_unique<files>(file)) {
  auto& [records, index, num_records] = *files_;
  check_record_header(records, detail::records_magic);
  check_record_header(index, detail::record_index_magic);
  auto index_bytes = index.size_bytes() - detail::record_header_bytes;
  if (index_bytes % sizeof(detail::record_index_entry) != 0)
    throw bad_input("cannot read " + index.path().string() + ": it is truncated: expected " +
                    std::to_string(sizeof(detail::record_index_entry)) + " bytes for each record, found " +
                    std::to_string(index_bytes) + ". Write the file again");
  num_records = static_cast<std::int64_t>(index_bytes / sizeof(detail::record_index_entry));
  auto end = files_->end_of(num_records);
  if (end != records.size_bytes())
    throw bad_input("cannot read " + file.string() + ": expected " + std::to_string(end) +
                    " bytes, in which the " + std::to_string(num_records) + " records of " +
                    index.path().string() + " end, found " + std::to_string(records.size_bytes()) +
                    ". One of the two files is truncated or of other data: write them again");
  close();
}

record_file::~record_file() = default;

std::int64_t record_file::num_records() const { return files_->num_records; }

std::vector<std::byte> record_file::read(std::int64_t index) {
  if (index < 0 || index >= num_records())
    throw_invalid("record_file", "a record in [0, " + std::to_string(num_records()) + ")",
                  std::to_string(index));
  auto begin = files_->end_of(index);
  auto entry = files_->entry(index);
  if (begin < detail::record_header_bytes || entry.end < begin || entry.end > files_->records.size_bytes())
    files_->fail(index, "its index is damaged: it is said to be the bytes from " + std::to_string(begin) +
                            " to " + std::to_string(entry.end));
  std::vector<std::byte> bytes(entry.end - begin);
  files_->records.read_at(begin, bytes);
  if (detail::record_crc(bytes) != entry.crc)
    files_->fail(index, "it is damaged: expected CRC-32 " + std::to_string(entry.crc) + ", found " +
                            std::to_string(detail::record_crc(bytes)));
  return bytes;
}

void record_file::will_read(std::int64_t first, std::int64_t count) {
  auto begin = files_->end_of(first);
  auto end = files_->end_of(first + count);
  if (begin < end) files_->records.will_read(begin, end - begin);
}

void record_file::close() {
  files_->records.close();
  files_->index.close();
}

}  // namespace troupe
