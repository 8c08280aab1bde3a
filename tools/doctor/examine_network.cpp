#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <uct/api/uct.h>
#include <unistd.h>

#include <algorithm>

#include "examine.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe::doctor {
namespace {

class socket_handle {
 public:
  socket_handle()
      : descriptor_(static_cast<int>(check_posix(::socket(AF_INET, SOCK_STREAM, 0), "open a socket"))) {}
  socket_handle(const socket_handle&) = delete;
  socket_handle& operator=(const socket_handle&) = delete;
  ~socket_handle() { ::close(descriptor_); }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Listens on a free port of 127.0.0.1 and connects to it.
void try_loopback() {
  socket_handle server, client;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  check_posix(::bind(server.descriptor(), generic, size), "bind to 127.0.0.1");
  check_posix(::listen(server.descriptor(), 1), "listen on 127.0.0.1");
  check_posix(::getsockname(server.descriptor(), generic, &size), "read the socket's port");
  check_posix(::connect(client.descriptor(), generic, size), "connect to 127.0.0.1");
}

finding loopback() {
  try {
    try_loopback();
    return {"network", "loopback", verdict::ok, "127.0.0.1 answers", ""};
  } catch (const system_failure& failure) {
    return {"network", "loopback", verdict::missing, failure.what(), "ip link set lo up"};
  }
}

/// Appends the transports of one memory domain of UCX. Skips a domain that cannot be opened.
void add_transports(uct_component_h component, const char* domain, std::vector<std::string>& resources) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  uct_md_h opened = nullptr;
  auto status = uct_md_open(component, domain, config, &opened);
  uct_config_release(config);
  if (status != UCS_OK) return;
  uct_tl_resource_desc_t* list = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(opened, &list, &count) == UCS_OK) {
    for (unsigned i = 0; i < count; ++i)
      resources.push_back(std::string(list[i].tl_name) + "/" + list[i].dev_name);
    uct_release_tl_resource_list(list);
  }
  uct_md_close(opened);
}

/// Appends the transports of all memory domains of a component. UCX needs two queries: for the number of
/// domains, then for their names.
void add_transports(uct_component_h component, std::vector<std::string>& resources) {
  uct_component_attr_t attributes{};
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  if (uct_component_query(component, &attributes) != UCS_OK) return;
  std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  attributes.md_resources = domains.data();
  if (uct_component_query(component, &attributes) != UCS_OK) return;
  for (const auto& domain : domains) add_transports(component, domain.md_name, resources);
}

std::vector<std::string> ucx_resources() {
  uct_component_h* components = nullptr;
  unsigned count = 0;
  std::vector<std::string> resources;
  if (uct_query_components(&components, &count) != UCS_OK) return resources;
  for (unsigned i = 0; i < count; ++i) add_transports(components[i], resources);
  uct_release_component_list(components);
  return resources;
}

finding no_loopback(const std::filesystem::path& interfaces) {
  finding found{"network", "UCX over loopback", verdict::missing, "UCX sees no tcp on lo",
                "ip link set lo up"};
  if (std::filesystem::exists(interfaces / "lo")) return found;
  found.value += ", because " + interfaces.string() + " does not list it";
  found.remedy = "mount -t sysfs sysfs /sys";
  return found;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

findings transports(const std::vector<std::string>& resources, const std::filesystem::path& interfaces) {
  auto has = [&](std::string_view start) {
    return std::ranges::any_of(resources,
                               [start](const std::string& resource) { return resource.starts_with(start); });
  };
  findings found;
  found.push_back(
      {"network", "UCX transports", verdict::ok, resources.empty() ? "none" : joined(resources), ""});
  if (!has("tcp/lo")) found.push_back(no_loopback(interfaces));
  if (!has("posix/") && !has("sysv/"))
    found.push_back({"network", "UCX shared memory", verdict::warning,
                     "UCX finds none; tensors are sent over TCP", "apt-get install --reinstall libucx0"});
  return found;
}

findings examine_network() {
  ucx::configure_ucx_library();
  findings found{loopback()};
  std::ranges::move(transports(ucx_resources()), std::back_inserter(found));
  return found;
}

}  // namespace troupe::doctor
