#pragma once
#include <dlfcn.h>

#include <string>

namespace troupe::cuda {

/// The library `file_name`, from where the loader looks, else from `beside`; null if it cannot be loaded, and
/// dlerror() says why. It stays loaded.
inline void* load_library(const std::string& file_name, const std::string& beside) {
  if (auto* library = dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return dlopen((beside + "/" + file_name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace troupe::cuda
