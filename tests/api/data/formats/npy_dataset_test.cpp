#include "troupe/data/formats/npy_dataset.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/data/formats/npy_file.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

/// 40 samples f32 [40, 3] and labels i64 [40] in files.
struct two_files {
  two_files() {
    std::vector<float> values;
    std::vector<std::int64_t> numbers;
    for (int i = 0; i < 40; ++i) {
      numbers.push_back(i);
      for (int j = 0; j < 3; ++j) values.push_back(static_cast<float>(10 * i + j));
    }
    whole = std::make_shared<dataset>(
        labelled_samples{tensor::from(values, {40, 3}), tensor::from(numbers, {40})});
    write_npy(samples, whole->samples());
    write_npy(labels, whole->labels());
  }

  temp_folder folder;
  std::filesystem::path samples = folder.path() / "samples.npy", labels = folder.path() / "labels.npy";
  dataset_ptr whole;
};

}  // namespace

TEST_CASE("samples and labels in NPY files are read in parts, in any order") {
  two_files files;
  auto parts = npy_dataset(files.samples, files.labels);
  CHECK(parts->sample_extents() == shape{40, 3});
  for (const auto& indices :
       std::vector<std::vector<std::int64_t>>{{0}, {39, 0, 17}, {3, 4, 5, 6, 30, 31, 5}, {}}) {
    auto got = parts->read(indices), expected = files.whole->read(indices);
    CHECK(same_bits(got.samples, expected.samples));
    CHECK(same_bits(got.labels, expected.labels));
  }
  CHECK(!npy_dataset(files.samples)->read_rows(0, 2).labels.defined());
  parts->reader()->will_read(3, 20);
  parts->reader()->will_read(40, 0);
  CHECK(parts->reader()->name() == "samples.npy");
  parts->reader()->close();
  CHECK(same_bits(parts->read_rows(38, 2).samples, files.whole->read_rows(38, 2).samples));
}

TEST_CASE("NPY files that are missing, truncated, of no samples or of other labels are refused when opened") {
  two_files files;
  CHECK_THROWS_WITH(npy_dataset(files.folder.path() / "none.npy"), ContainsSubstring("none.npy"));
  write_npy(files.labels, tensor::zeros({39}, dtype::i64));
  CHECK_THROWS_WITH(npy_dataset(files.samples, files.labels),
                    ContainsSubstring("expected a label for each of the 40 samples in " +
                                      files.samples.string() + ", found 39 in " + files.labels.string()));
  write_npy(files.labels, tensor::zeros({}));
  CHECK_THROWS_WITH(npy_dataset(files.labels), ContainsSubstring("expected samples [N, ...]"));
  std::filesystem::resize_file(files.samples, std::filesystem::file_size(files.samples) - 1);
  CHECK_THROWS_WITH(
      npy_dataset(files.samples),
      ContainsSubstring("it is truncated: expected the elements of f32[40, 3], found 479 bytes"));
}

TEST_CASE("a file that changes while it is read is an error that says so") {
  two_files files;
  auto parts = npy_dataset(files.samples, files.labels);
  parts->read_rows(0, 1);
  std::filesystem::resize_file(files.samples, std::filesystem::file_size(files.samples) - 100);
  CHECK_NOTHROW(parts->read_rows(0, 1));
  CHECK_THROWS_WITH(parts->read_rows(39, 1), ContainsSubstring(files.samples.string() + ": it ends at"));
  parts->reader()->close();
  CHECK_THROWS_WITH(parts->read_rows(0, 1), ContainsSubstring("it has changed"));
}

TEST_CASE("a file that was replaced by one of the same size is noticed when it is opened again") {
  two_files files;
  auto parts = npy_dataset(files.samples, files.labels);
  auto written = std::filesystem::last_write_time(files.samples);
  write_npy(files.samples, tensor::zeros({40, 3}));
  std::filesystem::last_write_time(files.samples, written + std::chrono::seconds(2));
  CHECK_THROWS_WITH(parts->read_rows(0, 1), ContainsSubstring("it has changed"));
}

TEST_CASE("bytes that are no booleans are refused when they are read") {
  two_files files;
  write_npy(files.samples, tensor::zeros({40}, dtype::boolean));
  auto parts = npy_dataset(files.samples);
  CHECK_NOTHROW(parts->read_rows(0, 40));
  std::fstream(files.samples, std::ios::binary | std::ios::in | std::ios::out).seekp(-1, std::ios::end)
      << '\2';
  CHECK_NOTHROW(parts->read_rows(0, 39));
  CHECK_THROWS_WITH(parts->read_rows(39, 1), ContainsSubstring("expected bytes of 0 or 1 as bool"));
}

TEST_CASE("rows of numbers that no tensor has are converted when they are read") {
  temp_folder folder;
  auto file = folder.path() / "tokens.npy";
  // As numpy.save writes an array of uint16 [3, 2].
  std::string header = "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 2), }\n";
  std::ofstream(file, std::ios::binary)
      << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(header.size()) << '\0' << header
      << std::string("\1\0\2\0\0\x80\xff\xff\5\0\6\0", 12);
  CHECK_THROWS_WITH(npy_dataset(file),
                    ContainsSubstring("tokens.npy") && ContainsSubstring("{.samples_as = dtype::i32}"));
  CHECK_THROWS_WITH(npy_dataset(file, file, {.samples_as = dtype::i32}),
                    ContainsSubstring("{.labels_as = dtype::i32}"));
  auto parts = npy_dataset(file, file, {.samples_as = dtype::i32, .labels_as = dtype::f32});
  auto got = parts->read(std::vector<std::int64_t>{2, 0, 1});
  CHECK(same_bits(got.samples, tensor::from(std::vector<std::int32_t>{5, 6, 1, 2, 32768, 65535}, {3, 2})));
  CHECK(same_bits(got.labels, tensor::from(std::vector<float>{5, 6, 1, 2, 32768, 65535}, {3, 2})));
  CHECK_THROWS_WITH(npy_dataset(file, {}, {.samples_as = dtype::u8})->read_rows(1, 1),
                    ContainsSubstring("tokens.npy") && ContainsSubstring("found 32768 at element 2"));
}
