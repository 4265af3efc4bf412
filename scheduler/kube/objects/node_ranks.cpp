#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/quote.h"
#include "scheduler/base/rng.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/kube/objects/text_file.h"

namespace mortise::kube {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> all;
  while (true) {
    const std::size_t start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return all;
    line.remove_prefix(start);
    all.push_back(line.substr(0, line.find_first_of(kBlanks)));
    line.remove_prefix(all.back().size());
  }
}

Status add_rank(std::string_view line, NodeRanks& ranks) {
  const std::vector<std::string_view> parts = words(line);
  if (parts.empty()) return ok_status();
  std::uint64_t rank = 0;
  const bool two = parts.size() == 2;
  const char* end = two ? parts[1].data() + parts[1].size() : nullptr;
  const auto read = two ? std::from_chars(parts[1].data(), end, rank) : std::from_chars_result{nullptr, {}};
  if (!two || read.ec != std::errc{} || read.ptr != end) {
    return Error{quote(line) + " is not a node name and its rank (a whole number, 0 or more)"};
  }
  if (!ranks.emplace(parts[0], rank).second) {
    return Error{"node " + quote(parts[0]) + " appears twice; each name may appear once"};
  }
  return ok_status();
}

}  // namespace

Result<NodeRanks> load_node_ranks(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  NodeRanks ranks;
  std::string_view rest = *text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::string_view content = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), content.size() + 1));
    if (const Status added = add_rank(content, ranks); !added) {
      return Error{path + ":" + std::to_string(line) + ": " + added.message()};
    }
  }
  if (ranks.empty()) return Error{path + ": no node ranks in the file; each line is a node name and its rank"};
  return ranks;
}

std::uint64_t seeded_rank(std::uint64_t seed, std::string_view node_name) {
  return mix64(mix64(seed) ^ hash_text(node_name));
}

}  // namespace mortise::kube
