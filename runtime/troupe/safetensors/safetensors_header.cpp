#include "troupe/safetensors/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/json/read_json.hpp"

namespace troupe::safetensors {
namespace {

using json = nlohmann::ordered_json;

using known_type = std::pair<stored_number, std::string_view>;

// The first seven, those of tensors, in the order in which the reference implementation writes them:
// alignments never grow, so that every tensor is aligned.
constexpr std::array<known_type, 13> names{{{stored_number::i64, "I64"},
                                            {stored_number::f32, "F32"},
                                            {stored_number::i32, "I32"},
                                            {stored_number::bf16, "BF16"},
                                            {stored_number::f16, "F16"},
                                            {stored_number::u8, "U8"},
                                            {stored_number::boolean, "BOOL"},
                                            {stored_number::f64, "F64"},
                                            {stored_number::u64, "U64"},
                                            {stored_number::u32, "U32"},
                                            {stored_number::i16, "I16"},
                                            {stored_number::u16, "U16"},
                                            {stored_number::i8, "I8"}}};
constexpr std::string_view metadata_key = "__metadata__";

/// `text` in quotes, shortened for a message.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 120;
  return "'" + std::string(text.substr(0, most)) + (text.size() > most ? "..." : "") + "'";
}

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
  throw bad_input("expected " + expected + ", found " + found);
}

std::optional<stored_number> type_named(std::string_view text) {
  auto found = std::ranges::find(names, text, &known_type::second);
  if (found == names.end()) return {};
  return found->first;
}

/// One tensor's object while it is being read.
struct entry_fields {
  std::optional<std::string> type;
  std::optional<std::vector<std::uint64_t>> extents, offsets;
};

/// The limit of `shape`.
constexpr auto most_elements = std::uint64_t{1} << 58;

shape checked_shape(const std::vector<std::uint64_t>& numbers, const std::string& where) {
  std::uint64_t product = 1;
  for (auto extent : numbers)
    if (__builtin_mul_overflow(product, extent, &product) || product > most_elements ||
        extent > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      refuse(where + " a shape of at most 2^58 elements", "an extent of " + std::to_string(extent));
  return shape(std::vector<std::int64_t>(numbers.begin(), numbers.end()));
}

safetensors_entry entry_from(const std::string& name, const entry_fields& fields, std::uint64_t data_bytes) {
  auto where = "tensor " + in_quotes(name) + " to have";
  if (!fields.type || !fields.extents || !fields.offsets)
    refuse(where + " dtype, shape and data_offsets", "no " + std::string(!fields.type      ? "dtype"
                                                                         : !fields.extents ? "shape"
                                                                                           : "data_offsets"));
  safetensors_entry entry{name, *fields.type, type_named(*fields.type),
                          checked_shape(*fields.extents, where)};
  if (fields.offsets->size() != 2)
    refuse(where + " two data_offsets", std::to_string(fields.offsets->size()));
  entry.begin = fields.offsets->front();
  entry.end = fields.offsets->back();
  auto found = "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
  if (entry.begin > entry.end || entry.end > data_bytes)
    refuse(where + " data_offsets within the " + std::to_string(data_bytes) +
               " bytes after the header, begin before end",
           found);
  auto elements = static_cast<std::uint64_t>(entry.extents.num_elements());
  std::uint64_t size = 0;
  if (!entry.type) return entry;
  if (__builtin_mul_overflow(elements, size_bytes(*entry.type), &size) || size != entry.end - entry.begin)
    refuse(where + " the bytes of " + *fields.type + to_string(entry.extents),
           std::to_string(entry.end - entry.begin) + " bytes at " + found);
  return entry;
}

/// Handles the events of the JSON parser and refuses any structure but that of the format. (A parser that
/// builds objects would silently keep one of two equal keys.)
class header_parser final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit header_parser(std::uint64_t data_bytes) : data_bytes_(data_bytes) {}
  safetensors_header take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (place_ != place::outside && place_ != place::tensors) unexpected("an object");
    place_ = place_ == place::outside ? place::tensors
             : name_ == metadata_key  ? place::metadata
                                      : place::tensor;
    fields_ = {};
    return true;
  }
  bool key(string_t& text) override {
    key_ = text;
    if (place_ == place::tensors) {
      name_ = text;
      if (!names_.insert(text).second) refuse("each name once", in_quotes(text) + " twice");
    } else if (place_ == place::metadata) {
      if (header_.metadata.contains(text))
        refuse("each key of the metadata once", in_quotes(text) + " twice");
    } else {
      check_field();
    }
    return true;
  }
  bool end_object() override {
    if (place_ == place::tensor) header_.tensors.push_back(entry_from(name_, fields_, data_bytes_));
    place_ = place_ == place::tensors ? place::outside : place::tensors;
    return true;
  }
  bool string(string_t& text) override {
    if (place_ == place::metadata)
      header_.metadata.emplace(key_, text);
    else if (place_ == place::tensor && key_ == "dtype")
      fields_.type = text;
    else
      unexpected("the text " + in_quotes(text));
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != place::tensor || key_ == "dtype") unexpected("an array");
    place_ = place::numbers;
    (key_ == "shape" ? fields_.extents : fields_.offsets).emplace();
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != place::numbers) unexpected(std::to_string(value));
    (key_ == "shape" ? fields_.extents : fields_.offsets)->push_back(value);
    return true;
  }
  bool end_array() override {
    place_ = place::tensor;
    return true;
  }
  bool number_integer(number_integer_t value) override { unexpected(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected(in_quotes(text)); }
  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& problem) override {
    throw bad_input(std::string("its header is no JSON: ") + json_text::json_error(problem).what());
  }

 private:
  enum class place { outside, tensors, metadata, tensor, numbers };

  [[noreturn]] void unexpected(const std::string& found) const {
    switch (place_) {
      case place::outside:
        refuse("the header to be one JSON object", found);
      case place::tensors:
        refuse(in_quotes(name_) + " to be an object", found);
      case place::metadata:
        refuse("text as metadata " + in_quotes(key_), found);
      case place::numbers:
        refuse("integers from 0 to 2^64 - 1 as " + key_ + " of tensor " + in_quotes(name_), found);
      case place::tensor:
        break;
    }
    refuse((key_ == "dtype" ? "text as dtype" : "an array as " + key_) + " of tensor " + in_quotes(name_),
           found);
  }

  void check_field() const {
    if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
      refuse("tensor " + in_quotes(name_) + " to have dtype, shape and data_offsets", in_quotes(key_));
    if (key_ == "dtype" ? fields_.type.has_value()
                        : (key_ == "shape" ? fields_.extents : fields_.offsets).has_value())
      refuse("tensor " + in_quotes(name_) + " to have each field once", key_ + " twice");
  }

  std::uint64_t data_bytes_;
  place place_ = place::outside;
  std::string name_, key_;  ///< the keys of the first and of the innermost object
  std::set<std::string> names_;
  entry_fields fields_;
  safetensors_header header_;
};

