#pragma once
#include <cstddef>
#include <cstdint>

namespace troupe {

/// Whether results are written around the caches: worth it where they are larger than those.
enum class store_kind : std::uint8_t { cached, streaming };

/// Copies bytes, around the caches if asked to. Whoever sees what this thread writes afterwards sees them.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store);

/// The same in steps: copies whose streaming stores others see only once finish_stores has returned.
void begin_copy(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store);
void finish_stores(store_kind store);

}  // namespace troupe
