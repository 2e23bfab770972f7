# deploy/install.cmake -- the files that `cmake --install` installs with the program, and the .deb files that `cpack` makes.
#
#   cmake --install build/release --prefix /usr/local
#   cpack --config build/release/CPackConfig.cmake -B .
#
# Included by the top-level CMakeLists.txt if the folder deploy/ exists.

# Installing does not build the target `all`, which includes the tests. Before its files are installed, each component
# therefore checks that they are built.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
function(needs_built FILE)
  install(CODE "if(NOT EXISTS \"${FILE}\")
    message(FATAL_ERROR \"${FILE} is not built. Build it first: deploy/quickstart, or
  cmake --build ${PROJECT_BINARY_DIR} --target hearsay libhearsay libhearsay_static\")
  endif()" ${ARGN})
endfunction()
needs_built($<TARGET_FILE:hearsay> COMPONENT program)
needs_built($<TARGET_FILE:libhearsay> COMPONENT library)
needs_built($<TARGET_FILE:libhearsay> COMPONENT development)   # The link libhearsay.so of the component `development` points to this file.
needs_built(${PROJECT_BINARY_DIR}/libhearsay.a COMPONENT development)

# Installing makes the completion script, which the program prints, and the compressed texts. The build itself needs
# neither of these files.
if(CMAKE_CROSSCOMPILING)
  message(STATUS "cross-compiling: no completion is installed")
else()
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:hearsay>\" completion bash
    OUTPUT_FILE \"${PROJECT_BINARY_DIR}/hearsay.bash\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${PROJECT_BINARY_DIR}/hearsay.bash RENAME hearsay
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

# compressed(FILE NAME WHERE ...): installs FILE, compressed, as WHERE/NAME.gz. The file has no
# time stamp, so that two builds are equal.
function(compressed FILE NAME WHERE)
  install(CODE "execute_process(COMMAND gzip -9nc \"${PROJECT_SOURCE_DIR}/deploy/${FILE}\"
    OUTPUT_FILE \"${PROJECT_BINARY_DIR}/${NAME}.gz\" COMMAND_ERROR_IS_FATAL ANY)" ${ARGN})
  install(FILES ${PROJECT_BINARY_DIR}/${NAME}.gz DESTINATION ${WHERE} ${ARGN})
endfunction()
compressed(hearsay.1 hearsay.1 ${CMAKE_INSTALL_MANDIR}/man1)
compressed(debian/changelog changelog ${CMAKE_INSTALL_DOCDIR})

install(FILES README.md deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES deploy/compose.yml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY deploy/slurm deploy/kubernetes deploy/systemd deploy/monitoring DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
  PATTERN hearsay@.service EXCLUDE)
install(FILES deploy/systemd/hearsay@.service DESTINATION lib/systemd/system)

# ---- Files of the library and of its packages ----

install(TARGETS libhearsay LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(FILES peer/api/hearsay.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/libhearsay.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
# hearsay.pc is made while installing, because the prefix may be given at that time.
install(CODE "set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
  set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
  set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(MSGPACK_LIBS \"${MSGPACK_LIBS}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/deploy/hearsay.pc.in\" \"${PROJECT_BINARY_DIR}/hearsay.pc\" @ONLY)" COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/hearsay.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libhearsay COMPONENT library)
install(FILES deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libhearsay-dev COMPONENT development)
install(DIRECTORY tests/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libhearsay-dev/examples COMPONENT development)
compressed(debian/changelog changelog ${CMAKE_INSTALL_DATADIR}/doc/libhearsay COMPONENT library)
compressed(debian/changelog changelog ${CMAKE_INSTALL_DATADIR}/doc/libhearsay-dev COMPONENT development)

# The reference: manual pages and HTML, made from the header by `cmake --build build/release --target docs` and while
# installing. `cmake --install` leaves the reference out, with a warning, if python3 is missing. cpack needs python3 (debian/tools.cmake).
set(REFERENCE ${PROJECT_BINARY_DIR}/reference)
add_custom_target(docs COMMAND ${PROJECT_SOURCE_DIR}/deploy/reference/make ${REFERENCE} ${PROJECT_VERSION})
install(CODE "find_program(python3 python3 NO_CACHE)
  file(REMOVE_RECURSE \"${REFERENCE}\")
  file(MAKE_DIRECTORY \"${REFERENCE}/man\" \"${REFERENCE}/html\")
  if(python3)
    execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/deploy/reference/make\" \"${REFERENCE}\" ${PROJECT_VERSION}
      COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB pages \"${REFERENCE}/man/*.3\")
    execute_process(COMMAND gzip -9n \${pages} COMMAND_ERROR_IS_FATAL ANY)
    file(MAKE_DIRECTORY \"${REFERENCE}/html\")
  else()
    message(WARNING \"python3 is not installed: the manual pages and HTML of libhearsay are left out\")
  endif()" COMPONENT development)
install(DIRECTORY ${REFERENCE}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 COMPONENT development)
install(DIRECTORY ${REFERENCE}/html DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libhearsay-dev COMPONENT development)

# The Python package, which loads the installed library (a package made by pip contains its own: peer/api/python).
install(DIRECTORY peer/api/python/hearsay DESTINATION lib/python3/dist-packages COMPONENT python
  FILES_MATCHING PATTERN "*.py" PATTERN py.typed PATTERN __pycache__ EXCLUDE PATTERN lab EXCLUDE)
install(FILES peer/api/python/README.md deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-hearsay COMPONENT python)
compressed(debian/changelog changelog ${CMAKE_INSTALL_DATADIR}/doc/python3-hearsay COMPONENT python)

# The experiment tools: the Python package hearsay.lab and the command hearsay-lab.
install(DIRECTORY peer/api/python/hearsay/lab DESTINATION lib/python3/dist-packages/hearsay COMPONENT lab
  FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
install(PROGRAMS peer/api/python/hearsay-lab DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT lab)
install(FILES peer/api/python/hearsay/lab/README.md deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hearsay-lab COMPONENT lab)
compressed(debian/changelog changelog ${CMAKE_INSTALL_DATADIR}/doc/hearsay-lab COMPONENT lab)

# ---- The Debian packages: hearsay, libhearsay, libhearsay-dev, python3-hearsay, hearsay-lab. ----

set(CPACK_GENERATOR DEB)
# tools.cmake makes cpack fail if a tool that cpack needs is missing.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/deploy/debian/tools.cmake)
set(CPACK_PACKAGE_NAME hearsay)
# The first line of each description is its summary.
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "train one model on many machines without a server
Peers run local SGD on their own part of the data and exchange compressed
differences of their models with a few neighbours over encrypted TCP links
(CHOCO-SGD), until all of them hold the same model. One program trains with
several peers on one machine, as one peer of a cluster, or over a simulated
network, and measures accuracy, the distance between the models and bytes sent.")
set(CPACK_PACKAGE_CONTACT "hearsay developers <hearsay@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)   # The packages of the shared libraries that the program is linked with.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "bash-completion")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL program library development python lab)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME hearsay)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libhearsay)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "take part in a hearsay run with a model of your own (library)
The peer of hearsay for programs that own their model and their training loop:
compressed gossip over encrypted TCP links, members, checkpoints, drift.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/triggers)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libhearsay-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libhearsay (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "take part in a hearsay run with a model of your own (development files)
The header, the static library, what pkg-config says of libhearsay, and its
reference as manual pages and HTML.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-hearsay)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "libhearsay (= ${PROJECT_VERSION}), python3 (>= 3.9)")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-torch")   # Only suggested: python3-torch depends on some 500 other packages.
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/postinst ${PROJECT_SOURCE_DIR}/deploy/debian/prerm)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "take part in a hearsay run with a model of your own (Python 3)
Peers with models of PyTorch or numpy, codecs for arrays and tensors, and a
hook that compresses the gradients of DistributedDataParallel.")
set(CPACK_DEBIAN_LAB_PACKAGE_NAME hearsay-lab)
set(CPACK_DEBIAN_LAB_PACKAGE_SECTION science)
set(CPACK_DEBIAN_LAB_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_LAB_PACKAGE_DEPENDS
  "hearsay (= ${PROJECT_VERSION}), python3-hearsay (= ${PROJECT_VERSION}), python3 (>= 3.11), python3-matplotlib, python3-numpy")
set(CPACK_DEBIAN_LAB_PACKAGE_SUGGESTS "python3-pandas, python3-protobuf")
set(CPACK_DEBIAN_LAB_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_LAB_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/lab/postinst ${PROJECT_SOURCE_DIR}/deploy/debian/lab/prerm)
set(CPACK_DEBIAN_LAB_DESCRIPTION "experiments with hearsay, and reports of finished runs
Runs grids of settings and seeds, chooses learning rates on validation data,
and says which differences are more than noise. Draws finished runs as a page,
figures and tables, and writes event files for TensorBoard.")
include(CPack)
