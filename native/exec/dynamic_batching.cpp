#include "exec/dynamic_batching.h"

#include <algorithm>
#include <cstring>

#include "exec/batch_heap.h"
#include "exec/batch_policy.h"
#include "exec/batch_signature.h"
#include "exec/stacking.h"
#include "ir/cse.h"

namespace tenfold {
namespace {

constexpr uint32_t NONE = SignaturePartition::NONE;
constexpr std::size_t PREFETCH_DISTANCE = 12; // nodes on the way

// The index of a selector's result among the results of its input; NONE for another node.
uint32_t selected_result(const Node& node) {
    return node.op && !node.op->python ? uint32_t(node.params->axes[0]) : NONE;
}

class BatchAgenda {
  public:
    BatchAgenda(const LinearizedGraph& graph, uint8_t device, OpInterpreter& interpreter,
                BatchCompiler* compiler)
        : graph_(graph), partition_(graph, device, compiler), interpreter_(interpreter),
          compiler_(compiler), states_(graph.nodes.size()) {}

    bool run() {
        if (!is_wide(graph_) || !add_nodes()) return false;
        bool done = compute_all();
        publish_live_out();
        publish_common_subexpressions(graph_);
        return done;
    }

  private:
    bool compute_all() {
        std::size_t num_computed = 0;
        while (num_computed < num_pending_) {
            if (!ready_singles_.empty()) {
                uint32_t position = ready_singles_.back();
                ready_singles_.pop_back();
                if (!compute_single(position)) return false;
                ++num_computed;
                continue;
            }
            Group& group = *active_.top();
            active_.update(group, false);
            std::vector<uint32_t> members = std::exchange(group.ready, {});
            if (!compute_group(group, members)) return false;
            num_computed += members.size();
        }
        return true;
    }

    // The value of a node as a row of its batch's result.
    struct RowRef {
        uint32_t result = NONE, row = 0;
    };
    // Of one node: together, since a large graph does not fit the cache.
    struct alignas(32) NodeState {
        uint32_t depth = 0, num_pending_inputs = 0;
        uint32_t num_pending_readers = 0; // left: readers to come
        uint32_t reader_offset = 0;       // where its own begin in readers_
        uint32_t num_results = 0;
        uint32_t selected = NONE; // see selected_result
        RowRef row_ref;
    };
    struct Group : AgendaEntry {
        std::vector<uint32_t> ready;
        bool batchable = true;
    };
    struct BatchResult {
        Ref<Value> value;
        uint32_t num_pending_rows; // rows that are still to be read
        uint32_t num_live_out = 0; // rows with outside references
        uint32_t num_members;
    };

    const LinearizedNode& entry(uint32_t position) const { return graph_.nodes[position]; }
    const Node& node(uint32_t position) const { return *entry(position).node; }
    bool add_nodes() {
        std::size_t num_batchable = 0;
        for (uint32_t i = 0; i < states_.size(); ++i) {
            graph_.prefetch(i);
            if (!partition_.add(i)) return false;
            states_[i].num_pending_readers = entry(i).num_uses;
            if (!partition_.is_pending(i)) continue;
            states_[i].selected = selected_result(node(i));
            states_[i].num_results =
                states_[i].selected != NONE ? 1 : uint32_t(node(i).inference->results.size());
            states_[i].num_pending_readers += entry(i).live_out;
            ++num_pending_;
            for (uint32_t input : graph_.inputs(entry(i))) {
                states_[i].depth = std::max(states_[i].depth, states_[input].depth);
                if (!partition_.is_pending(input)) continue;
                ++states_[i].num_pending_inputs;
                ++states_[input].reader_offset;
            }
            ++states_[i].depth;
            if (partition_.group(i) == NONE) continue;
            groups_.resize(partition_.num_groups());
            Group& group = groups_[partition_.group(i)];
            ++group.num_live;
            group.sum_depths += states_[i].depth;
            ++num_batchable;
        }
        if (compiler_ && !compiler_->goes_on && !are_enough(graph_, num_batchable, groups_.size()))
            return false;
        uint32_t end = 0;
        for (NodeState& state : states_) end = state.reader_offset += end;
        readers_.resize(end);
        for (auto i = uint32_t(states_.size()); i-- > 0;) {
            if (!partition_.is_pending(i)) continue;
            for (uint32_t input : graph_.inputs(entry(i)))
                if (partition_.is_pending(input)) readers_[--states_[input].reader_offset] = i;
        }
        for (uint32_t i = 0; i < states_.size(); ++i)
            if (partition_.is_pending(i) && states_[i].num_pending_inputs == 0) mark_ready(i);
        return true;
    }

