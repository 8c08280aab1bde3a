#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// `value`, of a GPU, for another one: a copy of it (async_device_copy) waits for what is queued for it by
/// now, and not for what is queued later. The elements must not change any more. On the CPU `value` itself.
/// Throws std::logic_error while this thread captures (captured_step.hpp).
tensor computed_by_now(tensor value);

/// value.to(target), for elements that do not change any more. To a GPU the copy is made beside what is
/// queued there, and before what is queued later. On another GPU, too, work goes on meanwhile, and the memory
/// of `value` is kept until then; throws std::logic_error while this thread captures there.
tensor async_device_copy(const tensor& value, device target);

}  // namespace troupe
