# One INTERFACE target carries warnings and sanitizers to everything that is ours.
add_library(troupe_flags INTERFACE)
target_compile_options(troupe_flags INTERFACE -Wall -Wextra -Wshadow=local -Wnon-virtual-dtor -Wold-style-cast -Wno-restrict
  $<$<BOOL:${TROUPE_WERROR}>:-Werror>)
# Up to 1 GiB (the largest source takes as much) the compiler frees nothing: a tenth of its time.
target_compile_options(troupe_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)
if(TROUPE_SANITIZE)
  target_compile_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()
# The checks for undefined behaviour point to millions of places in the sources. In a program at a fixed address these pointers
# are constants, else each start of it (of thousands in the tests) computes them anew: 1.4 s of CPU instead of 0.6.
if(TROUPE_SANITIZE MATCHES undefined)
  # With both, GCC guards each of these records as if it were a variable of the program: five times the memory, made ready at each
  # start. So global variables are not guarded; an index beyond a global array is found as undefined behaviour.
  if(TROUPE_SANITIZE MATCHES address)
    target_compile_options(troupe_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=asan-globals=0>)
  endif()
  target_link_options(troupe_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()

# mold links a program in a fifth of the time of the standard linker.
find_program(TROUPE_MOLD mold)
mark_as_advanced(TROUPE_MOLD)
if(TROUPE_MOLD AND PROJECT_IS_TOP_LEVEL)
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=mold>)
endif()
if(TROUPE_FUZZ)
  target_compile_options(troupe_flags INTERFACE -fsanitize=fuzzer-no-link)  # counts which branches an input takes
endif()

# The same for what computes nothing itself, actors and tools: compiled quickly.
add_library(troupe_quick_flags INTERFACE)
target_link_libraries(troupe_quick_flags INTERFACE troupe_flags)
target_compile_options(troupe_quick_flags INTERFACE $<$<CONFIG:Release>:-O1>)
# The same for tests, examples and what else only calls the library: -Og takes three quarters of the time of -O1.
add_library(troupe_test_flags INTERFACE)
target_link_libraries(troupe_test_flags INTERFACE troupe_flags)
if(TROUPE_SANITIZE)
  target_compile_options(troupe_test_flags INTERFACE -Og)
else()
  target_compile_options(troupe_test_flags INTERFACE $<$<CONFIG:Release>:-Og>)
endif()

# troupe_component(<area> FLOOR kernels|runtime|actors|api HEADERS ... SOURCES ... DEPENDS ... PRIVATE_DEPENDS ... [PRECOMPILED set]
#                  [COLD] [ALONE source...])
#
# One area of one floor: the static library troupe_<area>, alias troupe::<area>. An area sees the include
# roots of its own floor and of what it DEPENDS on, so a floor cannot include one above it. PRECOMPILED names a set of headers
# (TroupePrecompile.cmake), "floors" or "cold" unless told otherwise; an area with compile options of its own needs a set with the
# same, or none. COLD: nothing in it is called often, so it is compiled quickly (-O1), as the actors are. Sources are compiled eight
# at a time, but those named by ALONE (troupe_compile_together).
function(troupe_component area)
  cmake_parse_arguments(arg "COLD" "FLOOR;PRECOMPILED" "HEADERS;SOURCES;DEPENDS;PRIVATE_DEPENDS;ALONE" ${ARGN})
  set(name troupe_${area})
  set(root ${PROJECT_SOURCE_DIR}/${arg_FLOOR})
  if(arg_SOURCES)
    set(flags troupe_flags)
    set(precompiled floors)
    if(arg_COLD OR arg_FLOOR STREQUAL actors)  # actors compute nothing themselves
      set(flags troupe_quick_flags)
      set(precompiled cold)
    endif()
    set(scope PUBLIC)
    set(private PRIVATE)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:${flags}>)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(NOT arg_PRECOMPILED)
      set(arg_PRECOMPILED ${precompiled})
    endif()
    troupe_use_precompiled(${name} ${arg_PRECOMPILED})
    troupe_compile_together(${name} ALONE ${arg_ALONE})
  else()
    set(scope INTERFACE)
    set(private INTERFACE)
    add_library(${name} INTERFACE)
  endif()
  add_library(troupe::${area} ALIAS ${name})
  target_include_directories(${name} ${scope} $<BUILD_INTERFACE:${root}>)
  target_compile_features(${name} ${scope} cxx_std_20)
  target_link_libraries(${name} ${scope} ${arg_DEPENDS} ${private} ${arg_PRIVATE_DEPENDS})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${area})
  foreach(header IN LISTS arg_HEADERS)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
      message(FATAL_ERROR "${area}: header ${header} does not exist")
    endif()
  endforeach()
  # The headers of the actors are not installed: they need CAF's, and what api/ installs needs neither.
  if(arg_FLOOR STREQUAL actors)
    set(scope PRIVATE)
  endif()
  target_sources(${name} ${scope} FILE_SET HEADERS BASE_DIRS ${root} FILES ${arg_HEADERS})
  set_property(GLOBAL APPEND PROPERTY TROUPE_COMPONENTS ${name})
