#include "troupe/autograd/grad_mode.hpp"

#include <utility>

namespace troupe {
namespace {

thread_local bool recording = true;

}  // namespace

bool is_grad_enabled() { return recording; }

no_grad::no_grad() : outer_(std::exchange(recording, false)) {}
no_grad::~no_grad() { recording = outer_; }

enable_grad::enable_grad() : outer_(std::exchange(recording, true)) {}
enable_grad::~enable_grad() { recording = outer_; }

}  // namespace troupe
