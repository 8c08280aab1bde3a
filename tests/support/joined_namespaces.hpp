#pragma once
#include <string>
#include <vector>

namespace troupe::testing {

/// Two network namespaces joined by a cable, so that a process of one and a process of the other are as on
/// two hosts. Skips the test, saying why, where this process may not make them (run as root) or there is no
/// `ip` (Debian: iproute2).
class joined_namespaces {
 public:
  joined_namespaces();
  ~joined_namespaces();
  joined_namespaces(const joined_namespaces&) = delete;
  joined_namespaces& operator=(const joined_namespaces&) = delete;

  /// Of the cable's end, in both.
  static constexpr const char* interface = "cable";
  /// Of its end in namespace 0 or 1.
  static std::string address(int which) { return "10.77.0." + std::to_string(which + 1); }
  /// For `ip netns exec`.
  const std::string& name(int which) const { return names_.at(static_cast<std::size_t>(which)); }
  /// The calling process, which has one thread, is in namespace 0 or 1 from now on.
  void enter(int which) const;
  /// Nothing goes through from now on.
  void cut() const;

 private:
  std::vector<std::string> names_;
};

}  // namespace troupe::testing
