#pragma once
#include <cstddef>
#include <cstdint>

namespace troupe {

/// Whether results are written with non-temporal stores, which bypass the caches; faster for results larger
/// than the caches.
enum class store_kind : std::uint8_t { cached, streaming };

/// Copies bytes, with non-temporal stores if `store` is streaming. The copy is visible to a thread that sees
/// later writes of this thread.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store);

/// The same without the fence: streaming stores are visible to other threads only after finish_stores.
void begin_copy(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store);
void finish_stores(store_kind store);

}  // namespace troupe
