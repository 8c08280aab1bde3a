# Whether GPUs are compiled in. TROUPE_CUDA is ON where the CUDA Toolkit is found (12 or later, with nvcc and cuBLASLt's
# header) unless sanitizers watch; ON by the user without a toolkit is an error, never a silent build for the CPU alone.
find_package(CUDAToolkit 12 QUIET)
set(troupe_cuda_found OFF)
if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND TARGET CUDA::cublasLt AND TARGET CUDA::cudart_static)
  set(troupe_cuda_found ON)
endif()
set(troupe_cuda_default ${troupe_cuda_found})
if(TROUPE_SANITIZE)
  set(troupe_cuda_default OFF)
endif()
option(TROUPE_CUDA "Compile the GPUs' part (needs the CUDA Toolkit)" ${troupe_cuda_default})

# Convolutions on GPUs need cuDNN 9: ON where its header is found beside the toolkit's, and loaded when they run.
find_path(TROUPE_CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(TROUPE_CUDNN_INCLUDE_DIR)
set(troupe_cudnn_default OFF)
if(TROUPE_CUDA AND TROUPE_CUDNN_INCLUDE_DIR)
  set(troupe_cudnn_default ON)
endif()
option(TROUPE_CUDNN "Compile convolutions for GPUs (needs cuDNN's headers)" ${troupe_cudnn_default})

if(TROUPE_CUDA AND NOT troupe_cuda_found)
  message(FATAL_ERROR "TROUPE_CUDA is ON, but there is no CUDA Toolkit 12 or later with nvcc, cudart and cuBLASLt: "
    "put nvcc on the PATH or pass -DCUDAToolkit_ROOT=/usr/local/cuda, or leave GPUs out with -DTROUPE_CUDA=OFF")
elseif(TROUPE_CUDA)
  # Machine code for the 8.x and the 9.0 GPUs, and PTX, from which drivers make it for later ones; or what CMake's own
  # environment variable says.
  set(architectures "80-real;90")
  if(DEFINED ENV{CUDAARCHS})
    set(architectures $ENV{CUDAARCHS})
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "GPUs to compile for")
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE} CACHE FILEPATH "nvcc")
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "nvcc's host compiler")
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  message(STATUS "CUDA: found ${CUDAToolkit_VERSION}, compiling for ${CMAKE_CUDA_ARCHITECTURES}")
elseif(troupe_cuda_found)
  message(STATUS "CUDA: found ${CUDAToolkit_VERSION}, but TROUPE_CUDA is OFF: GPUs are left out")
else()
  message(STATUS "CUDA: not found, GPUs are left out")
endif()

# troupe_cuda_objects(<target> SOURCES ...): .cu files of kernels/ as objects, which a component then lists among its
# sources. Kept apart so that the component itself stays C++: who links it needs no CUDA compiler.
function(troupe_cuda_objects target)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  add_library(${target} OBJECT ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Xcompiler=-Wall,-Wextra
    $<$<BOOL:${TROUPE_WERROR}>:--Werror=all-warnings>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/kernels)
endfunction()