endfunction()

# troupe_program(<name> SOURCES ... DEPENDS ...): an executable of ours in build/<preset>/bin. Those that use the api begin with the
# set "programs".
function(troupe_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE troupe_test_flags ${arg_DEPENDS})
  if(troupe::troupe IN_LIST arg_DEPENDS)
    troupe_use_precompiled(${name} programs)
  endif()
endfunction()

# How the threads of emulated GPUs are run by tests (tests/support/cuda_emulation): what a wrong kernel gets right in one
# order it gets wrong in another.
set(troupe_emulation_orders warps)
if(TROUPE_SANITIZE)
  list(APPEND troupe_emulation_orders ascending descending shuffled early_copies)
endif()
set(TROUPE_EMULATION_ORDERS "${troupe_emulation_orders}" CACHE STRING
  "Of ascending, descending, shuffled, warps, early_copies: in which of them each test on an emulated GPU runs")

# Properties of tests that start whole jobs: two at a time (tools/cmake/test_resources.json, which the test
# presets name) beside other tests, since jobs mostly wait. The first to start, so that none is left over at the
# end. Cases tagged [timed] watch how fast processes get on: each is the only job, and they come before others.
set(troupe_job_test_properties RESOURCE_GROUPS jobs:1 COST 100)
set(troupe_timed_job_test_properties RESOURCE_GROUPS jobs:2 COST 200)

# troupe_timeout(<variable> <seconds>): sets it to how long a test may take at most, which sanitizers make slower.
function(troupe_timeout variable seconds)
  if(TROUPE_SANITIZE)
    math(EXPR seconds "4 * ${seconds}")
  endif()
  set(${variable} ${seconds} PARENT_SCOPE)
endfunction()

