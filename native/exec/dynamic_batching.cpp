#include "exec/dynamic_batching.h"

#include <algorithm>
#include <cstring>

#include "exec/batch_signature.h"
#include "exec/stacking.h"
#include "ir/cse.h"

namespace tenfold {
namespace {

constexpr std::size_t WIDTH = 4, FEW = 24;       // members of a group that are worth it
constexpr std::size_t MOST_BYTES = 256ull << 20; // of what a group makes and puts side by side
constexpr int64_t LARGE_ROW = 1 << 14;
constexpr std::size_t MOST_LARGE_ROWS = 16;
constexpr uint32_t SPARSE = 4; // of so many rows one must be held, or it is copied
constexpr uint32_t NOWHERE = SignaturePartition::NONE;
constexpr std::size_t SOON = 12; // nodes on the way

bool is_part(const Node& node) { return node.op && !node.op->python; }

// Of the results of its input. Its Params are one number: (index,).
uint32_t index_of_part(const Node& node) {
    int64_t index = 0;
    std::memcpy(&index, node.params->bytes.data() + 2 + sizeof index, sizeof index);
    return uint32_t(index);
}

class BatchAgenda {
  public:
    BatchAgenda(const LinearizedGraph& walked, uint8_t device, OpInterpreter& singly,
                BatchCompiler* maker)
        : walked_(walked), alike_(walked, device, maker), singly_(singly), maker_(maker),
          depth_(walked.nodes.size()), missing_(depth_.size()), left_(depth_.size()),
          readers_at_(depth_.size()), results_(depth_.size()), places_(depth_.size()) {}

    bool run() {
        bool wide = walked_.calls > 0 || walked_.nodes.size() >= WIDTH * walked_.deepest;
        if (!wide || !enter()) return false;
        bool done = compute_all();
        publish_held();
        publish_common_subexpressions(walked_);
        return done;
    }

  private:
    bool compute_all() {
        std::size_t done = 0;
        while (done < pending_) {
            if (!alone_.empty()) {
                uint32_t position = alone_.back();
                alone_.pop_back();
                if (!compute_alone(position)) return false;
                ++done;
                continue;
            }
            Group& group = lowest();
            std::vector<uint32_t> members = std::exchange(group.ready, {});
            if (!compute(group, members)) return false;
            done += members.size();
        }
        return true;
    }

    // The value of a node: a row of what its group has made.
    struct Place {
        uint32_t made = NOWHERE, row = 0;
    };
    struct Group {
        std::vector<uint32_t> ready;
        uint64_t depths = 0;
        uint32_t left = 0; // members that have not been computed
        bool together = true;
    };
    struct Made {
        Ref<Value> value;
        uint32_t rows;     // that are still to be read
        uint32_t held = 0; // rows with outside references
        uint32_t members;
    };

    // What nodes get of what their group has made. Few rows must not keep all others.
    class BatchRows {
      public:
        BatchRows(const Made& made, const Ref<Type>& type, std::size_t count)
            : buffer_(made.value->buffers[0]), bytes_(std::size_t(bytes_of(*type))),
              few_(made.held * SPARSE < made.members), types_(type, count),
              memory_(buffer_.allocation, count) {}

        Ref<Value> take(uint32_t row, Ref<Value> next) {
            auto value = Ref<Value>::adopt(new Value);
            Buffer& own = value->buffers[0];
            const void* address = static_cast<char*>(buffer_.address()) + row * bytes_;
            value->type = types_.take();
            value->next = std::move(next);
            if (few_ && (own.allocation = Allocation::from_pool(bytes_))) {
                std::memcpy(own.address(), address, bytes_);
                return value;
            }
            value->part = true;
            own = {memory_.take(), buffer_.offset + int64_t(row * bytes_)};
            return value;
        }

      private:
        const Buffer& buffer_;
        const std::size_t bytes_;
        const bool few_;
        Counts<Type> types_;
        Counts<Allocation> memory_;
    };

