#pragma once

/// Function attribute: the compiler generates one version per vector width (function multiversioning), and
/// the best one for the machine is selected at load time. All give the same bits, since elements are
/// independent and FMA contraction is off.
#if defined(TROUPE_VECTOR_CLONES) && defined(__x86_64__)
#define TROUPE_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define TROUPE_CLONES
#endif