# troupe_test(<name> SOURCES ... DEPENDS ... [LABELS ...] [CASES spec] [TIMEOUT seconds] [JOBS] [QUICK] [PRECOMPILED set]
#             [EMULATED]): one Catch2 program, each case, or each that CASES selects, one ctest entry. PRECOMPILED names a set of
# headers (TroupePrecompile.cmake), "tests" unless told otherwise.
# QUICK: all cases are one entry, since most take less than to start the program (which shared libraries make slow). For programs
# whose cases all run everywhere: ctest does not show that a few of an entry's cases were skipped.
# TIMEOUT is a guard against hangs (troupe_timeout), not a claim about speed. JOBS is for programs that start whole jobs
# (troupe_job_test_properties). Cases tagged [many] draw much alike again and again; where threads are watched
# on each push (TROUPE_ONLY_THREADED_TESTS) they are left to .ci/sanitize. EMULATED: on emulated GPUs, once for each of
# TROUPE_EMULATION_ORDERS.
function(troupe_test name)
  cmake_parse_arguments(arg "JOBS;QUICK;EMULATED" "TIMEOUT;CASES;PRECOMPILED" "SOURCES;DEPENDS;LABELS;ALONE" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  troupe_timeout(arg_TIMEOUT ${arg_TIMEOUT})
  if(NOT arg_PRECOMPILED)
    set(arg_PRECOMPILED tests)
  endif()
  if(TROUPE_ONLY_THREADED_TESTS AND NOT arg_CASES)
    set(arg_CASES "~[many]")
  endif()
  add_executable(${name} ${arg_SOURCES})
  troupe_use_precompiled(${name} ${arg_PRECOMPILED})
  troupe_compile_together(${name} ALONE ${arg_ALONE})
  target_link_libraries(${name} PRIVATE troupe_test_flags Catch2::Catch2WithMain ${arg_DEPENDS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  set(properties TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 4)
  if(arg_LABELS)
    list(APPEND properties LABELS ${arg_LABELS})
  endif()
  if(arg_QUICK)
    add_test(NAME ${name} COMMAND ${name} ${arg_CASES})
    set_tests_properties(${name} PROPERTIES ${properties})
    return()
  endif()
  if(arg_JOBS)
    catch_discover_tests(${name} TEST_SPEC "${arg_CASES}[timed]~[.]" TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST
      PROPERTIES ${properties} ${troupe_timed_job_test_properties})
    string(APPEND arg_CASES "~[timed]")
    list(APPEND properties ${troupe_job_test_properties})
  endif()
  if(NOT arg_EMULATED)
    catch_discover_tests(${name} TEST_SPEC ${arg_CASES} TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
    return()
  endif()
  foreach(order IN LISTS TROUPE_EMULATION_ORDERS)
    if(order STREQUAL early_copies)
      set(variable TROUPE_EMULATION_EARLY_COPIES=set:1)
    else()
      set(variable TROUPE_EMULATION_ORDER=set:${order})
    endif()
    # The name of the run keeps the lists of cases apart, of which a program has one for each order.
    catch_discover_tests(${name} TEST_SPEC ${arg_CASES} TEST_PREFIX "${name}, ${order}: " EXTRA_ARGS --name ${order}
      DISCOVERY_MODE PRE_TEST PROPERTIES ${properties} ENVIRONMENT_MODIFICATION ${variable})
  endforeach()
endfunction()

# troupe_device_tests(<name> SOURCES ... DEPENDS ... [GPU_SOURCES ...]): the same sources as <name>_test, on the CPU, and as
# <name>_gpu_test, on the first GPU, without the cases tagged [host], in which no device takes part, and as
# <name>_emulated_gpu_test, where the CPU runs the GPU's kernels. GPU_SOURCES are in the latter two only.
function(troupe_device_tests name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;GPU_SOURCES" ${ARGN})
  set(support ${PROJECT_SOURCE_DIR}/tests/support)
  add_library(${name}_cases OBJECT ${arg_SOURCES})
  troupe_use_precompiled(${name}_cases tests)
  troupe_compile_together(${name}_cases)
  target_link_libraries(${name}_cases PRIVATE troupe_test_flags Catch2::Catch2 ${arg_DEPENDS})
  target_include_directories(${name}_cases PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  set(cases $<TARGET_OBJECTS:${name}_cases>)
  troupe_test(${name}_test QUICK SOURCES ${support}/on_cpu.cpp ${cases} DEPENDS ${arg_DEPENDS})
  troupe_test(${name}_gpu_test SOURCES ${support}/on_gpu.cpp ${arg_GPU_SOURCES} ${cases} DEPENDS ${arg_DEPENDS}
    LABELS gpu CASES ~[host])
  if(TARGET troupe_emulated_kernels)
    troupe_test(${name}_emulated_gpu_test SOURCES ${support}/on_gpu.cpp ${arg_GPU_SOURCES} ${cases} ${TROUPE_EMULATED_GPU}
      DEPENDS ${arg_DEPENDS} troupe::config CASES ~[host] TIMEOUT 600 EMULATED)
  endif()
endfunction()
