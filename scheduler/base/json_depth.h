#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace mortise {

/// JSON of others is at most so deep, for whoever walks or copies a document takes some stack for each level. As deep
/// as Go's encoding/json reads, so that an API server has nothing deeper.
inline constexpr int kMaxNesting = 10'000;

/// Where JSON text first opens one more than `most` levels, in bytes; nothing: nowhere. Does not look at anything else.
std::optional<std::size_t> nested_deeper(std::string_view text, int most = kMaxNesting);

}  // namespace mortise