/// Checks that each byte belongs to exactly one tensor. The entries are in the order of their bytes.
void check_coverage(const std::vector<safetensors_entry>& entries, std::uint64_t data_bytes) {
  std::uint64_t covered = 0;
  for (const auto& entry : entries) {
    if (entry.begin != covered)
      refuse("tensor " + in_quotes(entry.name) + " to begin at byte " + std::to_string(covered) +
                 ", where the one before it ends",
             "byte " + std::to_string(entry.begin) + (entry.begin < covered ? ", an overlap" : ", a hole"));
    covered = entry.end;
  }
  if (covered != data_bytes)
    refuse("the tensors to cover the " + std::to_string(data_bytes) + " bytes after the header",
           "them to end at byte " + std::to_string(covered));
}

}  // namespace

safetensors_header parse_safetensors_header(std::string_view text, std::uint64_t data_bytes) {
  // The parser would accept a byte order mark and treat a zero byte as the end.
  if (!text.starts_with('{') || text.find('\0') != std::string_view::npos)
    throw bad_input("its header is no JSON object: expected it to begin with '{' and to hold no zero byte");
  header_parser parser(data_bytes);
  nlohmann::json::sax_parse(text, &parser);
  auto header = parser.take();
  std::ranges::sort(header.tensors, {}, [](const safetensors_entry& entry) {
    return std::tie(entry.begin, entry.end, entry.name);
  });
  check_coverage(header.tensors, data_bytes);
  return header;
}

std::string to_text(const safetensors_header& header) {
  auto fields = json::object();
  if (!header.metadata.empty()) fields[std::string(metadata_key)] = header.metadata;
  for (const auto& entry : header.tensors)
    fields[entry.name] = {{"dtype", entry.dtype_name},
                          {"shape", entry.extents.extents()},
                          {"data_offsets", {entry.begin, entry.end}}};
  try {
    auto text = fields.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const json::exception& problem) {
    throw_invalid("write_safetensors", "names and metadata in UTF-8", json_text::json_error(problem).what());
  }
}

std::string safetensors_name(stored_number type) {
  return std::string(std::ranges::find(names, type, &known_type::first)->second);
}

int order_in_file(dtype type) {
  return static_cast<int>(std::ranges::find(names, stored_as(type), &known_type::first) - names.begin());
}

void check_tensors(const char* function, const std::vector<named_tensor>& tensors) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : tensors) {
    if (!value.defined()) throw_invalid(function, "a defined tensor '" + name + "'", "an undefined one");
    if (name == "__metadata__") throw_invalid(function, "another name than the format's own", name);
    if (!names.insert(name).second) throw_invalid(function, "each name once", "'" + name + "' twice");
  }
}

}  // namespace troupe::safetensors
