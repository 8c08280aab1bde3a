#pragma once
#include "troupe/trace/event_segment.hpp"

namespace troupe::trace {

/// Copies what a segment holds, while others write to it. Whatever the memory contains, only what lies in it
/// is read.
process_events copy_layout(const event_segment_layout& segment);

/// The size of the segment in a memfd. Throws bad_input if it is none that can be mapped.
event_segment_size size_of_sealed(int file);

}  // namespace troupe::trace