    const LinearizedNode& entry(uint32_t position) const { return walked_.nodes[position]; }
    const Node& node(uint32_t position) const { return *entry(position).node; }
    bool enter() {
        std::size_t grouped = 0;
        for (uint32_t i = 0; i < depth_.size(); ++i) {
            walked_.fetch_ahead(i);
            if (!alike_.enter(i)) return false;
            left_[i] = entry(i).uses;
            if (!alike_.is_pending(i)) continue;
            results_[i] = is_part(node(i)) ? 1 : uint32_t(node(i).inference->results.size());
            left_[i] += entry(i).held;
            ++pending_;
            for (uint32_t input : walked_.inputs(entry(i))) {
                depth_[i] = std::max(depth_[i], depth_[input]);
                if (!alike_.is_pending(input)) continue;
                ++missing_[i];
                ++readers_at_[input];
            }
            ++depth_[i];
            if (alike_.group(i) == NOWHERE) continue;
            groups_.resize(alike_.groups());
            Group& group = groups_[alike_.group(i)];
            ++group.left;
            group.depths += depth_[i];
            ++grouped;
        }
        bool few = grouped == 0 || (grouped < WIDTH * groups_.size() && walked_.calls == 0);
        if (maker_ && few) return false;
        uint32_t end = 0;
        for (uint32_t& at : readers_at_) end = at += end;
        readers_.resize(end);
        for (auto i = uint32_t(depth_.size()); i-- > 0;) {
            if (!alike_.is_pending(i)) continue;
            for (uint32_t input : walked_.inputs(entry(i)))
                if (alike_.is_pending(input)) readers_[--readers_at_[input]] = i;
        }
        for (uint32_t i = 0; i < depth_.size(); ++i)
            if (alike_.is_pending(i) && missing_[i] == 0) become_ready(i);
        return true;
    }

    // By what a member makes and reads of its own; a row that is held keeps all others.
    std::size_t most_together(uint32_t position) const {
        int64_t bytes = bytes_of(*node(position).type);
        if (bytes >= LARGE_ROW) return MOST_LARGE_ROWS;
        for (uint32_t input : walked_.inputs(entry(position)))
            if (!alike_.is_common(input)) bytes += bytes_of(*node(input).type);
        return std::max<std::size_t>(1, MOST_BYTES / std::size_t(bytes + 1));
    }

    void become_ready(uint32_t position) {
        uint32_t group = alike_.group(position);
        if (group == NOWHERE) {
            alone_.push_back(position);
            return;
        }
        if (groups_[group].ready.empty()) active_.push_back(group);
        groups_[group].ready.push_back(position);
    }

    // Of the groups with ready members.
    Group& lowest() {
        auto mean = [&](uint32_t g) { return double(groups_[g].depths) / groups_[g].left; };
        auto best = std::ranges::min_element(active_, {}, mean);
        Group& group = groups_[*best];
        *best = active_.back();
        active_.pop_back();
        return group;
    }

    // What its readers take; made now where it is a row of what a group has made.
    const Ref<Value>& value(uint32_t position) {
        if (entry(position).value) return entry(position).value;
        Ref<Value>& value = singly_.value(position);
        const Place& place = places_[position];
        if (value || place.made == NOWHERE) return value;
        for (std::size_t k = results_[position]; k-- > 0;) {
            Ref<Value> row = row_of(place.made + k, place.row, type_of(position, k));
            row->next = std::move(value);
            value = std::move(row);
        }
        return value;
    }

    Ref<Value> row_of(std::size_t made, uint32_t row, const Ref<Type>& type) const {
        auto value = Ref<Value>::adopt(new Value);
        value->type = type;
        value->part = true;
        value->buffers[0] = made_[made].value->buffers[0];
        value->buffers[0].offset += row * bytes_of(*type);
        return value;
    }

    bool compute_alone(uint32_t position) {
        if (maker_ && maker_->tells) {
            end(position);
            return true;
        }
        if (is_part(node(position))) {
            pick(position);
        } else {
            for (uint32_t input : walked_.inputs(entry(position))) value(input);
            if (!singly_.compute_one(position)) return false;
        }
        end(position);
        if (left_[position] == 0) let_go(position);
        return true;
    }

