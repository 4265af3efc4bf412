#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "scheduler/kube/objects/cluster_file.h"

// Every cluster file is read whole or refused, and a state can be built from what was read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mortise;
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("mortise_cluster_list_fuzz_" + std::to_string(getpid()))).string();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto file = kube::load_cluster_file(path);
  std::filesystem::remove(path);
  if (!file.ok()) {
    if (file.message().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (file->nodes.size() > 10'000) return 0;  // a pool file makes many nodes of one line
  const auto cluster = kube::build_cluster(*file, nullptr, 1);
  if (!cluster.ok() || !(*cluster)->check().ok()) std::abort();
  return 0;
}
