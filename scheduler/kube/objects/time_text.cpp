#include "scheduler/kube/objects/time_text.h"

#include <chrono>

#include "scheduler/base/quote.h"

namespace mortise::kube {
namespace {

/// Takes a number of so many digits off the front; -1: there is none.
int take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return -1;
  int number = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return number;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// As many nanoseconds as the digits after the point say; -1: no digits.
Nanoseconds take_fraction(std::string_view& text) {
  Nanoseconds fraction = 0;
  Nanoseconds unit = kSecond / 10;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    fraction += (text[digits] - '0') * unit;
    unit /= 10;
  }
  text.remove_prefix(digits);
  return digits == 0 ? -1 : fraction;
}

/// What the local time is ahead of UTC; `ok` is false for anything but Z or an offset.
Nanoseconds take_offset(std::string_view& text, bool& ok) {
  if (take(text, 'Z') || take(text, 'z')) return 0;
  const int sign = take(text, '-') ? -1 : 1;
  if (sign > 0 && !take(text, '+')) ok = false;
  const int hours = take_number(text, 2);
  ok = take(text, ':') && ok;
  const int minutes = take_number(text, 2);
  ok = ok && hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
  return sign * (hours * 3600 + minutes * 60) * kSecond;
}

}  // namespace

Result<Nanoseconds> parse_time(std::string_view text) {
  std::string_view rest = text;
  const int year = take_number(rest, 4);
  bool ok = take(rest, '-');
  const int month = take_number(rest, 2);
  ok = take(rest, '-') && ok;
  const int day = take_number(rest, 2);
  ok = (take(rest, 'T') || take(rest, 't')) && ok;
  const int hour = take_number(rest, 2);
  ok = take(rest, ':') && ok;
  const int minute = take_number(rest, 2);
  ok = take(rest, ':') && ok;
  const int second = take_number(rest, 2);
  const Nanoseconds fraction = take(rest, '.') ? take_fraction(rest) : 0;
  const Nanoseconds offset = take_offset(rest, ok);
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  ok = ok && rest.empty() && year >= 1970 && year <= 2261 && month >= 1 && day >= 1 && date.ok() && hour >= 0 &&
       hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60 && fraction >= 0;
  if (!ok) return Error{quote(text) + " is no time; allowed: as in 2025-01-31T23:59:59Z, years 1970 to 2261"};
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return (days * 86400 + hour * 3600 + minute * 60 + second) * kSecond + fraction - offset;
}

}  // namespace mortise::kube
