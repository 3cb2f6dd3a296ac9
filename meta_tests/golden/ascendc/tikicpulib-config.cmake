add_library(tikicpulib::Ascend910B1 INTERFACE IMPORTED)
target_include_directories(tikicpulib::Ascend910B1 INTERFACE ${CMAKE_CURRENT_LIST_DIR})