    // One of the results of its input.
    void pick(uint32_t position) {
        uint32_t whole = walked_.inputs(entry(position))[0], index = index_of_part(node(position));
        Place& place = places_[position];
        if (places_[whole].made != NOWHERE) {
            place.made = places_[whole].made + index;
            place.row = places_[whole].row;
            ++made_[place.made].rows;
            return;
        }
        Ref<Value> result = value(whole);
        while (index-- > 0) result = result->next;
        auto own = Ref<Value>::adopt(new Value); // the results of one node are chained
        own->type = result->type;
        own->strides = result->strides;
        own->part = true;
        own->buffers = result->buffers;
        singly_.value(position) = std::move(own);
    }

    // It has been computed.
    void end(uint32_t position) {
        const LinearizedNode& own = entry(position);
        if (own.held && !(maker_ && maker_->tells)) hold(position);
        if (alike_.group(position) != NOWHERE) {
            Group& group = groups_[alike_.group(position)];
            --group.left;
            group.depths -= depth_[position];
        }
        for (uint32_t input : walked_.inputs(own))
            if (--left_[input] == 0) let_go(input);
        singly_.is_done(position);
        uint32_t end =
            position + 1 < depth_.size() ? readers_at_[position + 1] : uint32_t(readers_.size());
        for (uint32_t at = readers_at_[position]; at < end; ++at)
            if (--missing_[readers_[at]] == 0) become_ready(readers_[at]);
    }

    // A row is given to its node at the end: by then it is known how many of its group are held.
    void hold(uint32_t position) {
        if (places_[position].made == NOWHERE) {
            publish(entry(position).node.get(), value(position));
            return;
        }
        held_.push_back(position);
        for (std::size_t k = 0; k < results_[position]; ++k)
            ++made_[places_[position].made + k].held;
    }

    void publish_held() {
        for (std::span<const uint32_t> rest = held_; !rest.empty();) {
            uint32_t made = places_[rest[0]].made;
            auto other = [&](uint32_t position) { return places_[position].made != made; };
            auto count = std::size_t(std::ranges::find_if(rest, other) - rest.begin());
            publish_rows(rest.first(count));
            rest = rest.subspan(count);
        }
    }

    // Of one group.
    void publish_rows(std::span<const uint32_t> positions) {
        std::vector<Ref<Value>> values(positions.size());
        for (std::size_t k = results_[positions[0]]; k-- > 0;) {
            BatchRows rows(made_[places_[positions[0]].made + k], type_of(positions[0], k),
                           positions.size());
            for (std::size_t i = 0; i < positions.size(); ++i)
                values[i] = rows.take(places_[positions[i]].row, std::move(values[i]));
        }
        for (std::size_t i = 0; i < positions.size(); ++i) {
            if (i + SOON < positions.size()) fetch(entry(positions[i + SOON]).node.get());
            publish(entry(positions[i]).node.get(), std::move(values[i]));
            if (--left_[positions[i]] == 0) let_go(positions[i]);
        }
    }

    const Ref<Type>& type_of(uint32_t position, std::size_t k) const {
        const Node& own = node(position);
        return results_[position] == 1 ? own.type : own.inference->results[k];
    }

    // Releases the rows of a dead node.
    void let_go(uint32_t position) {
        const Place& place = places_[position];
        if (place.made == NOWHERE) return;
        for (std::size_t k = 0; k < results_[position]; ++k)
            if (--made_[place.made + k].rows == 0) made_[place.made + k].value = nullptr;
    }

    bool compute(Group& group, std::span<const uint32_t> members) {
        const Node& like = node(members[0]);
        std::size_t few = is_looped(like) ? FEW : 2;
        std::size_t most = std::min(most_together(members[0]), maker_->limit);
        for (std::size_t begin = 0; begin < members.size(); begin += most) {
            auto some = members.subspan(begin, std::min(most, members.size() - begin));
            bool together = group.together && some.size() >= few;
            Batch them{walked_,   some,     std::size_t(&group - groups_.data()),
                       begin > 0, together, maker_->rows(some.size())};
            if (maker_->tells)
                maker_->compute(them, {});
            else if (together && compute_together(them))
                continue;
            group.together &= maker_->tells || some.size() < few;
            for (std::size_t i = 0; i < some.size(); ++i)
                if (!compute_alone(some[i]) && !compute_as_one(group, some.subspan(i, 1)))
                    return false;
        }
        return true;
    }

