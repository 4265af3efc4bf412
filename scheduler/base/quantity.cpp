#include "scheduler/base/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include "scheduler/base/quote.h"

namespace mortise {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr Wide kNano = 1'000'000'000;

/// What a number is multiplied with: 10^decimal * 2^binary.
struct Suffix {
  std::string_view text;
  std::int32_t decimal;
  std::uint32_t binary;
};

constexpr std::array<Suffix, 16> kSuffixes = {{{"", 0, 0},
                                               {"n", -9, 0},
                                               {"u", -6, 0},
                                               {"m", -3, 0},
                                               {"k", 3, 0},
                                               {"M", 6, 0},
                                               {"G", 9, 0},
                                               {"T", 12, 0},
                                               {"P", 15, 0},
                                               {"E", 18, 0},
                                               {"Ki", 0, 10},
                                               {"Mi", 0, 20},
                                               {"Gi", 0, 30},
                                               {"Ti", 0, 40},
                                               {"Pi", 0, 50},
                                               {"Ei", 0, 60}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

std::optional<Suffix> read_suffix(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.text == text) return suffix;
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  std::string_view digits = text.substr(1);
  if (digits[0] == '+') digits.remove_prefix(1);
  if (digits.empty() || (digits[0] == '-' && text[1] == '+')) return std::nullopt;
  std::int32_t exponent = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (problem != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return Suffix{text, exponent, 0};
}

/// The whole part of digits with the point after `point` of them (zeros follow when there are fewer digits);
/// nothing when it is beyond kMax.
std::optional<Wide> whole_part(std::string_view digits, std::int64_t point) {
  Wide value = 0;
  for (std::int64_t i = 0; i < point; ++i) {
    const bool given = i < static_cast<std::int64_t>(digits.size());
    value = value * 10 + (given ? digits[static_cast<std::size_t>(i)] - '0' : 0);
    if (value > kMax) return std::nullopt;
  }
  return value;
}

/// 0.DIGITS * factor, rounded up. Works from the last digit on: the whole part of (a + x) / 10 needs only the whole
/// part of x when a is whole, and whether anything was cut off decides the rounding.
Wide fraction_part(std::string_view digits, Wide factor) {
  Wide value = 0;
  bool cut = false;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    const Wide sum = (*digit - '0') * factor + value;
    cut = cut || sum % 10 != 0;
    value = sum / 10;
  }
  return value + (cut ? 1 : 0);
}

/// |quantity| in billionths, rounded up; nothing when beyond kMax whole units.
std::optional<Wide> nano_amount(std::string digits, std::int64_t point, std::uint32_t binary) {
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  point -= static_cast<std::int64_t>(zeros);
  if (digits.empty()) return Wide{0};

  const Wide factor = kNano << binary;  // below 2^90
  const std::optional<Wide> whole = whole_part(digits, point);
  if (!whole || *whole > kMax * kNano / factor) return std::nullopt;
  constexpr std::int64_t kVanishing = 40;  // 10^-40 of the largest factor is less than a billionth
  Wide fraction = 1;
  if (point >= 0) {
    fraction = fraction_part(std::string_view(digits).substr(std::min(digits.size(), static_cast<std::size_t>(point))),
                             factor);
  } else if (point > -kVanishing) {
    fraction = fraction_part(std::string(static_cast<std::size_t>(-point), '0') + digits, factor);
  }
  const Wide nano = *whole * factor + fraction;
  if (nano > kMax * kNano) return std::nullopt;
  return nano;
}

Wide divide_away_from_zero(Wide value, Wide by) {
  const Wide quotient = value / by;
  if (value % by == 0) return quotient;
  return value > 0 ? quotient + 1 : quotient - 1;
}

Error refused(std::string_view text, std::string_view why) {
  return Error{"invalid quantity " + quote(text) + ": " + std::string(why)};
}

}  // namespace

Result<Quantity> Quantity::parse(std::string_view text) {
  std::string_view rest = text;
  const bool minus = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);

  const std::size_t before = count_digits(rest);
  std::string digits(rest.substr(0, before));
  rest.remove_prefix(before);
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    const std::size_t after = count_digits(rest);
    digits += rest.substr(0, after);
    rest.remove_prefix(after);
  }
  if (digits.empty()) return refused(text, "not a number with an optional suffix, like 4, 0.5, 500m or 16Gi");
  const std::optional<Suffix> suffix = read_suffix(rest);
  if (!suffix) {
    return refused(text, "unknown suffix; known: n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent like e3");
  }

  const std::int64_t point = static_cast<std::int64_t>(before) + suffix->decimal;
  const std::optional<Wide> nano = nano_amount(std::move(digits), point, suffix->binary);
  if (!nano) return refused(text, "too large; the largest is 9223372036854775807");
  return Quantity(minus ? -*nano : *nano);
}

Quantity Quantity::from_whole(std::int64_t value) {
  return Quantity(value * kNano);
}

Result<std::int64_t> Quantity::whole() const {
  if (nano_ % kNano != 0) return Error{"not a whole number"};
  return static_cast<std::int64_t>(nano_ / kNano);
}

std::int64_t Quantity::rounded_up() const {
  return static_cast<std::int64_t>(divide_away_from_zero(nano_, kNano));
}

std::int64_t Quantity::milli_rounded_up() const {
  const Wide milli = divide_away_from_zero(nano_, kNano / 1000);
  return static_cast<std::int64_t>(std::clamp<Wide>(milli, std::numeric_limits<std::int64_t>::min(), kMax));
}

}  // namespace mortise
