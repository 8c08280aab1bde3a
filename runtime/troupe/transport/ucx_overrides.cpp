#include "troupe/transport/ucx_overrides.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <ucs/sys/uid.h>
#include <ucs/type/status.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "troupe/error/errors.hpp"

// As in UCX's ucs/sys/sys.h, which is not installed; the same since UCX 1.8.
extern "C" ucs_status_t ucs_sysv_alloc(std::size_t* size, std::size_t max_size, void** address, int flags,
                                       const char* name, int* segment);

namespace {

/// UCX's own definition of what `replacement` replaces.
template <class Function>
Function* original(Function* /*replacement*/, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::uint64_t network_namespace() {
  struct stat network {};
  troupe::check_posix(::stat("/proc/self/ns/net", &network), "read /proc/self/ns/net (mount /proc)");
  return network.st_ino;
}

}  // namespace

extern "C" ucs_status_t ucs_sysv_alloc(std::size_t* size, std::size_t max_size, void** address, int flags,
                                       const char* name, int* segment) {
  constexpr int of_others = S_IRWXG | S_IRWXO;
  static auto* const allocate = original(&ucs_sysv_alloc, "ucs_sysv_alloc");
  return allocate(size, max_size, address, flags & ~of_others, name, segment);
}

extern "C" std::uint64_t ucs_get_system_id() {
  constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15;  // spreads small numbers over all bits
  static const auto id =
      original(&ucs_get_system_id, "ucs_get_system_id")() ^ network_namespace() * golden_ratio;
  return id;
}

namespace troupe {
namespace {

void check_override(void* replacement, const char* name) {
  if (::dlsym(RTLD_DEFAULT, name) == replacement && ::dlsym(RTLD_NEXT, name)) return;
  throw std::runtime_error("UCX in this program calls its own " + std::string(name) +
                           ", with which shared memory is neither private nor safe between containers: link "
                           "the program with -Wl,--export-dynamic-symbol=" +
                           name + " and the shared libraries of UCX");
}

}  // namespace

void check_ucx_overrides() {
  check_override(reinterpret_cast<void*>(&ucs_sysv_alloc), "ucs_sysv_alloc");
  check_override(reinterpret_cast<void*>(&ucs_get_system_id), "ucs_get_system_id");
  ucs_get_system_id();  // an exception is thrown here instead of inside UCX
}

}  // namespace troupe
