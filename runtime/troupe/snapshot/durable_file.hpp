#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Makes `file` hold `bytes`, or leaves what was there: writes beside it under a temporary name, syncs,
/// renames, and syncs the folder. `half_written` is called after the first half. Throws snapshot_error with
/// file, reason and what to do; the temporary file is gone then.
void write_durably(
    const std::filesystem::path& file, std::span<const std::byte> bytes,
    const std::function<void()>& half_written = [] {});

/// The same, of pieces that lie apart and follow one another in the file.
void write_durably(const std::filesystem::path& file, std::span<const std::span<const std::byte>> pieces);

/// Creates `folder` and its parents where they are missing. Throws snapshot_error.
void create_durably(const std::filesystem::path& folder);

/// Removes a file and syncs its folder; it need not exist. Throws snapshot_error.
void remove_durably(const std::filesystem::path& file);

/// The bytes of `file` as a u8 tensor [size_bytes]. Throws snapshot_error if it cannot be read, is no regular
/// file or has another size, before anything of that size is allocated.
tensor read_whole(const std::filesystem::path& file, std::uint64_t size_bytes);

}  // namespace troupe