    // A call that has no plan of its own.
    bool compute_as_one(const Group& group, std::span<const uint32_t> member) {
        bool call = node(member[0]).op->weight > 1;
        return call && compute_together(
                           {walked_, member, std::size_t(&group - groups_.data()), false, true, 1});
    }

    bool compute_together(const Batch& them) {
        auto members = them.positions;
        const Node& like = node(members[0]);
        std::vector<StackedOperand> columns(walked_.inputs(entry(members[0])).size());
        std::vector<uint32_t> read(columns.size() * members.size()); // one column after the other
        for (std::size_t row = 0; row < members.size(); ++row) {
            auto inputs = walked_.inputs(entry(members[row]));
            for (std::size_t k = 0; k < inputs.size(); ++k)
                read[k * members.size() + row] = inputs[k];
        }
        for (std::size_t k = 0; k < columns.size(); ++k) {
            bool shared = !alike_.varies(alike_.group(members[0]), k);
            auto positions = std::span(read).subspan(k * members.size(), members.size());
            if (!write_column(columns[k], k, them, positions, shared)) return false;
        }
        std::vector<Ref<Value>> results = maker_->compute(them, columns);
        if (results.size() != like.inference->results.size()) return false;
        auto first = uint32_t(made_.size());
        for (Ref<Value>& result : results)
            made_.push_back(
                {std::move(result), uint32_t(members.size()), 0, uint32_t(members.size())});
        for (std::size_t row = 0; row < members.size(); ++row) {
            places_[members[row]].made = first;
            places_[members[row]].row = uint32_t(row);
        }
        for (uint32_t position : members) {
            end(position);
            if (left_[position] == 0) let_go(position);
        }
        return true;
    }

    // The k-th input of nodes like this one, where it stands for each.
    bool write_column(StackedOperand& column, std::size_t k, const Batch& members,
                      std::span<const uint32_t> positions, bool shared) {
        const Node& like = *members.node(0);
        uint32_t first = positions[0];
        if (node(first).is_scalar()) {
            std::vector<const Scalar*> scalars;
            for (uint32_t position : positions) scalars.push_back(&node(position).scalar);
            const auto& operands = like.inference->operands;
            return k < operands.size() &&
                   write_scalars(column, scalars, operands[k], like.type->device, members.rows);
        }
        if (shared) {
            column.value = value(first);
            return bool(column.value);
        }
        std::vector<StridedRef> rows;
        rows.reserve(positions.size());
        int64_t bytes = bytes_of(*node(first).type);
        for (uint32_t position : positions) rows.push_back(lies(position, bytes));
        return stack_operands(column, rows, *node(first).type, members.rows, maker_->threads);
    }

    // Of a node that has been computed.
    StridedRef lies(uint32_t position, int64_t bytes) {
        const Place& place = places_[position];
        if (place.made != NOWHERE) {
            const Buffer& buffer = made_[place.made].value->buffers[0];
            return {&buffer, buffer.offset + place.row * bytes, nullptr};
        }
        const Ref<Value>& own = entry(position).value;
        const Value& value = own ? *own : *singly_.value(position);
        const auto* strides = value.strides.empty() ? nullptr : &value.strides;
        return {&value.buffers[0], value.buffers[0].offset, strides};
    }

    const LinearizedGraph& walked_;
    SignaturePartition alike_;
    OpInterpreter& singly_;
    BatchCompiler* maker_; // null: nothing is put together
    // Of each node. What is asked for together stands together: a large graph is in no cache.
    std::vector<uint32_t> depth_, missing_, left_; // left: readers to come
    std::vector<uint32_t> readers_at_;             // where its own begin in readers_
    std::vector<uint32_t> results_;
    std::vector<Place> places_;
    std::vector<Group> groups_;
    std::vector<uint32_t> active_;  // groups with ready members
    std::vector<uint32_t> alone_;   // ready, and computed by themselves
    std::vector<uint32_t> readers_; // of each node in a row
    std::vector<Made> made_;
    std::vector<uint32_t> held_; // whose nodes are given their rows at the end
    std::size_t pending_ = 0;
};

} // namespace

bool compute_in_groups(const LinearizedGraph& walked, uint8_t device, OpInterpreter& singly,
                       BatchCompiler* maker) {
    return BatchAgenda(walked, device, singly, maker).run();
}

} // namespace tenfold
