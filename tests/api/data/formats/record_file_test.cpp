#include "troupe/data/formats/record_file.hpp"

#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/temporary_name.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

/// Writes beyond a size fail instead of ending the process.
class limited_file_size {
 public:
  explicit limited_file_size(rlim_t size_bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit{size_bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  limited_file_size(const limited_file_size&) = delete;
  limited_file_size& operator=(const limited_file_size&) = delete;
  ~limited_file_size() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

/// Record i: i bytes of value i.
std::vector<std::byte> record_of(std::size_t i) {
  return std::vector<std::byte>(i, static_cast<std::byte>(i));
}

struct written_file {
  explicit written_file(std::size_t num_records) {
    record_writer writer(path);
    for (std::size_t i = 0; i < num_records; ++i) writer.add(record_of(i));
    writer.finish();
  }

  /// What opening the file complains about after `change` changed one of the two.
  std::string complaint(const std::filesystem::path& file, const std::function<void(std::string&)>& change) {
    std::ifstream in(file, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}}, changed = bytes;
    change(changed);
    std::ofstream(file, std::ios::binary) << changed;
    std::string text;
    try {
      record_file opened(path);
      for (std::int64_t i = 0; i < opened.num_records(); ++i) opened.read(i);
    } catch (const bad_input& problem) {
      text = problem.what();
    }
    std::ofstream(file, std::ios::binary) << bytes;
    return text;
  }

  temp_folder folder;
  std::filesystem::path path = folder.path() / "words.records", index = folder.path() / "words.records.index";
};

}  // namespace

TEST_CASE("records of any size are read back in any order, by several threads") {
  written_file written(300);
  record_file file(written.path);
  CHECK(file.num_records() == 300);
  std::vector<std::thread> readers;
  std::atomic<int> num_wrong = 0;
  for (int reader = 0; reader < 3; ++reader)
    readers.emplace_back([&] {
      for (std::size_t i = 300; i-- > 0;)
        if (file.read(static_cast<std::int64_t>(i)) != record_of(i)) ++num_wrong;
    });
  for (auto& reader : readers) reader.join();
  CHECK(num_wrong == 0);
  file.will_read(0, 300);
  file.close();
  CHECK(file.read(299) == record_of(299));
  CHECK_THROWS_AS(file.read(300), std::invalid_argument);
  CHECK_THROWS_AS(file.read(-1), std::invalid_argument);
}

TEST_CASE("a file of no records is one") {
  written_file written(0);
  CHECK(record_file(written.path).num_records() == 0);
}

TEST_CASE("large records and many small ones go through the writer's buffer whole") {
  temp_folder folder;
  std::vector<std::byte> large(3'000'000, std::byte{7});
  {
    record_writer writer(folder.path() / "mixed");
    writer.add(record_of(200));
    writer.add(large);
    for (int i = 0; i < 70'000; ++i) writer.add(record_of(20));
    writer.finish();
    CHECK_THROWS_AS(writer.add(large), std::logic_error);
    CHECK_THROWS_AS(writer.finish(), std::logic_error);
  }
  record_file file(folder.path() / "mixed");
  REQUIRE(file.num_records() == 70'002);
  CHECK(file.read(0) == record_of(200));
  CHECK(file.read(1) == large);
  CHECK(file.read(70'001) == record_of(20));
}

TEST_CASE("a writer that does not finish leaves nothing, and an older file as it was") {
  written_file written(5);
  {
    record_writer writer(written.path);
    writer.add(record_of(100));
  }
  CHECK(record_file(written.path).num_records() == 5);
  CHECK(std::distance(std::filesystem::directory_iterator(written.folder.path()), {}) == 2);
  CHECK_THROWS_AS(record_writer(written.folder.path() / "none" / "file"), bad_input);
}

TEST_CASE("a writer that failed takes nothing more, and publishes nothing") {
  written_file written(5);
  record_writer writer(written.path);
  writer.add(record_of(100));
  std::vector<std::byte> large(3'000'000);
  {
    limited_file_size limit(1'000'000);
    CHECK_THROWS_AS(writer.add(large), bad_input);
  }
  CHECK_THROWS_AS(writer.add(record_of(1)), std::logic_error);
  CHECK_THROWS_AS(writer.finish(), std::logic_error);
  CHECK(record_file(written.path).num_records() == 5);
  CHECK(std::distance(std::filesystem::directory_iterator(written.folder.path()), {}) == 2);
}

TEST_CASE("files that cannot be replaced are refused before anything is removed") {
  written_file written(5);
  record_writer writer(written.path);
  auto elsewhere = written.folder.path() / "elsewhere";
  std::filesystem::rename(written.path, elsewhere);
  std::filesystem::create_symlink(elsewhere, written.path);
  CHECK_THROWS_AS(record_writer(written.path), bad_input);
  CHECK_THROWS_AS(writer.finish(), bad_input);
  CHECK(record_file(written.path).num_records() == 5);
}

TEST_CASE("record files that are missing, truncated, of another format or version are refused when opened") {
  written_file written(20);
  auto records = [&](auto change) { return written.complaint(written.path, change); };
  auto index = [&](auto change) { return written.complaint(written.index, change); };
  CHECK(records([](auto&) {}).empty());
  CHECK_THAT(records([](auto& bytes) { bytes.resize(10); }),
             ContainsSubstring("it is truncated: expected at least 16 bytes, found 10"));
  CHECK_THAT(records([](auto& bytes) { bytes.pop_back(); }),
             ContainsSubstring("expected 206 bytes, in which the 20 records of"));
  CHECK_THAT(records([](auto& bytes) { bytes += 'x'; }), ContainsSubstring("found 207"));
  CHECK_THAT(records([](auto& bytes) { bytes[0] = 'x'; }), ContainsSubstring("begins with TROUPERC"));
  CHECK_THAT(records([](auto& bytes) { bytes[8] = 2; }),
             ContainsSubstring("expected format version 1, found 2"));
  CHECK_THAT(index([](auto& bytes) { bytes.resize(bytes.size() - 3); }),
             ContainsSubstring("expected 16 bytes for each record, found 317"));
  CHECK_THAT(index([](auto& bytes) { bytes.resize(bytes.size() - 16); }),
             ContainsSubstring("expected 187 bytes, in which the 19 records of"));
  CHECK_THAT(index([](auto& bytes) { bytes[7] = 'C'; }), ContainsSubstring("begins with TROUPERI"));
  std::filesystem::remove(written.index);
  CHECK_THROWS_WITH(record_file(written.path),
                    ContainsSubstring("expected its index " + written.index.string()) &&
                        ContainsSubstring("write the records again"));
}

TEST_CASE("records whose writer ended before the index had its name say how it gets it") {
  written_file written(20), others(19);
  auto left = written.folder.path() / files::temporary_name("words.records.index");
  auto of_others = left.string() + "2";
  std::filesystem::rename(written.index, left);
  std::filesystem::copy_file(others.index, of_others);
  std::ofstream(left.string() + "3") << "no index";
  CHECK_THROWS_WITH(record_file(written.path),
                    ContainsSubstring("mv '" + left.string() + "' '" + written.index.string() + "'"));
  std::filesystem::remove(left);
  CHECK_THROWS_WITH(record_file(written.path), ContainsSubstring("write the records again"));
}

TEST_CASE("a damaged record is named when it is read, and the others are still there") {
  written_file written(20);
  CHECK_THAT(written.complaint(written.path, [](auto& bytes) { bytes.back() = 'x'; }),
             ContainsSubstring("cannot read record 19 of " + written.path.string() +
                               ": it is damaged: expected CRC-32"));
  CHECK_THAT(
      written.complaint(written.index, [](auto& bytes) { bytes[16 + 5 * 16 + 1] = '\xff'; }),
      ContainsSubstring("cannot read record 5 of " + written.path.string() + ": its index is damaged"));
  std::fstream(written.path, std::ios::binary | std::ios::in | std::ios::out).seekp(-1, std::ios::end) << 'x';
  record_file file(written.path);
  CHECK_THROWS_AS(file.read(19), bad_input);
  CHECK(file.read(18) == record_of(18));
}

TEST_CASE("records become samples by a function that decodes them") {
  written_file written(20);
  // The sample: how long the record is, and its first byte; the label: the length.
  auto samples = record_dataset(written.path, {2}, [](std::span<const std::byte> record) {
    auto size = static_cast<float>(record.size());
    auto first = record.empty() ? 0.0F : static_cast<float>(std::to_integer<int>(record[0]));
    return labelled_samples{tensor::from(std::vector{size, first}, {2}), tensor::full({}, size)};
  });
  CHECK(samples->sample_extents() == shape{20, 2});
  auto read = samples->read(std::vector<std::int64_t>{3, 19});
  CHECK(read.samples.values<float>()[1] == 3);
  CHECK(read.labels.values<float>()[1] == 19);
  CHECK_THROWS_AS(record_dataset(written.path, {2}, nullptr), std::invalid_argument);
}
