#pragma once

namespace troupe::testing {

/// False if the environment variable TROUPE_EMULATED_LIBRARIES is "none": then the fake cuBLASLt and cuDNN
/// support nothing unless a test sets something else. Throws bad_input for another value than "none" and
/// "all".
bool libraries_are_offered();

}  // namespace troupe::testing