    // Bytes that a member computes and reads alone.
    int64_t own_bytes(uint32_t position) const {
        int64_t bytes = bytes_of(*node(position).type);
        for (uint32_t input : graph_.inputs(entry(position)))
            if (!partition_.is_shared_leaf(input)) bytes += bytes_of(*node(input).type);
        return bytes;
    }

    void mark_ready(uint32_t position) {
        uint32_t group = partition_.group(position);
        if (group == NONE) {
            ready_singles_.push_back(position);
            return;
        }
        groups_[group].ready.push_back(position);
        if (active_.contains(groups_[group])) return;
        groups_[group].listing = ++num_listings_;
        active_.update(groups_[group], true);
    }

    // The value for a node's readers; a row of a batch is created on first use.
    const Ref<Value>& value(uint32_t position) {
        if (entry(position).value) return entry(position).value;
        Ref<Value>& value = interpreter_.value(position);
        const RowRef& row_ref = states_[position].row_ref;
        if (value || row_ref.result == NONE) return value;
        for (std::size_t k = states_[position].num_results; k-- > 0;) {
            Ref<Value> row = row_of(row_ref.result + k, row_ref.row, type_of(position, k));
            row->next = std::move(value);
            value = std::move(row);
        }
        return value;
    }

    Ref<Value> row_of(std::size_t result, uint32_t row, const Ref<Type>& type) const {
        return Value::view_of(*batch_results_[result].value, type, row * bytes_of(*type));
    }

    bool compute_single(uint32_t position) {
        if (compiler_ && compiler_->dry_run) {
            mark_computed(position);
            return true;
        }
        if (states_[position].selected != NONE) {
            select_result(position);
        } else {
            for (uint32_t input : graph_.inputs(entry(position))) value(input);
            if (!interpreter_.compute_node(position)) return false;
        }
        mark_computed(position);
        if (states_[position].num_pending_readers == 0) release_row(position);
        return true;
    }

    // One of the results of its input.
    void select_result(uint32_t position) {
        uint32_t tuple = graph_.inputs(entry(position))[0], index = states_[position].selected;
        RowRef& row_ref = states_[position].row_ref;
        if (states_[tuple].row_ref.result != NONE) {
            row_ref.result = states_[tuple].row_ref.result + index;
            row_ref.row = states_[tuple].row_ref.row;
            ++batch_results_[row_ref.result].num_pending_rows;
            return;
        }
        Ref<Value> result = value(tuple);
        while (index-- > 0) result = result->next;
        interpreter_.value(position) = Value::alias_of(*result); // without those that follow
    }

    // Releases its inputs, and marks readers ready.
    void mark_computed(uint32_t position) {
        const LinearizedNode& current = entry(position);
        if (current.live_out && !(compiler_ && compiler_->dry_run)) keep_live_out(position);
        if (partition_.group(position) != NONE) {
            Group& group = groups_[partition_.group(position)];
            --group.num_live;
            group.sum_depths -= states_[position].depth;
            active_.update(group, active_.contains(group));
        }
        for (uint32_t input : graph_.inputs(current))
            if (--states_[input].num_pending_readers == 0) release_row(input);
        interpreter_.release_inputs(position);
        uint32_t end = position + 1 < states_.size() ? states_[position + 1].reader_offset
                                                     : uint32_t(readers_.size());
        for (uint32_t at = states_[position].reader_offset; at < end; ++at)
            if (--states_[readers_[at]].num_pending_inputs == 0) mark_ready(readers_[at]);
    }

    // Rows become values of their nodes at the end: then the number of live-out rows is known.
    void keep_live_out(uint32_t position) {
        if (states_[position].row_ref.result == NONE) {
            publish(entry(position).node.get(), value(position));
            return;
        }
        live_out_rows_.push_back(position);
        for (std::size_t k = 0; k < states_[position].num_results; ++k)
            ++batch_results_[states_[position].row_ref.result + k].num_live_out;
    }

