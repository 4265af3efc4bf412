#include "sim/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"
#include "sim/run_store.h"

namespace mortise::sim {

namespace {

struct Job {
  const TraceInput* trace;
  const std::string* policy;
  std::uint64_t seed;
};

std::vector<Job> jobs_of(const CompareSpec& spec) {
  std::vector<Job> jobs;
  std::uint64_t number = 0;
  for (const TraceInput& trace : spec.traces) {
    for (const std::string& policy : spec.policies) {
      for (const std::uint64_t seed : spec.seeds) {
        if (number++ % spec.shard.count == spec.shard.index - 1) jobs.push_back({&trace, &policy, seed});
      }
    }
  }
  return jobs;
}

/// Runs jobs on several threads. Jobs are claimed in order, so the first error by order is the same every time.
class Matrix {
 public:
  Matrix(const CompareSpec& spec, const CompareHooks& hooks)
      : spec_(spec), hooks_(hooks), jobs_(jobs_of(spec)), runs_(jobs_.size()), errors_(jobs_.size()) {
    if (!spec.out_dir.empty()) store_.emplace(spec.out_dir);
  }

  Result<std::vector<ReplayResult>> run() {
    if (store_) {
      if (const Status status = store_->open(); !status) return status.error();
    }
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(spec_.threads, jobs_.size()); ++i) threads.emplace_back([this] { work(); });
    work();
    threads.clear();  // waits for all of them
    for (const auto& error : errors_) {
      if (error) return *error;
    }
    const auto finished = std::count_if(runs_.begin(), runs_.end(), [](const auto& run) { return run.has_value(); });
    if (static_cast<std::size_t>(finished) < jobs_.size()) {
      return Error{fmt::format("interrupted after {} of {} runs", finished, jobs_.size())};
    }
    std::vector<ReplayResult> results;
    results.reserve(runs_.size());
    for (auto& run : runs_) results.push_back(*std::move(run));
    return results;
  }

 private:
  void work() {
    while (!failed_ && !(hooks_.stop != nullptr && *hooks_.stop)) {
      const std::size_t index = next_++;
      if (index >= jobs_.size()) return;
      Result<ReplayResult> result = try_job(jobs_[index]);
      if (result) {
        runs_[index] = *std::move(result);
        if (hooks_.on_run_done) hooks_.on_run_done();
      } else {
        errors_[index] = result.error();
        failed_ = true;
      }
    }
  }

  /// An exception must not end the thread: the program would end with it.
  Result<ReplayResult> try_job(const Job& job) try { return run_job(job); } catch (const std::bad_alloc&) {
    return Error{"out of memory; allowed: fewer --threads"};
  }

  Result<ReplayResult> run_job(const Job& job) {
    const std::string& trace = job.trace->workload.trace().name;
    std::string digest;
    if (store_) {
      digest = inputs_digest(spec_.cluster, *job.trace, spec_.arrival, *job.policy, job.seed);
      RunStore::Found found = store_->find(trace, *job.policy, job.seed, digest);
      if (found.run) return *std::move(found.run);
      if (!found.note.empty() && hooks_.on_note) hooks_.on_note(found.note + "; run again");
    }
    const ReplaySpec replay_spec{
        spec_.cluster.file, spec_.cluster.rank_table(), job.trace->workload, spec_.arrival, *job.policy,
        job.seed,           spec_.cluster.levels};
    Result<ReplayResult> result = replay(replay_spec);
    if (!result) return Error{fmt::format("trace {}, seed {}: {}", trace, job.seed, result.message())};
    if (store_) {
      if (const Status status = store_->save(*result, digest); !status) return status.error();
    }
    return result;
  }

  const CompareSpec& spec_;
  const CompareHooks& hooks_;
  std::vector<Job> jobs_;
  std::vector<std::optional<ReplayResult>> runs_;
  std::vector<std::optional<Error>> errors_;
  std::optional<RunStore> store_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
};

/// Collects one measure over the seeds.
class SpreadBuilder {
 public:
  void add(const std::optional<double>& value) {
    if (value) values_.push_back(*value);
  }

