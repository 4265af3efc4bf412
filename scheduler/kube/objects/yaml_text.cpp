#include "scheduler/kube/objects/yaml_text.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "scheduler/base/quote.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

json plain_scalar(const std::string& text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (!text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) {
    json number = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (number.is_number()) return number;
  }
  return text;
}

/// Builds the JSON value of one document. Mistakes are thrown as the parser throws its own.
class JsonBuilder final : public YAML::EventHandler {
 public:
  json take() {
    open_.clear();
    return std::exchange(document_, nullptr);
  }
  int line() const { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // At a stray "," or "]" the parser reports one empty document after another and never moves on.
    if (mark.pos <= last_start_) throw YAML::ParserException(mark, "unexpected text");
    last_start_ = mark.pos;
    line_ = 0;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, nullptr); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YAML::ParserException(mark, "aliases (*name) are not read; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    if (!is_utf8(value)) throw YAML::ParserException(mark, "not UTF-8: " + quote(value));
    if (key_expected()) {
      start_member(mark, value);
    } else {
      add(mark, tag == "?" ? plain_scalar(value) : json(value));
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, json::object());
  }
  void OnMapEnd() override { close(); }

 private:
  struct Collection {
    json value;
    std::string key;  ///< of the member being read
    bool has_key = false;
  };

  bool key_expected() const { return !open_.empty() && open_.back().value.is_object() && !open_.back().has_key; }

  void start_member(const YAML::Mark& mark, const std::string& key) {
    if (key == "<<") throw YAML::ParserException(mark, "merge keys (<<) are not read; write the members out");
    if (open_.back().value.contains(key)) throw YAML::ParserException(mark, "key " + quote(key) + " appears twice");
    open_.back().key = key;
    open_.back().has_key = true;
  }

  void note_start(const YAML::Mark& mark) {
    if (line_ == 0) line_ = mark.line + 1;
  }

  void open(const YAML::Mark& mark, json empty) {
    note_start(mark);
    if (key_expected()) throw YAML::ParserException(mark, "a key must be plain text");
    open_.push_back({std::move(empty), {}, false});
  }

  void close() {
    json value = std::move(open_.back().value);
    open_.pop_back();
    put(std::move(value));
  }

  void add(const YAML::Mark& mark, json value) {
    note_start(mark);
    if (key_expected()) throw YAML::ParserException(mark, "a key must be plain text");
    put(std::move(value));
  }

  void put(json value) {
    if (open_.empty()) {
      document_ = std::move(value);
      return;
    }
    Collection& parent = open_.back();
    if (parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else {
      parent.value[parent.key] = std::move(value);
      parent.has_key = false;
    }
  }

  std::vector<Collection> open_;
  json document_;
  int line_ = 0;
  int last_start_ = -1;
};

}  // namespace

std::string yaml_mistake(const YAML::Exception& mistake) {
  if (const auto* deep = dynamic_cast<const YAML::DeepRecursion*>(&mistake)) {
    return "nested deeper than " + std::to_string(deep->depth() - 1) + " levels";
  }
  return "not valid YAML: " + one_line(mistake.msg);
}

Status read_yaml_text(const std::string& text, std::string_view file, const DocumentSink& use) {
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    JsonBuilder builder;
    while (parser.HandleNextDocument(builder)) {
      const json document = builder.take();
      if (const Status used = use(document, builder.line()); !used) return used;
    }
  } catch (const YAML::Exception& mistake) {
    return Error{std::string(file) + ":" + std::to_string(mistake.mark.line + 1) + ": " + yaml_mistake(mistake)};
  }
  return ok_status();
}

}  // namespace mortise::kube