    void publish_live_out() {
        for (std::span<const uint32_t> remaining = live_out_rows_; !remaining.empty();) {
            uint32_t result = states_[remaining[0]].row_ref.result;
            auto is_other_batch = [&](uint32_t position) {
                return states_[position].row_ref.result != result;
            };
            auto count =
                std::size_t(std::ranges::find_if(remaining, is_other_batch) - remaining.begin());
            publish_rows(remaining.first(count));
            remaining = remaining.subspan(count);
        }
    }

    // All positions have one batch signature.
    void publish_rows(std::span<const uint32_t> positions) {
        std::vector<Ref<Value>> values(positions.size());
        for (std::size_t k = states_[positions[0]].num_results; k-- > 0;) {
            const BatchResult& result = batch_results_[states_[positions[0]].row_ref.result + k];
            // A few live-out rows are copied, so that they do not keep the whole batch alive.
            bool copies = result.num_live_out * BATCHES.sparse_ratio < result.num_members;
            RowViews rows(*result.value, type_of(positions[0], k), positions.size(), copies);
            for (std::size_t i = 0; i < positions.size(); ++i)
                values[i] = rows.row_value(states_[positions[i]].row_ref.row, std::move(values[i]));
        }
        for (std::size_t i = 0; i < positions.size(); ++i) {
            if (i + PREFETCH_DISTANCE < positions.size())
                prefetch_node(entry(positions[i + PREFETCH_DISTANCE]).node.get());
            publish(entry(positions[i]).node.get(), std::move(values[i]));
            if (--states_[positions[i]].num_pending_readers == 0) release_row(positions[i]);
        }
    }

    const Ref<Type>& type_of(uint32_t position, std::size_t k) const {
        const Node& current = node(position);
        return states_[position].num_results == 1 ? current.type : current.inference->results[k];
    }

    // Releases the rows of a dead node.
    void release_row(uint32_t position) {
        const RowRef& row_ref = states_[position].row_ref;
        if (row_ref.result == NONE) return;
        for (std::size_t k = 0; k < states_[position].num_results; ++k)
            if (--batch_results_[row_ref.result + k].num_pending_rows == 0)
                batch_results_[row_ref.result + k].value = nullptr;
    }

    bool compute_group(Group& group, std::span<const uint32_t> members) {
        const Node& first = node(members[0]);
        const int64_t bytes = own_bytes(members[0]);
        std::size_t min_size = min_batch_members(first, bytes);
        std::size_t max_size = std::min(max_batch_members(first, bytes), compiler_->max_members);
        for (std::size_t begin = 0; begin < members.size(); begin += max_size) {
            auto chunk = members.subspan(begin, std::min(max_size, members.size() - begin));
            bool batchable = group.batchable && chunk.size() >= min_size;
            Batch batch{graph_,    chunk,     std::size_t(&group - groups_.data()),
                        begin > 0, batchable, group.num_live >= 2 * chunk.size()};
            if (compiler_->dry_run)
                compiler_->compute(batch, {}, nullptr);
            else if (batchable && compute_batch(batch))
                continue;
            group.batchable &= compiler_->dry_run || chunk.size() < min_size;
            for (std::size_t i = 0; i < chunk.size(); ++i)
                if (!compute_single(chunk[i]) &&
                    !compute_as_batch_of_one(group, chunk.subspan(i, 1)))
                    return false;
        }
        return true;
    }

    // A call that has no plan of its own.
    bool compute_as_batch_of_one(const Group& group, std::span<const uint32_t> member) {
        bool is_call = node(member[0]).op->weight > 1;
        return is_call && compute_batch({graph_, member, std::size_t(&group - groups_.data()),
                                         false, true, false});
    }

    bool compute_batch(const Batch& batch) {
        auto members = batch.positions;
        std::vector<Ref<Value>> results = batch_results(batch);
        if (results.size() != node(members[0]).inference->results.size()) return false;
        auto first = uint32_t(batch_results_.size());
        for (Ref<Value>& result : results)
            batch_results_.push_back(
                {std::move(result), uint32_t(members.size()), 0, uint32_t(members.size())});
        for (std::size_t row = 0; row < members.size(); ++row) {
            states_[members[row]].row_ref.result = first;
            states_[members[row]].row_ref.row = uint32_t(row);
        }
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (i + PREFETCH_DISTANCE < members.size())
                prefetch_for_write(&states_[members[i + PREFETCH_DISTANCE]]);
            mark_computed(members[i]);
            if (states_[members[i]].num_pending_readers == 0) release_row(members[i]);
        }
        return true;
    }

