#include "support/devices.hpp"

namespace troupe::testing {

device device_under_test() { return first_gpu(); }

}  // namespace troupe::testing
