#pragma once
#include <string>
#include <vector>

namespace troupe::testing {

/// Two network namespaces joined by a virtual cable, which act as two hosts. Skips the test with a reason if
/// this process may not make them (run as root) or there is no `ip` (Debian: iproute2).
class joined_namespaces {
 public:
  joined_namespaces();
  ~joined_namespaces();
  joined_namespaces(const joined_namespaces&) = delete;
  joined_namespaces& operator=(const joined_namespaces&) = delete;

  /// The interface of the cable's end, in both namespaces.
  static constexpr const char* interface = "cable";
  /// The address of the cable's end in namespace 0 or 1.
  static std::string address(int which) { return "10.77.0." + std::to_string(which + 1); }
  /// The name for `ip netns exec`.
  const std::string& name(int which) const { return names_.at(static_cast<std::size_t>(which)); }
  /// Moves the calling process, which must have one thread, to namespace 0 or 1.
  void enter(int which) const;
  /// Cuts the cable: no packet passes any more.
  void cut() const;

 private:
  std::vector<std::string> names_;
};

}  // namespace troupe::testing