    // The results, by a plan or by Python; none where members are to be computed one by one.
    std::vector<Ref<Value>> batch_results(Batch batch) {
        const Node& representative = *batch.node(0);
        BatchSignature signature{
            {representative.op->id, reinterpret_cast<uint64_t>(representative.params.get())}};
        signature.words.insert(signature.words.end(), compiler_->options.begin(),
                               compiler_->options.end());
        std::vector<MemberOperands> operands(graph_.inputs(entry(batch.positions[0])).size());
        std::vector<const Type*> types{representative.type.get()};
        bool caches = compiler_->caches;
        for (std::size_t k = 0; k < operands.size(); ++k) {
            if (!find_operands(operands[k], k, batch.positions)) return {};
            signature.add(operands[k]);
            if (operands[k].form == OperandForm::number)
                caches &= signature.add_number(*operands[k].scalars[0]);
            else
                types.push_back(operands[k].type.get());
        }
        const bool pads = compiler_->pads_rows && !representative.op->per_member;
        const RowRange range = row_range(batch.size(), representative.op, types,
                                         pads ? compiler_->max_members : batch.size());
        BatchPlan plan{{}, {}, range.min_rows};
        if (caches) plan = find_batch_plan(signature, range);
        batch.num_rows = plan.planned ? plan.rows : padded_rows(range, types);
        std::vector<StackedOperand> stacked(operands.size());
        if (!stack_members(stacked, operands, batch.num_rows, representative.type->device,
                           compiler_->threads))
            return {};
        if (plan.planned) {
            OpKernelCompiler no_compiler;
            auto results =
                run_batch(plan, stacked, no_compiler, compiler_->python(), compiler_->threads);
            if (!results.empty()) return count(Counter::batches), results;
            if (!compiler_->may_compute_again()) return {};
        }
        return compiler_->compute(batch, stacked, caches ? &signature : nullptr);
    }

    // The k-th input of each member.
    bool find_operands(MemberOperands& operands, std::size_t k, std::span<const uint32_t> members) {
        auto input = [&](uint32_t member) { return graph_.inputs(entry(member))[k]; };
        const Node& representative = node(members[0]);
        const uint32_t first = input(members[0]);
        operands.type = node(first).type;
        if (node(first).is_scalar()) {
            const auto& dtypes = representative.inference->operands;
            if (k >= dtypes.size()) return false;
            operands.dtype = dtypes[k];
            for (uint32_t member : members) operands.scalars.push_back(&node(input(member)).scalar);
            operands.find_scalar_form();
            return true;
        }
        if (!partition_.varies(partition_.group(members[0]), k)) {
            operands.form = OperandForm::shared;
            operands.shared = value(first);
            return bool(operands.shared);
        }
        operands.form = OperandForm::stacked;
        operands.rows.reserve(members.size());
        const int64_t bytes = bytes_of(*operands.type);
        for (uint32_t member : members) operands.rows.push_back(strided_ref(input(member), bytes));
        return true;
    }

    // Refers to the value or row of a node that has been computed.
    StridedRef strided_ref(uint32_t position, int64_t bytes) {
        const RowRef& row_ref = states_[position].row_ref;
        if (row_ref.result != NONE) {
            const Buffer& buffer = batch_results_[row_ref.result].value->buffers[0];
            return {buffer.allocation.get(), buffer.offset + row_ref.row * bytes, nullptr};
        }
        const Ref<Value>& leaf = entry(position).value;
        return StridedRef::of(leaf ? *leaf : *interpreter_.value(position));
    }

    const LinearizedGraph& graph_;
    SignaturePartition partition_;
    OpInterpreter& interpreter_;
    BatchCompiler* compiler_; // null: no batching
    std::vector<NodeState> states_;
    std::vector<Group> groups_;
    BatchHeap<Group> active_{0}; // with ready members
    uint64_t num_listings_ = 0;
    std::vector<uint32_t> ready_singles_; // ready, and computed one by one
    std::vector<uint32_t> readers_;
    std::vector<BatchResult> batch_results_;
    std::vector<uint32_t> live_out_rows_; // live-out nodes, published at the end
    std::size_t num_pending_ = 0;
};

} // namespace

bool run_in_batches(const LinearizedGraph& graph, uint8_t device, OpInterpreter& interpreter,
                    BatchCompiler* compiler) {
    return BatchAgenda(graph, device, interpreter, compiler).run();
}

} // namespace tenfold
