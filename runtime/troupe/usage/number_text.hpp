#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::usage {

/// Of one device, or of one activation: a plan has fewer than 2^20, whose bytes are still counted in 64 bits.
constexpr std::uint64_t most_memory_bytes = std::uint64_t{1} << 43;

/// A number of bytes: "4096", "64M", "2 GiB". Units are powers of 1024 (K, M, G, T, P; also with B or iB;
/// small letters too). Throws bad_input "expected a number of bytes ..., got 'TEXT'" for anything else, and
/// for more than `most`.
std::uint64_t bytes_from(std::string_view text, std::uint64_t most = most_memory_bytes);

/// Bytes in the largest unit that leaves a number from 1 on, of four digits: "64 MiB", "1.5 GiB", "800 B".
std::string bytes_text(double bytes);

/// "1 stage", "2 stages"
std::string counted(std::int64_t number, const char* one, const char* many);

/// A finite number. Throws bad_input "expected a number ..., got 'TEXT'" for anything else.
double number_from(std::string_view text);

/// The text without '_' between digits, as in YAML and Python: "1000" of "1_000".
std::string without_separators(std::string_view text);

}  // namespace troupe::usage
