#include "scheduler/extender/gang_feed.h"
#include "scheduler/extender/handlers.h"

namespace mortise::extender {

constexpr std::string_view kElsewhere = "GangElsewhere: the gang's place for this member is on another node";

/// True: it was about a member of a gang, and is answered for the gang as a whole.
bool Handlers::filter_gang(const PodQuestion& question, Asked& asked, FilterAnswer& answer, std::string& reason) {
  if (gangs_ == nullptr) return false;
  const Result<bool> member = gang_feed_->see(question.object);
  if (member.ok() && !*member) return false;
  GangAnswer where{GangAnswer::Kind::kNever, {}, {}};
  if (member.ok()) {
    remember(question);
    where = gangs_->ask(question.pod.uid, asked.known);
  } else {
    where.reason = "GangInvalid: " + member.message();
  }
  const bool placed = where.kind == GangAnswer::Kind::kPlace;
  answer.outcome = placed ? Outcome::kPlaced : Outcome::kWaits;
  answer.refused = where.refused;
  reason = placed ? std::string(kElsewhere) : answer_text(where.reason);
  const std::string node = placed ? cluster_.node_name(where.node) : std::string();
  for (NodeVerdict& verdict : asked.nodes) {
    if (placed && verdict.name == node) continue;
    verdict.verdict = where.kind == GangAnswer::Kind::kNever ? Verdict::kUnresolvable : Verdict::kFailed;
    verdict.reason = kGangReason;
  }
  return true;
}

void Handlers::tick() {
  if (gangs_ == nullptr) return drop_expired();
  gangs_->tick();
  while (gangs_->next_kick()) {  // nobody is there to be woken
  }
}

/// Takes the nodes that are kept for a gang out of the candidates.
std::vector<std::uint32_t> Handlers::take_out_kept(const PodQuestion& question, Asked& asked) const {
  std::vector<std::uint32_t> kept;
  if (gangs_ == nullptr || !gangs_->keeps_nodes()) return kept;
  std::size_t left = 0;
  for (std::size_t i = 0; i < asked.known.size(); ++i) {
    if (gangs_->kept_from(asked.known[i], question.pod.uid, question.pod.priority)) {
      kept.push_back(asked.at[i]);
    } else {
      asked.known[left] = asked.known[i];
      asked.at[left++] = asked.at[i];
    }
  }
  asked.known.resize(left);
  asked.at.resize(left);
  return kept;
}

}  // namespace mortise::extender
