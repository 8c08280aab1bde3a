# Headers of others that many sources include, parsed once for all of them. Off where a compiler cache keeps whole objects
# and wants to see every source as it is, and in the asan preset: there each source must include what it uses.
# (Installed headers without a source of their own are held to that in every build, by tests/package; of the others clang-tidy
# looks at those that change.)
set(troupe_precompile_default ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR TROUPE_SANITIZE MATCHES address)
  set(troupe_precompile_default OFF)
endif()
option(TROUPE_PRECOMPILE "Precompile the headers of Catch2, CAF and others" ${troupe_precompile_default})

set(troupe_standard_headers
  <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstring> <deque> <exception> <filesystem> <functional> <limits>
  <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <stdexcept> <string> <string_view> <thread> <unordered_map>
  <utility> <variant> <vector>)

# troupe_precompile(<set> [PIC] FLAGS <target> HEADERS ... DEPENDS ...): a set of headers, the standard library's among them.
# Who uses it is compiled with the flags of <target>, as position-independent code or not.
function(troupe_precompile set)
  cmake_parse_arguments(arg "PIC" "FLAGS" "HEADERS;DEPENDS" ${ARGN})
  if(NOT TROUPE_PRECOMPILE)
    return()
  endif()
  set(name troupe_precompiled_${set})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ${arg_PIC})
  target_link_libraries(${name} PRIVATE ${arg_FLAGS} ${arg_DEPENDS})
  target_precompile_headers(${name} PRIVATE ${troupe_standard_headers} ${arg_HEADERS})
endfunction()

# troupe_use_precompiled(<target> <set>): every source of the target begins with that set. A set that is not there is none.
function(troupe_use_precompiled target set)
  if(TARGET troupe_precompiled_${set})
    target_precompile_headers(${target} REUSE_FROM troupe_precompiled_${set})
    # GCC 12 forgets that these headers are the system's, and warns of its own std::string (GCC's bug 105651, as -Wno-restrict).
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# troupe_compile_together(<target> [ALONE source...]): compiles eight sources at a time as one, which takes half the time: headers are
# read once, and templates that several sources use are instantiated once. Names in the anonymous namespaces of such sources must
# differ. ALONE: these are compiled each by itself. Off where headers are not precompiled, for the same reasons.
function(troupe_compile_together target)
  cmake_parse_arguments(arg "" "" "ALONE" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TROUPE_PRECOMPILE} UNITY_BUILD_BATCH_SIZE 8)
  if(arg_ALONE)
    set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
