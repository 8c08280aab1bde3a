#include "troupe/tensor/cuda/dynamic_library.hpp"

#include <dlfcn.h>

#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

void* load(const library_location& place) {
  constexpr int as_its_own = RTLD_NOW | RTLD_LOCAL;
  if (auto* library = dlopen(place.file_name.c_str(), as_its_own)) return library;
  return dlopen((place.folder + "/" + place.file_name).c_str(), as_its_own);
}

[[noreturn]] void refuse(const library_location& place) {
  const auto* problem = dlerror();
  throw bad_input(place.need + ", which cannot be loaded: " + (problem ? problem : place.file_name) + "; " +
                  place.remedy);
}

}  // namespace

dynamic_library::dynamic_library(library_location place) : place_(std::move(place)), library_(load(place_)) {
  if (!library_) refuse(place_);
}

bool dynamic_library::can_load(const library_location& place) { return load(place) != nullptr; }

void* dynamic_library::address_of(const char* name) const {
  auto* address = dlsym(library_, name);
  if (!address) refuse(place_);
  return address;
}

}  // namespace troupe
