#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/kube/client/watch_event.h"
#include "scheduler/kube/objects/decode.h"

namespace {

using namespace mortise;

constexpr std::size_t kMaxLine = 1 << 16;

std::vector<std::string> split(std::string_view text, std::size_t piece) {
  kube::LineSplitter splitter(kMaxLine);
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  };
  bool going = true;
  for (std::size_t at = 0; going && at < text.size(); at += piece) going = splitter.feed(text.substr(at, piece), keep);
  return lines;
}

void check_message(const std::string& message) {
  if (message.empty() || message.find_first_of("\r\n") != std::string::npos) std::abort();
}

void decode(const std::string& line) {
  const Result<kube::WatchEvent> event = kube::decode_watch_event(line);
  if (!event.ok()) return check_message(event.message());
  if (event->object == nullptr) std::abort();
  if (event->type == kube::WatchEventType::kError) return check_message(event->error_text);
  if (event->name.resource_version.empty()) std::abort();
  if (kube::is_older_version(event->name.resource_version, event->name.resource_version)) std::abort();
  if (event->type == kube::WatchEventType::kBookmark) return;
  if (event->name.name.empty() || event->name.uid.empty()) std::abort();
  if (const auto pod = kube::decode_pod(*event->object); !pod.ok()) check_message(pod.message());
  if (const auto node = kube::decode_node(*event->object); !node.ok()) check_message(node.message());
}

}  // namespace

/// The first byte says in pieces of how many bytes the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> lines = split(text, std::max<std::size_t>(text.size(), 1));
  if (split(text, 1 + data[0]) != lines) std::abort();
  for (const std::string& line : lines) decode(line);
  return 0;
}
