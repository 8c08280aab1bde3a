# The inspector's web page (tools/inspector), bundled by esbuild and compiled into the programs that serve it. Its packages come
# from the npm registry into the build folder, once for each package-lock.json. Without node, npm or the registry everything else is
# built, and `/` says that the page is missing and why.
option(TROUPE_INSPECTOR_PAGE "Build the inspector's web page (needs node 18 and npm)" ON)

set(TROUPE_PAGE_SOURCE_DIR ${PROJECT_SOURCE_DIR}/tools/inspector)
set(TROUPE_PAGE_DIR ${PROJECT_BINARY_DIR}/inspector_page)

# Sets `missing` to why the page cannot be built, or to "".
function(troupe_find_node missing)
  set(${missing} "" PARENT_SCOPE)
  if(NOT TROUPE_INSPECTOR_PAGE)
    set(${missing} "the build was configured with TROUPE_INSPECTOR_PAGE=OFF" PARENT_SCOPE)
    return()
  endif()
  find_program(TROUPE_NODE NAMES node nodejs DOC "Runs what builds the inspector's page")
  find_program(TROUPE_NPM NAMES npm DOC "Installs what builds the inspector's page")
  if(NOT TROUPE_NODE OR NOT TROUPE_NPM)
    set(${missing} "the build found no node and npm (tools/setup page installs them; then configure again)" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${TROUPE_NODE} --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX REPLACE "^v" "" version "${version}")
  if(version VERSION_LESS 18)
    set(${missing} "the build needs node 18 or newer, and found ${version}" PARENT_SCOPE)
  endif()
endfunction()

# Installs the packages that the lock file names, unless they are there already.
function(troupe_install_page_packages missing)
  set(${missing} "" PARENT_SCOPE)
  set(lock ${TROUPE_PAGE_SOURCE_DIR}/package-lock.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${lock})
  file(SHA256 ${lock} wanted)
  set(stamp ${TROUPE_PAGE_DIR}/installed)
  if(EXISTS ${stamp})
    file(READ ${stamp} installed)
    if(installed STREQUAL wanted)
      return()
    endif()
  endif()
  file(REMOVE ${stamp})
  file(COPY ${TROUPE_PAGE_SOURCE_DIR}/package.json ${lock} DESTINATION ${TROUPE_PAGE_DIR})
  message(STATUS "Inspector page: npm ci")
  execute_process(COMMAND ${TROUPE_NPM} ci --ignore-scripts --no-audit --no-fund --no-update-notifier --fetch-retries=1
                  WORKING_DIRECTORY ${TROUPE_PAGE_DIR} RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE said TIMEOUT 300)
  if(NOT status EQUAL 0)
    message(WARNING "Inspector page: npm ci ended with ${status}:\n${said}")
    set(${missing} "the build could not get its packages from the npm registry (configure again when it can be reached)" PARENT_SCOPE)
    return()
  endif()
  file(WRITE ${stamp} ${wanted})
endfunction()

# Sets `source` to the C++ source with the page, or with why there is none.
function(troupe_inspector_page source)
  file(MAKE_DIRECTORY ${TROUPE_PAGE_DIR})
  troupe_find_node(TROUPE_PAGE_MISSING)
  if(NOT TROUPE_PAGE_MISSING)
    troupe_install_page_packages(TROUPE_PAGE_MISSING)
  endif()
  set_property(GLOBAL PROPERTY TROUPE_PAGE_MISSING "${TROUPE_PAGE_MISSING}")
  if(TROUPE_PAGE_MISSING)
    message(STATUS "Inspector page: missing, since ${TROUPE_PAGE_MISSING}")
    configure_file(${PROJECT_SOURCE_DIR}/tools/cmake/page_missing.cpp.in ${TROUPE_PAGE_DIR}/page_missing.cpp @ONLY)
    set(${source} ${TROUPE_PAGE_DIR}/page_missing.cpp PARENT_SCOPE)
    return()
  endif()
  file(GLOB_RECURSE scripts CONFIGURE_DEPENDS ${TROUPE_PAGE_SOURCE_DIR}/src/*)
  set(esbuild ${TROUPE_PAGE_DIR}/node_modules/.bin/esbuild)
  set(page ${TROUPE_PAGE_DIR}/page)
  add_custom_command(OUTPUT ${page}_files.cpp
    COMMAND ${esbuild} ${TROUPE_PAGE_SOURCE_DIR}/src/main.ts --bundle --minify --format=iife --target=es2022 --charset=utf8 --log-level=warning
            --outfile=${page}.js
    COMMAND ${esbuild} ${TROUPE_PAGE_SOURCE_DIR}/src/style.css --minify --charset=utf8 --log-level=warning --outfile=${page}.css
    COMMAND ${TROUPE_NODE} ${TROUPE_PAGE_SOURCE_DIR}/embed.mjs ${page}_files.cpp
            "/=text/html; charset=utf-8=${TROUPE_PAGE_SOURCE_DIR}/src/index.html"
            "/page.js=text/javascript; charset=utf-8=${page}.js"
            "/page.css=text/css; charset=utf-8=${page}.css"
    DEPENDS ${scripts} ${TROUPE_PAGE_SOURCE_DIR}/embed.mjs ${TROUPE_PAGE_DIR}/installed
    COMMENT "Bundling the inspector's page" VERBATIM)
  set(${source} ${page}_files.cpp PARENT_SCOPE)
endfunction()
