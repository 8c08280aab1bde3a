#include "troupe/ops/copy_bytes.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <cstring>

namespace troupe {

void begin_copy(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store) {
#if defined(__x86_64__)
  if (store == store_kind::streaming && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    auto* target = reinterpret_cast<__m128i*>(to);
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto num_words = size_bytes / 16;
    for (std::size_t i = 0; i < num_words; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
    from += num_words * 16;
    to += num_words * 16;
    size_bytes %= 16;
  }
#endif
  if (from != to && size_bytes > 0) std::memcpy(to, from, size_bytes);
}

void finish_stores([[maybe_unused]] store_kind store) {
#if defined(__x86_64__)
  if (store == store_kind::streaming) _mm_sfence();
#endif
}

void copy_bytes(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store) {
  begin_copy(from, to, size_bytes, store);
  finish_stores(store);
}

}  // namespace troupe
