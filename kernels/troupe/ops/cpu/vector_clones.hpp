#pragma once

/// Before a function: the compiler makes one version per vector width and the fastest that the machine has
/// is taken at run time. All give the same bits, since elements are independent and nothing is contracted.
#if defined(TROUPE_VECTOR_CLONES) && defined(__x86_64__)
#define TROUPE_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define TROUPE_CLONES
#endif
