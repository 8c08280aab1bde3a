#pragma once
#include <string>

namespace troupe {

/// A library that is loaded on demand (dlopen), and the message if it cannot be loaded.
struct library_location {
  std::string file_name;  ///< such as "libnccl.so.2"
  std::string folder;     ///< searched after the loader's own search path
  std::string need;       ///< for the message: what needs it, such as "groups of GPUs need NCCL"
  std::string remedy = "install it, and let its folder be known to ldconfig or stand in LD_LIBRARY_PATH";
};

/// A loaded library. It stays loaded after destruction.
class dynamic_library {
 public:
  /// Throws bad_input with the loader's message if it cannot be loaded.
  explicit dynamic_library(library_location place);
  /// Whether it can be loaded.
  static bool can_load(const library_location& place);

  /// Sets `function` to the address of the function `name`. Throws bad_input if there is none.
  template <class Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(address_of(name));
  }

 private:
  void* address_of(const char* name) const;

  library_location place_;
  void* library_;
};

}  // namespace troupe