  std::optional<Spread> spread() const {
    if (values_.empty()) return std::nullopt;
    double sum = 0;
    for (const double value : values_) sum += value;
    const auto [min, max] = std::minmax_element(values_.begin(), values_.end());
    const auto count = static_cast<std::int64_t>(values_.size());
    return Spread{sum / static_cast<double>(count), *min, *max, count};
  }

 private:
  std::vector<double> values_;
};

struct MomentBuilder {
  SpreadBuilder allocation;
  SpreadBuilder frag_of_idle;
  SpreadBuilder frag_of_capacity;

  Moment moment() const { return {allocation.spread(), frag_of_idle.spread(), frag_of_capacity.spread()}; }
};

PolicySummary summarise_one(std::vector<ReplayResult>::const_iterator first,
                            std::vector<ReplayResult>::const_iterator last) {
  PolicySummary summary;
  summary.trace = first->trace;
  summary.policy = first->policy;
  summary.seeds = last - first;
  for (const std::int64_t arrived_pct : kMoments) {
    MomentBuilder builder;
    for (auto run = first; run != last; ++run) {
      const CurveRow row = curve_at(run->curve, arrived_pct);
      builder.allocation.add(row.allocation_pct);
      builder.frag_of_idle.add(row.frag_pct_of_idle);
      builder.frag_of_capacity.add(row.frag_pct_of_capacity);
    }
    summary.at.push_back(builder.moment());
  }
  MomentBuilder builder;
  for (auto run = first; run != last; ++run) {
    builder.allocation.add(run->allocation_pct);
    builder.frag_of_idle.add(run->frag_pct_of_idle);
    builder.frag_of_capacity.add(run->frag_pct_of_capacity);
  }
  summary.final = builder.moment();
  SpreadBuilder gangs;
  for (auto run = first; run != last; ++run) {
    if (!run->gangs || run->gangs->arrived == 0) continue;
    gangs.add(100.0 * static_cast<double>(run->gangs->placed) / static_cast<double>(run->gangs->arrived));
  }
  summary.gangs_placed_pct = gangs.spread();
  return summary;
}

Status check_traces(const CompareSpec& spec) {
  for (std::size_t i = 0; i < spec.traces.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const std::string& name = spec.traces[i].workload.trace().name;
      if (spec.traces[j].workload.trace().name != name) continue;
      return Error{fmt::format("two traces are named '{}'; allowed: each name once", name)};
    }
  }
  return ok_status();
}

}  // namespace

Status check_policies(const std::vector<std::string>& policies) {
  for (const std::string& policy : policies) {
    const auto made = placement::make_policy(policy, placement::TypicalPods());
    if (!made) return made.error();
  }
  return ok_status();
}

std::size_t run_count(const CompareSpec& spec) {
  return jobs_of(spec).size();
}

Result<Comparison> compare(const CompareSpec& spec, const CompareHooks& hooks) {
  if (const Status status = check_traces(spec); !status) return status.error();
  auto runs = Matrix(spec, hooks).run();
  if (!runs) return runs.error();
  Comparison comparison;
  comparison.arrival = spec.arrival.label;
  comparison.runs = *std::move(runs);
  comparison.summaries = summarise(comparison.runs);
  return comparison;
}

std::vector<PolicySummary> summarise(const std::vector<ReplayResult>& runs) {
  std::vector<PolicySummary> summaries;
  for (auto first = runs.begin(); first != runs.end();) {
    const auto last = std::find_if(first, runs.end(), [&](const ReplayResult& run) {
      return run.trace != first->trace || run.policy != first->policy;
    });
    summaries.push_back(summarise_one(first, last));
    first = last;
  }
  return summaries;
}

}  // namespace mortise::sim
