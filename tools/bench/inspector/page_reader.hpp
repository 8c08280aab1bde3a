#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace troupe::bench {

/// An answer of the inspector.
struct page_answer {
  std::string path;
  double begin_s = 0;  ///< on the steady clock
  double seconds = 0;  ///< from the request until all of it was there
  std::size_t size_bytes = 0;
};

struct page_answers {
  std::vector<page_answer> answers;
  std::map<std::string, std::string> newest;  ///< the newest answer to each path
};

/// Asks an inspector for what its page asks for (tools/inspector/src/feed.ts): all parts once a second, one
/// after the other, and the stream of events. On threads of its own, from the moment that somebody listens
/// there.
class page_reader {
 public:
  page_reader(std::uint16_t port, std::string token);
  page_reader(const page_reader&) = delete;
  page_reader& operator=(const page_reader&) = delete;

  /// Ends the reading. Throws std::runtime_error if nothing was answered, or if an answer was none with
  /// status 200.
  page_answers finish();

 private:
  void ask(const std::stop_token& stopped);
  void follow_events(const std::stop_token& stopped) const;

  std::uint16_t port_;
  std::string token_;
  page_answers found_;
  std::exception_ptr problem_;
  std::jthread asking_, following_;
};

}  // namespace troupe::bench
