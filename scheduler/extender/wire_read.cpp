#include <optional>
#include <utility>

#include "scheduler/extender/wire.h"
#include "scheduler/extender/wire_reader.h"

namespace mortise::extender {
namespace {

using Value = JsonReader::Value;

/// The body of filter and prioritize.
class ArgsReader {
 public:
  explicit ArgsReader(JsonReader& json) : json_(json) {}

  bool read(ExtenderArgs& out);

 private:
  bool node_names(Value& value);
  bool nodes(Value& value);
  bool node_items(Value& value);
  bool node_item(Value& value);

  JsonReader& json_;
  // One list per field, so that a repeated key can replace what the first one gave.
  std::optional<std::vector<AskedNode>> names_;
  std::optional<std::vector<AskedNode>> items_;
};

bool ArgsReader::node_names(Value& value) {
  const std::string_view text = json_.token(value);
  names_.reset();
  if (text == "null") return true;
  if (!text.starts_with('[')) return json_.fail("NodeNames must be an array of strings");
  names_.emplace();
  return json_.each_element(value, [&](Value& item) {
    return json_.string_or_null(item, "each entry of NodeNames", names_->emplace_back().name);
  });
}

bool ArgsReader::nodes(Value& value) {
  const std::string_view text = json_.token(value);
  items_.reset();
  if (text == "null") return true;
  if (!text.starts_with('{')) return json_.fail("Nodes must be an object with items");
  items_.emplace();
  return json_.each_field(value, [&](std::string_view key, Value& field) {
    return same_key(key, "items") ? node_items(field) : json_.pass(field);
  });
}

bool ArgsReader::node_items(Value& value) {
  const std::string_view text = json_.token(value);
  items_->clear();
  if (text == "null") return true;
  if (!text.starts_with('[')) return json_.fail("Nodes.items must be an array of Node objects");
  return json_.each_element(value, [&](Value& item) { return node_item(item); });
}

bool ArgsReader::node_item(Value& value) {
  const std::string_view text = json_.token(value);
  AskedNode& node = items_->emplace_back();
  if (text == "null") return true;
  if (!text.starts_with('{')) return json_.fail("each of Nodes.items must be a Node object");
  const char* begin = text.data();
  const bool passed = json_.each_field(value, [&](std::string_view key, Value& field) {
    const std::string_view field_text = json_.token(field);
    if (!same_key(key, "metadata") || field_text == "null") return json_.pass(field);
    if (!field_text.starts_with('{')) return json_.fail("metadata of a Node must be an object");
    return json_.each_field(field, [&](std::string_view meta_key, Value& meta) {
      return same_key(meta_key, "name") ? json_.string_or_null(meta, "the name of a Node", node.name)
                                        : json_.pass(meta);
    });
  });
  return passed && json_.slice_from(begin, node.object);
}

bool ArgsReader::read(ExtenderArgs& out) {
  const bool passed = json_.each_field([&](std::string_view key, Value& value) {
    if (same_key(key, "Pod")) return json_.object_or_null(value, "Pod", out.pod);
    if (same_key(key, "NodeNames")) return node_names(value);
    if (same_key(key, "Nodes")) return nodes(value);
    return json_.pass(value);
  });
  if (!passed) return false;
  out.has_names = names_.has_value();
  out.has_nodes = items_.has_value();
  if (names_) out.nodes = std::move(*names_);
  if (items_ && out.nodes.empty()) {
    out.nodes = std::move(*items_);
  } else if (items_) {
    out.nodes.insert(out.nodes.end(), items_->begin(), items_->end());
  }
  out.unescaped = json_.take_kept();
  return true;
}

bool read_binding(JsonReader& json, BindingArgs& out) {
  return json.each_field([&](std::string_view key, Value& value) {
    if (same_key(key, "PodName")) return json.copy_string(value, "PodName", out.pod_name);
    if (same_key(key, "PodNamespace")) return json.copy_string(value, "PodNamespace", out.pod_namespace);
    if (same_key(key, "PodUID")) return json.copy_string(value, "PodUID", out.pod_uid);
    if (same_key(key, "Node")) return json.copy_string(value, "Node", out.node);
    return json.pass(value);
  });
}

}  // namespace

Result<ExtenderArgs> read_extender_args(std::string& body) {
  ExtenderArgs args;
  const Status read = read_document(body, [&](JsonReader& json) {
    args = {};
    return ArgsReader(json).read(args);
  });
  if (!read.ok()) return read.error();
  return args;
}

Result<BindingArgs> read_binding_args(std::string& body) {
  BindingArgs args;
  const Status read = read_document(body, [&](JsonReader& json) {
    args = {};
    return read_binding(json, args);
  });
  if (!read.ok()) return read.error();
  return args;
}

}  // namespace mortise::extender
