#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "scheduler/extender/cluster_view.h"

namespace mortise::extender {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="15">
<title>Mortise</title>
<style>
:root { color-scheme: light dark; --line: #8884; --used: #3b7dd8; --fragmented: #d8853b; }
body { font: 16px/1.4 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 46rem; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p { margin: .3rem 0; }
.note { opacity: .75; font-size: .9rem; }
.bad { border-left: .3rem solid #c33; padding: .3rem .6rem; margin: .6rem 0; white-space: pre-line; }
.bar { display: flex; height: 1.4rem; border: 1px solid var(--line); border-radius: .3rem; overflow: hidden; }
.bar i { display: block; }
.used, .key-used { background: var(--used); }
.fragmented, .key-fragmented { background: var(--fragmented); }
.key { display: inline-block; width: .8em; height: .8em; border: 1px solid var(--line); margin: 0 .3em 0 .8em; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: .3rem .2rem; border-bottom: 1px solid var(--line); text-align: left; font-weight: normal; }
td { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
a { color: inherit; }
</style>
</head>
<body>
<h1>Mortise</h1>
)";

constexpr std::string_view kFoot =
    R"(<p class="note">As data: <a href="/v1/cluster">/v1/cluster</a>, /v1/nodes/NAME, <a href="/v1/gangs">/v1/gangs</a>,
/v1/explain?namespace=&amp;pod=, <a href="/metrics">/metrics</a>. This page renews itself every 15 s.</p>
</body>
</html>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// 1234567 as 1,234,567.
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3 && digits[at - 4] != '-';) digits.insert(at -= 3, ",");
  return digits;
}

std::string decimal(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

double in_gpus(double milli) {
  return milli / static_cast<double>(kWholeGpu);
}

std::string row(std::string_view what, const std::string& value) {
  return "<tr><th scope=\"row\">" + std::string(what) + "</th><td>" + value + "</td></tr>\n";
}

std::string allocation(const ClusterFigures& figures) {
  const std::string used = decimal(100 * figures.allocation_ratio(), 1);
  const std::string fragmented = decimal(100 * figures.fragmentation_ratio(), 1);
  return "<h2>GPUs</h2>\n<div class=\"bar\" role=\"img\" aria-label=\"" + used + " % used, " + fragmented +
         " % fragmented\"><i class=\"used\" style=\"width:" + used +
         "%\"></i><i class=\"fragmented\" style=\"width:" + fragmented +
         "%\"></i></div>\n<p class=\"note\"><span class=\"key key-used\"></span>used " + used +
         " %<span class=\"key key-fragmented\"></span>fragmented " + fragmented +
         " %<span class=\"key\"></span>free for typical pods</p>\n<table>\n" +
         row("GPUs", grouped(figures.totals.gpus)) +
         row("used", decimal(in_gpus(static_cast<double>(figures.totals.gpu_used)), 1)) +
         row("wholly free", grouped(figures.totals.whole_free_gpus)) +
         row("fragmented: free, but of no use to a typical pod", decimal(in_gpus(figures.fragmentation), 1)) +
         "</table>\n";
}

std::string headroom(const placement::Headroom& headroom) {
  std::string text =
      "<h2>Headroom</h2>\n<p class=\"note\">Pods that would fit now, each size on its own.</p>\n<table>\n";
  for (std::size_t i = 0; i < placement::kHeadroomSizes.size(); ++i) {
    const std::string gpus = std::to_string(placement::kHeadroomSizes[i]);
    text += row("pods of " + gpus + (i == 0 ? " GPU" : " GPUs"), grouped(headroom.pods[i]));
  }
  return text + row("nodes with all GPUs free", grouped(headroom.free_nodes)) + "</table>\n";
}

std::string nodes(const ClusterFigures& figures) {
  return "<h2>Nodes</h2>\n<table>\n" + row("nodes", grouped(figures.totals.nodes)) +
         row("pods", grouped(figures.totals.pods)) + row("cordoned", grouped(figures.cordoned)) +
         row("blocked: what their pods hold is not known", grouped(figures.blocked)) +
         row("topology or kubelet policy not known", grouped(figures.no_topology)) +
         row("kinds of nodes told apart", grouped(figures.states)) + "</table>\n";
}

/// Nothing where there are no gangs.
std::string gangs_part(const ClusterFigures& figures, const std::vector<GangLine>& gangs) {
  std::string states;
  for (int i = 0; i < kGangPhaseCount; ++i) {
    const std::int64_t count = figures.gangs[static_cast<std::size_t>(i)];
    if (count > 0) states += row(gang_phase_name(static_cast<GangPhase>(i)), grouped(count));
  }
  if (states.empty()) return {};
  std::string text = "<h2>Gangs</h2>\n<table>\n" + states + "</table>\n";
  for (const GangLine& gang : gangs) {
    text +=
        "<p>" + escaped(gang.name) + ": " + escaped(gang.state) + "<br><span class=\"note\">" + escaped(gang.members);
    if (!gang.waits_for.empty()) text += "; " + escaped(gang.waits_for);
    text += "</span></p>\n";
  }
  return text;
}

}  // namespace

std::string cluster_page(const ClusterFigures& figures, const std::vector<GangLine>& gangs, std::string_view unready) {
  std::string text(kHead);
  if (unready.empty()) {
    text += "<p>Ready.</p>\n";
  } else {
    text += "<p class=\"bad\">Not ready\n" + escaped(unready) + "</p>\n";
  }
  return text + allocation(figures) + headroom(figures.headroom) + gangs_part(figures, gangs) + nodes(figures) +
         std::string(kFoot);
}

}  // namespace mortise::extender
