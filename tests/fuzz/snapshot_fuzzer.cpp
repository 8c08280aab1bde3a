// Files of snapshots: manifests, parts, files of blocks and safetensors. The first byte chooses. Checksums
// over an input are made right first, so that the search gets past them.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "fuzz/fuzzer.hpp"
#include "runtime/snapshot/example_parts.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/block_file.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/safetensors/safetensors_header.hpp"
#include "troupe/snapshot/contents_json.hpp"
#include "troupe/snapshot/manifest.hpp"
#include "troupe/snapshot/part/part_reader.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe::fuzz {
namespace {

using input = std::span<const std::byte>;
using json = nlohmann::ordered_json;

/// The text itself if it is no JSON object, or one that nests deeper than a manifest.
std::string with_checksum(std::string_view text) {
  bool is_deep = false;
  auto fields = json::parse(
      text, [&](int depth, json::parse_event_t, json&) { return !(is_deep = is_deep || depth > 9); }, false);
  if (is_deep || !fields.is_object()) return std::string(text);
  fields.erase("checksum");
  auto covered = fields.dump();
  fields["checksum"] = wire::to_hex(files::checksum_of(std::as_bytes(std::span(covered))));
  return fields.dump();
}

void try_manifest(input bytes) {
  allow<files::snapshot_error>([&] { static_cast<void>(snapshot::manifest_from_text(text_of(bytes))); });
  allow<files::snapshot_error>([&] {
    auto manifest = snapshot::manifest_from_text(with_checksum(text_of(bytes)));
    expect(snapshot::manifest_from_text(manifest_text(manifest)) == manifest,
           "a manifest is read back as another one");
    static_cast<void>(time_written(manifest));
    static_cast<void>(numeric_class_problem(manifest, "avx2"));
    static_cast<void>(snapshot::identity_differences({{"seed", "8"}}, manifest.identity));
  });
}

snapshot::manifest_part example_entry() {
  tensor_contents half{"0.weight", dtype::bf16, {4, 2}, {{{0, 0}, {4, 1}}, {{0, 1}, {4, 1}}}, 0, 4, {}};
  auto rest = half;
  rest.begin = 4;
  rest.end = 8;
  return {{{0}}, "stage-0000.part", 5, "ab", "here", std::vector{half, rest}};
}

std::vector<std::string> manifest_seeds() {
  auto manifest = testing::example_manifest(7, {example_entry()});
  manifest.created = "2024-06-07T08:09:10Z";
  manifest.data = "60000 samples of [28, 28]";
  manifest.calls = snapshot::manifest_file{"calls.part", 7, "ef", "here"};
  auto plain = testing::example_manifest(1, {{{{0}}, "stage-0000.part", 5, "ab", "here"}});
  plain.parts[0].content = layout::replica_content::equal;
  return {manifest_text(manifest), manifest_text(plain)};
}

void try_part(input bytes) {
  allow<files::snapshot_error>([&] { snapshot::part_reader(snapshot::source_in(bytes)).check(); });
  std::vector<std::byte> whole(bytes.begin(), bytes.end());
  allow<files::snapshot_error>([&] {
    write_checksums(whole, snapshot::read_prefix(std::span(whole).first(std::min<std::size_t>(
                                                     whole.size(), snapshot::part_prefix_bytes)),
                                                 whole.size()));
  });
  allow<files::snapshot_error>([&] {
    const auto once = encode_part(testing::decode_part(whole));
    const auto twice = encode_part(testing::decode_part(once.bytes()));
    expect(std::ranges::equal(once.bytes(), twice.bytes()), "a part is read back as another one");
  });
}

std::vector<std::string> part_seeds() {
  auto part = testing::example_part(3, 0, 1, 5);
  const auto whole = encode_part(part);
  part.tensors = {{"0.weight", tensor::zeros({2, 2})}, {"0.bias", tensor::zeros({3})}};
  part.contents = whole_contents(part.tensors);
  part.contents[0].whole = {4, 2};
  part.contents[1] = {"0.bias", dtype::f32, {8}, {{{0}, {4}}, {{6}, {2}}}, 1, 4, 0};
  const auto shard = encode_part(part);
  return {std::string(text_of(whole.bytes())), std::string(text_of(shard.bytes()))};
}

using blocks = std::vector<std::vector<std::byte>>;

blocks blocks_in(const std::filesystem::path& file, const files::written_blocks& expected) {
  blocks read;
  read_blocks(file, expected, [&](input block) { read.emplace_back(block.begin(), block.end()); });
  return read;
}

files::written_blocks write_blocks(const std::filesystem::path& file, const blocks& content) {
  return files::block_file_writer().write(file, content.size(),
                                          [&](std::size_t number) { return content[number]; });
}

void try_blocks(input bytes) {
  auto file = inputs().write("calls.part", text_of(bytes));
  allow<files::snapshot_error>([&] {
    auto read = blocks_in(file, {bytes.size(), files::checksum_of(bytes)});
    auto copy = inputs().path() / "copy.part";
    expect(blocks_in(copy, write_blocks(copy, read)) == read, "blocks are read back as others");
  });
}

std::vector<std::string> block_seeds() {
  auto file = inputs().path() / "copy.part";
  write_blocks(file, {{std::byte{1}}, {std::byte{2}, std::byte{3}}});
  return {text_in(file)};
}

void try_safetensors(input bytes) {
  auto first = inputs().path() / "first", second = inputs().path() / "second";
  auto copy = [](const std::filesystem::path& from, const std::filesystem::path& to) {
    auto read = read_safetensors(from);
    write_safetensors(to, read.tensors, read.metadata);
  };
  allow<bad_input>([&] {
    copy(inputs().write("model.safetensors", text_of(bytes)), first);
    copy(first, second);
    expect(text_in(first) == text_in(second), "tensors are read back as others");
  });
}

std::vector<std::string> safetensors_seeds() {
  auto file = inputs().path() / "first";
  write_safetensors(file, {{"weight", tensor::zeros({2, 3})}, {"is_set", tensor::zeros({5}, dtype::boolean)}},
                    {{"format", "pt"}});
  return {text_in(file)};
}

/// The first 8 bytes are how many bytes follow the header.
void try_safetensors_header(input bytes) {
  wire::byte_reader reader(bytes);
  auto data_bytes = reader.get<std::uint64_t>();
  if (!reader.ok()) return;
  allow<bad_input>([&] {
    auto once = to_text(safetensors::parse_safetensors_header(text_of(bytes.subspan(8)), data_bytes));
    expect(to_text(safetensors::parse_safetensors_header(once, data_bytes)) == once,
           "a header is read back as another one");
  });
}

std::vector<std::string> safetensors_header_seeds() {
  safetensors::safetensors_header header{{{"weight", "F32", stored_as(dtype::f32), {2, 3}, 0, 24},
                                          {"empty", "U8", stored_as(dtype::u8), {0}, 24, 24}},
                                         {}};
  return {std::string(1, 24) + std::string(7, 0) + to_text(header)};
}

constexpr std::array decoders = {
    decoder{try_manifest, manifest_seeds}, decoder{try_part, part_seeds}, decoder{try_blocks, block_seeds},
    decoder{try_safetensors, safetensors_seeds}, decoder{try_safetensors_header, safetensors_header_seeds}};

}  // namespace

void try_input(std::span<const std::byte> bytes) { try_one_of(decoders, bytes); }

std::vector<std::string> seeds() { return seeds_of(decoders); }

}  // namespace troupe::fuzz
