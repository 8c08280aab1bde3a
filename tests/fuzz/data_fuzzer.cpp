// Files of training data: gzip, IDX, NPY, files of records, text, and the position of a DataLoader. The first
// byte chooses.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "fuzz/fuzzer.hpp"
#include "troupe/data/data_position.hpp"
#include "troupe/data/formats/detail/gzip_reader.hpp"
#include "troupe/data/formats/detail/npy_header.hpp"
#include "troupe/data/formats/idx_file.hpp"
#include "troupe/data/formats/npy_dataset.hpp"
#include "troupe/data/formats/npy_file.hpp"
#include "troupe/data/formats/record_file.hpp"
#include "troupe/data/formats/text.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe::fuzz {
namespace {

using input = std::span<const std::byte>;

std::string gzipped(const std::string& text) {
  z_stream stream{};
  if (::deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string packed(::deflateBound(&stream, text.size()) + 32, '\0');
  auto copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

void try_gzip(input bytes) {
  allow<bad_input>([&] {
    detail::gzip_reader reader(inputs().write("data.gz", text_of(bytes)));
    std::array<std::byte, 1000> piece;
    std::size_t read = 0;
    while (auto more = reader.read(piece)) read += more;
    expect(reader.at_end(), "a file goes on behind its end");
    expect(reader.is_gzipped() || read == bytes.size(), "bytes of a file are lost");
  });
}

std::vector<std::string> gzip_seeds() {
  return {gzipped("one") + gzipped(std::string(3000, 'a')), gzipped(""), "plain"};
}

void try_idx(input bytes) {
  auto file = inputs().write("images", text_of(bytes));
  for (int rank : {1, 3})
    allow<bad_input>([&] {
      auto read = read_idx(file, rank);
      expect(read.shape() == read_idx_header(file, rank), "elements have another shape than their header");
    });
}

std::vector<std::string> idx_seeds() {
  using namespace std::string_literals;
  auto labels = "\0\0\x08\1\0\0\0\3abc"s, images = "\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2abcd"s;
  return {labels, images, gzipped(labels), gzipped(images)};
}

void try_npy(input bytes) {
  auto file = inputs().write("array.npy", text_of(bytes));
  allow<bad_input>([&] {
    const auto read = read_npy(file);
    auto copy = inputs().path() / "copy.npy";
    write_npy(copy, read);
    const auto again = read_npy(copy);
    expect(again.shape() == read.shape() && std::ranges::equal(again.bytes(), read.bytes()),
           "an array is read back as another one");
  });
  for (auto type : {dtype::f16, dtype::i32, dtype::boolean})
    allow<bad_input>([&] {
      auto converted = read_npy(file, {.as = type});
      auto rows = npy_dataset(file, {}, {.samples_as = type});
      if (rows->num_samples() == 0) return;
      auto row = rows->read_rows(0, rows->num_samples()).samples;
      expect(row.shape() == converted.shape() && std::ranges::equal(row.bytes(), converted.bytes()),
             "rows of an array differ from it");
    });
  allow<bad_input>([&] {
    auto samples = npy_dataset(file);
    if (auto last = samples->num_samples() - 1; last >= 0) static_cast<void>(samples->read(std::array{last}));
  });
}

std::vector<std::string> npy_seeds() {
  auto file = inputs().path() / "copy.npy";
  std::vector<std::string> made;
  for (auto& array :
       {tensor::zeros({2, 3}), tensor::zeros({5}, dtype::boolean), tensor::zeros({}, dtype::i64)}) {
    write_npy(file, array);
    made.push_back(text_in(file));
  }
  return made;
}

void try_npy_header(input bytes) {
  allow<bad_input>([&] {
    auto once = to_text(detail::parse_npy_header(text_of(bytes)));
    expect(to_text(detail::parse_npy_header(once + "\n")) == once, "a header is read back as another one");
  });
}

std::vector<std::string> npy_header_seeds() {
  return {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n",
          "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 1), }\n",
          "{\"shape\":(2,),\"descr\":\"|u1\",\"fortran_order\":False}\n"};
}

/// The first 2 bytes are how many bytes of the rest are the index.
void try_records(input bytes) {
  wire::byte_reader reader(bytes);
  std::size_t index_bytes = reader.get<std::uint16_t>();
  if (!reader.ok() || index_bytes > bytes.size() - 2) return;
  inputs().write("records.index", text_of(bytes.subspan(2, index_bytes)));
  auto file = inputs().write("records", text_of(bytes.subspan(2 + index_bytes)));
  allow<bad_input>([&] {
    record_file records(file);
    for (std::int64_t i = 0; i < records.num_records(); ++i)
      allow<bad_input>([&] { static_cast<void>(records.read(i)); });
    records.will_read(0, records.num_records());
  });
}

std::vector<std::string> record_seeds() {
  auto file = inputs().path() / "records";
  record_writer writer(file);
  for (std::string_view record : {"one", "", "three"}) writer.add(std::as_bytes(std::span(record)));
  writer.finish();
  auto index = text_in(inputs().path() / "records.index");
  return {static_cast<char>(index.size()) + std::string(1, 0) + index + text_in(file)};
}

void try_text(input bytes) {
  auto file = inputs().write("text", text_of(bytes));
  for (auto part : {text_part::train, text_part::evaluate})
    allow<bad_input>([&] {
      auto samples = text_bytes(file, 3, part);
      static_cast<void>(samples->read(std::array{samples->num_samples() - 1}));
    });
}

std::vector<std::string> text_seeds() { return {"seven and more bytes"}; }

void try_position(input bytes) {
  auto numbers = tensor::zeros({8}, dtype::i64);
  if (bytes.size() != numbers.size_bytes()) return;
  std::ranges::copy(bytes, numbers.bytes().begin());
  allow<bad_input>([&] {
    auto position = data_position::from_tensor(numbers);
    expect(data_position::from_tensor(position.to_tensor()) == position,
           "a position is read back as another one");
  });
}

std::vector<std::string> position_seeds() {
  const auto numbers = data_position{1, 2, 3, 4, 5, 6}.to_tensor();
  return {std::string(text_of(numbers.bytes()))};
}

constexpr std::array decoders = {
    decoder{try_gzip, gzip_seeds},        decoder{try_idx, idx_seeds},
    decoder{try_npy, npy_seeds},          decoder{try_npy_header, npy_header_seeds},
    decoder{try_records, record_seeds},   decoder{try_text, text_seeds},
    decoder{try_position, position_seeds}};

}  // namespace

void try_input(std::span<const std::byte> bytes) { try_one_of(decoders, bytes); }

std::vector<std::string> seeds() { return seeds_of(decoders); }

}  // namespace troupe::fuzz
