// A data set that is larger than memory: a sparse file, of which the resident memory of the process must not
// show how much was read.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "support/temp_folder.hpp"
#include "troupe/data/data_loader.hpp"
#include "troupe/data/formats/npy_dataset.hpp"
#include "troupe/data/stream_dataset.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::int64_t sample_bytes = 64 << 10;
constexpr std::int64_t mebibyte = 1 << 20;

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// A sparse NPY file of u8 [num_samples, sample_bytes]: every 1000th sample begins with its index, all else
/// is zero.
void write_sparse(const std::filesystem::path& path, std::int64_t num_samples) {
  auto text = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(num_samples) + ", " +
              std::to_string(sample_bytes) + "), }";
  text.resize(128 - 10 - 1, ' ');
  text += '\n';
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY\x01" << '\0' << static_cast<char>(text.size()) << '\0' << text;
  for (std::int64_t i = 0; i < num_samples; i += 1000) {
    file.seekp(128 + i * sample_bytes);
    file.write(reinterpret_cast<const char*>(&i), sizeof i);
  }
  file.close();
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(128 + num_samples * sample_bytes));
}

/// Takes `num_batches` batches and returns how far the resident memory grew meanwhile.
std::int64_t growth(DataLoader& loader, std::int64_t num_batches) {
  auto before = resident_bytes();
  std::int64_t most = before;
  for (std::int64_t i = 0; i < num_batches; ++i) {
    auto batch = loader.next();
    if (!batch) break;
    most = std::max(most, resident_bytes());
  }
  return most - before;
}

/// The marks in a batch.
std::vector<std::int64_t> marks_of(const labelled_samples& batch) {
  std::vector<std::int64_t> marks;
  for (std::int64_t row = 0; row < batch.samples.shape()[0]; ++row) {
    std::int64_t mark = 0;
    std::copy_n(batch.samples.rows(row, 1).bytes().begin(), sizeof mark, reinterpret_cast<std::byte*>(&mark));
    if (mark != 0) marks.push_back(mark);
  }
  return marks;
}

// Batches of 2 MiB, of which five at most exist at a time.
const data_loader_options by_32{.batch = 32, .num_workers = 2, .prefetch = 4};
constexpr std::int64_t most_growth = 48 * mebibyte;

}  // namespace

TEST_CASE("samples of a file of 2 GB are read at random and as a stream, in memory for a few batches") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("the sanitizers keep memory that was freed");
#endif
  temp_folder folder;
  auto path = folder.path() / "samples.npy";
  write_sparse(path, 32 * 1000);
  auto samples = npy_dataset(path);
  CHECK(samples->read_rows(31'000, 1).samples.values<std::uint8_t>()[1] == 31'000 / 256);
  DataLoader drawn(samples, by_32);
  CHECK(growth(drawn, 60) < most_growth);
  DataLoader streamed(stream_dataset({samples}, {.shuffle_buffer = 500}), by_32);
  CHECK(growth(streamed, 120) < most_growth);
}

TEST_CASE("a file of 20 GB streams in flat memory, every sample once, and resumes at the exact sample",
          "[.soak]") {
  constexpr std::int64_t num_samples = 320 * 1000;
  temp_folder folder;
  auto path = folder.path() / "samples.npy";
  write_sparse(path, num_samples);
  auto stream = stream_dataset({npy_dataset(path)}, {.shuffle_buffer = 2000});
  DataLoader whole(stream, by_32);
  auto before = resident_bytes();
  std::int64_t most = before, num_taken = 0;
  std::vector<std::int64_t> marks, later;
  data_position half_way;
  for (auto& batch : whole) {
    num_taken += batch.samples.shape()[0];
    for (auto mark : marks_of(batch)) (half_way.samples_done > 0 ? later : marks).push_back(mark);
    if (num_taken == num_samples / 2) half_way = whole.position();
    most = std::max(most, resident_bytes());
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep memory that was freed
  CHECK(most - before < most_growth);
#endif
  CHECK(num_taken == num_samples);

  DataLoader resumed(stream, by_32);
  resumed.resume(half_way);
  std::vector<std::int64_t> again;
  for (auto& batch : resumed)
    for (auto mark : marks_of(batch)) again.push_back(mark);
  CHECK(again == later);

  marks.insert(marks.end(), later.begin(), later.end());
  std::ranges::sort(marks);
  CHECK(marks.size() == num_samples / 1000 - 1);  // sample 0 is not marked
  CHECK(std::ranges::adjacent_find(marks) == marks.end());
}
