# The installed package: libraries, the headers of kernels, runtime and api, the tool, the CMake files.
include(CMakePackageConfigHelpers)
get_property(components GLOBAL PROPERTY TROUPE_COMPONENTS)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
install(TARGETS ${components} EXPORT troupe-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET troupe)
  install(TARGETS troupe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(EXPORT troupe-targets NAMESPACE troupe:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/cmake/troupe-config.cmake.in
  ${PROJECT_BINARY_DIR}/troupe-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/troupe-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/troupe-config.cmake ${PROJECT_BINARY_DIR}/troupe-config-version.cmake
  ${PROJECT_SOURCE_DIR}/tools/cmake/TroupeDependencies.cmake ${PROJECT_SOURCE_DIR}/tools/cmake/FindCAF.cmake
  DESTINATION ${package_dir})
