// Compares Quantity with exact fractions of arbitrary size, worked out from the parts a text is made of.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "scheduler/base/quantity.h"

namespace mortise {
namespace {

using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;

cpp_int power(int base, int exponent) {
  return boost::multiprecision::pow(cpp_int(base), static_cast<unsigned>(exponent));
}

cpp_rational power_of_ten(int exponent) {
  return exponent >= 0 ? cpp_rational(power(10, exponent)) : cpp_rational(cpp_int(1), power(10, -exponent));
}

cpp_int away_from_zero(const cpp_rational& value) {
  const cpp_int top = numerator(value);
  const cpp_int bottom = denominator(value);
  cpp_int quotient = top / bottom;  // towards zero
  if (top % bottom != 0) quotient += top > 0 ? 1 : -1;
  return quotient;
}

std::string digits(int most) {
  const int count = *rc::gen::inRange(0, most + 1);
  return *rc::gen::container<std::string>(static_cast<std::size_t>(count),
                                          rc::gen::inRange('0', static_cast<char>('9' + 1)));
}

std::pair<std::string, cpp_rational> suffix() {
  static const std::array<std::pair<const char*, cpp_rational>, 16> kKnown = {{{"", 1},
                                                                               {"n", power_of_ten(-9)},
                                                                               {"u", power_of_ten(-6)},
                                                                               {"m", power_of_ten(-3)},
                                                                               {"k", power_of_ten(3)},
                                                                               {"M", power_of_ten(6)},
                                                                               {"G", power_of_ten(9)},
                                                                               {"T", power_of_ten(12)},
                                                                               {"P", power_of_ten(15)},
                                                                               {"E", power_of_ten(18)},
                                                                               {"Ki", cpp_rational(power(2, 10))},
                                                                               {"Mi", cpp_rational(power(2, 20))},
                                                                               {"Gi", cpp_rational(power(2, 30))},
                                                                               {"Ti", cpp_rational(power(2, 40))},
                                                                               {"Pi", cpp_rational(power(2, 50))},
                                                                               {"Ei", cpp_rational(power(2, 60))}}};
  const auto which = *rc::gen::inRange<std::size_t>(0, kKnown.size() + 4);
  if (which < kKnown.size()) return kKnown[which];
  const int exponent = *rc::gen::inRange(-60, 30);
  const std::string sign = exponent < 0 ? "-" : *rc::gen::element<std::string>("", "+");
  const std::string letter = *rc::gen::element<std::string>("e", "E");
  return {letter + sign + std::to_string(std::abs(exponent)), power_of_ten(exponent)};
}

RC_GTEST_PROP(QuantityProperty, AgreesWithExactFractions, ()) {
  const std::string whole = digits(22);
  const std::string fraction = digits(whole.empty() ? 30 : 45);
  RC_PRE(!whole.empty() || !fraction.empty());
  const bool minus = *rc::gen::arbitrary<bool>();
  const bool point = !fraction.empty() || *rc::gen::arbitrary<bool>();
  const auto [spelled, factor] = suffix();
  const std::string text = (minus ? "-" : "") + whole + (point ? "." : "") + fraction + spelled;

  // A leading zero would make Boost read the digits as octal.
  const std::string all = whole + fraction;
  const std::size_t start = all.find_first_not_of('0');
  const cpp_int value(start == std::string::npos ? std::string("0") : all.substr(start));
  const cpp_rational exact =
      cpp_rational(minus ? cpp_int(-value) : value) * power_of_ten(-static_cast<int>(fraction.size())) * factor;
  const cpp_int nano = away_from_zero(exact * power_of_ten(9));
  const cpp_int limit = cpp_int(std::numeric_limits<std::int64_t>::max()) * power(10, 9);

  const Result<Quantity> parsed = Quantity::parse(text);
  RC_TAG(parsed.ok() ? "accepted" : "too large");
  RC_ASSERT(parsed.ok() == (abs(nano) <= limit));
  if (!parsed.ok()) return;
  RC_ASSERT(cpp_int(parsed->rounded_up()) == away_from_zero(cpp_rational(nano, power(10, 9))));
  RC_ASSERT(parsed->whole().ok() == (nano % power(10, 9) == 0));
  RC_ASSERT(parsed->negative() == (nano < 0));
  const cpp_int milli = away_from_zero(cpp_rational(nano, power(10, 6)));
  if (abs(milli) <= std::numeric_limits<std::int64_t>::max()) RC_ASSERT(cpp_int(parsed->milli_rounded_up()) == milli);
}

RC_GTEST_PROP(QuantityProperty, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  const Result<Quantity> parsed = Quantity::parse(bytes);
  if (!parsed.ok()) RC_ASSERT(!parsed.message().empty());
}

}  // namespace
}  // namespace mortise
