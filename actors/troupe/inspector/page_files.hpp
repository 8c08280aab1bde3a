#pragma once
#include <span>
#include <string_view>

namespace troupe::actors::inspector {

/// A file of the web page (tools/inspector), as the build put it into the program. It tells nothing about any
/// job.
struct page_file {
  std::string_view path;  ///< "/page.js"; "/" is the page itself
  std::string_view content_type;
  std::string_view text;
};

/// All files of the page; none: this build has no page.
std::span<const page_file> page_files();

/// Why this build has no page; empty: it has one.
std::string_view page_missing();

}  // namespace troupe::actors::inspector
