#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "scheduler/topology/graph.h"
#include "scheduler/topology/machine_json.h"
#include "sim/files.h"
#include "sim/topo_best.h"
#include "sim/topo_input.h"
#include "sim/topo_report.h"
#include "sim/topo_svg.h"
#include "sim/verbs.h"

namespace mortise::sim {

namespace {

struct TopoOptions {
  TopoSource source;
  BestOptions best;
  std::string draw;
  bool json = false;
  bool annotate = false;
};

Status draw(const TopoOptions& options, const topology::NodeGraph& graph) {
  const std::string inputs[] = {options.source.matrix, options.source.node};
  if (const Status status = check_output(options.draw, inputs); !status) return status;
  return write_file(options.draw, [&](std::ostream& out) {
    out << topo_svg(graph);
    return ok_status();
  });
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
}

Result<int> run_topo(const TopoOptions& options) {
  const bool asked = !options.best.counts.empty();
  if (options.json && options.annotate) return Error{"--json and --annotate exclude each other"};
  if (asked && options.annotate) return Error{"--best and --annotate exclude each other"};
  const auto reading = load_topology(options.source);
  if (!reading) return reading.error();
  print_notes(reading->notes);
  const auto graph = topology::NodeGraph::build(reading->machine);
  if (!graph) return graph.error();
  std::optional<BestAnswer> best;
  if (asked) {
    auto found = find_best(**graph, options.best);
    if (!found) return found.error();
    best = *std::move(found);
  }
  if (best) print_notes(best->notes);
  if (!options.draw.empty()) {
    if (const Status status = draw(options, **graph); !status) return status.error();
  }
  const Status printed = print(options.annotate ? topology::to_json_text((*graph)->machine()) + "\n"
                               : options.json   ? topo_json(**graph, best)
                               : best           ? best_text(**graph, *best)
                                                : topo_text(**graph));
  if (!printed) return printed.error();
  const auto is_missing = [](const BestSet& set) { return set.chosen.gpus == 0; };
  return best && std::any_of(best->sets.begin(), best->sets.end(), is_missing) ? kExitNo : kExitDone;
}

std::string objectives() {
  std::string names;
  for (const topology::ObjectiveInfo& info : topology::objective_table()) {
    names.append(names.empty() ? "" : ", ").append(info.name);
  }
  return names;
}

}  // namespace

VerbRun add_topo(CLI::App& app) {
  const auto options = std::make_shared<TopoOptions>();
  TopoSource& source = options->source;
  app.add_option("--matrix", source.matrix, "Output of nvidia-smi topo -m")->type_name("FILE");
  app.add_option("--machine", source.machine, "Machine of the catalogue")->type_name("NAME");
  app.add_option("--node", source.node,
                 "A Node and its NodeResourceTopology (JSON, YAML), hwloc XML, or any other form of a topology")
      ->type_name("FILE");
  app.add_option("--synthetic", source.synthetic, "The machine itself, like \"numa:2 gpu:4 nvswitch:1\"")
      ->type_name("TEXT");
  app.add_option("--name", source.name, "The node, where the file has several")->type_name("NODE");
  app.add_option("--gpu", source.gpu, "Model of the GPUs, where the source names none")->type_name("MODEL");
  app.add_option("--catalogue", source.catalogue, "Folder of the machine catalogue")->type_name("DIR");
  const auto best = app.add_option("--best", options->best.counts, "The best set of K GPUs, for one or more K")
                        ->type_name("K,...")
                        ->allow_extra_args(false);
  app.add_option("--free", options->best.free, "GPUs that are free, as nvidia-smi counts them; default: all")
      ->type_name("I,...")
      ->allow_extra_args(false)
      ->needs(best);
  app.add_option("--objective", options->best.objective, "What the best set is: " + objectives())
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(best);
  app.add_option("--draw", options->draw, "Draw the machine as SVG")
      ->type_name("FILE")
      ->check([](const std::string& file) {
        return file.empty() ? "the name of a file must not be empty" : std::string();
      });
  app.add_flag("--json", options->json, "One JSON document on stdout");
  app.add_flag("--annotate", options->annotate, "Print the value for the node annotation mortise.dev/topology");
  return [options]() -> Result<int> { return run_topo(*options); };
}

}  // namespace mortise::sim
