#pragma once
#include <string>

namespace troupe {

/// A library that programs run without until they need it, and what is said where it cannot be loaded.
struct library_place {
  std::string file_name;  ///< such as "libnccl.so.2"
  std::string folder;     ///< looked into after where the loader looks
  std::string need;       ///< what needs it, such as "groups of GPUs need NCCL"
  std::string remedy = "install it, and let its folder be known to ldconfig or stand in LD_LIBRARY_PATH";
};

/// A loaded library. It stays loaded when this goes.
class dynamic_library {
 public:
  /// Throws bad_input with the loader's words if it cannot be loaded.
  explicit dynamic_library(library_place place);
  /// Whether it can be loaded.
  static bool is_there(const library_place& place);

  /// Sets `function` to the function of this name. Throws bad_input if there is none.
  template <class Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(address_of(name));
  }

 private:
  void* address_of(const char* name) const;

  library_place place_;
  void* library_;
};

}  // namespace troupe
