#include "exec/symbolic_executable.h"

#include "exec/tier_policy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "ir/index_map.h"
#include "memory/cache_registry.h"
#include "memory/direct_mapped.h"
#include "memory/lru_cache.h"
#include "memory/target_facts.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

// Tags of the words of a form, like those of a key.
enum Tag : uint64_t { scalar_tag, value_tag, pending_tag };

constexpr std::size_t MAX_LENGTHS = 16;

uint64_t address_word(const void* address) { return reinterpret_cast<uint64_t>(address); }

uint64_t kind_of(const Type& type) { return type.kind() | uint64_t(type.shape.size()) << 40; }

class FormWriter {
  public:
    FormWriter(const LinearizedGraph& graph, ShapeSignature& form, bool rules)
        : graph_(graph), form_(form), rules_(rules), per_axis_(is_elementwise()) {}

    bool write() {
        for (const LinearizedNode& entry : graph_.nodes) {
            if (entry.node->is_scalar())
                write_scalar(*entry.node, false, form_.words);
            else if (!(entry.value ? write_value(entry) : entry.node->op && write_pending(entry)))
                return false;
        }
        for (uint32_t output : graph_.outputs) append(output);
        return true;
    }

  private:
    void append(uint64_t word) { form_.words.push_back(word); }

    bool is_elementwise() const {
        return std::ranges::all_of(graph_.nodes, [](const LinearizedNode& entry) {
            const Op* op = entry.value ? nullptr : entry.node->op;
            return !op || op->shapes == Op::broadcast;
        });
    }

    // The index of a length in the form.
    std::size_t length_index(int64_t length, std::size_t axis) {
        std::size_t index = 0;
        while (index < form_.lengths.size() &&
               (form_.lengths[index] != length || form_.axes[index] != axis))
            ++index;
        if (index == form_.lengths.size()) {
            form_.lengths.push_back(length);
            form_.axes.push_back(uint32_t(axis));
        }
        return index;
    }

    // A value in C order, and the only one of its operation.
    bool write_value(const LinearizedNode& entry) {
        const Value& value = *entry.value;
        if (!value.strides.empty() || value.next) return false;
        append(value_tag | uint64_t(entry.dead_after_read) << 17);
        append(kind_of(*entry.leaf_type()));
        std::size_t axis = value.type->shape.size();
        for (int64_t length : value.type->shape) {
            append(length <= 1 ? uint64_t(length) : 2 + length_index(length, per_axis_ ? axis : 0));
            --axis;
        }
        return form_.lengths.size() <= MAX_LENGTHS;
    }

    // Writes a pending node. False unless it has one result, and no replaced part.
    bool write_pending(const LinearizedNode& entry) {
        const Node& node = *entry.node;
        const Inference& inference = *node.inference;
        if (!node.op->python || inference.results.size() != 1) return false;
        append(pending_tag | uint64_t(entry.live_out) << 8 |
               uint64_t(node.has(PASSED_THROUGH)) << 9 | uint64_t(entry.num_inputs) << 32);
        append(node.op->id); // an id: the address of a freed op may be reused
        append(kind_of(*node.type));
        if (node.op->part == Op::none) {
            append(address_word(node.params.get()));
        } else {
            const LinearizedNode& array = graph_.nodes[graph_.inputs(entry)[0]];
            append(array.node->type->shape.size());
            if (node.op->part == Op::slice_update) return false;
            // Rules rewrite slices of pending arrays, and depend on lengths.
            if (!append_slice_key(*node.params, *array.node->type, form_.words) && !array.value &&
                rules_)
                return false;
        }
        for (uint16_t dtype : inference.operands) append(dtype);
        for (uint32_t input : graph_.inputs(entry)) append(input);
        return true;
    }

    const LinearizedGraph& graph_;
    ShapeSignature& form_;
    const bool rules_;
    const bool per_axis_;
};

// False on int64 overflow, and for operands outside the domain.
bool evaluate_row(const SymbolicExecutable::Row& row, int64_t left, int64_t right,
                  int64_t& result) {
    using Row = SymbolicExecutable::Row;
    bool divides = row.operation == Row::floor || row.operation == Row::ceil;
    if ((divides || row.operation == Row::mod) && right <= 0) return false;
    switch (row.operation) {
    case Row::plus: return !__builtin_add_overflow(left, right, &result);
    case Row::times: return !__builtin_mul_overflow(left, right, &result);
    case Row::floor: result = left / right; break;
    case Row::ceil: result = left / right + (left % right > 0); break;
    case Row::mod: result = left % right; break;
    case Row::min: result = std::min(left, right); break;
    case Row::max: result = std::max(left, right); break;
    case Row::bits: result = int64_t(std::bit_width(uint64_t(left))); break;
    }
    return !(divides || row.operation == Row::mod || row.operation == Row::bits) || left >= 0;
}

bool is_satisfied(const SymbolicExecutable::Guard& guard, int64_t number) {
    if (guard.kind == SymbolicExecutable::Guard::positive) return number > 0;
    return (number == 0) == (guard.kind == SymbolicExecutable::Guard::zero);
}

using Registers = std::vector<int64_t>;

// Computes all formulas; false where the plan is not right for these lengths.
bool evaluate(const SymbolicExecutable& symbolic, std::span<const int64_t> lengths,
              Registers& registers) {
    if (lengths.size() != symbolic.num_lengths) return false;
    registers.assign(lengths.begin(), lengths.end());
    registers.insert(registers.end(), symbolic.constants.begin(), symbolic.constants.end());
    for (const SymbolicExecutable::Row& row : symbolic.rows) {
        int64_t result = 0;
        if (!evaluate_row(row, registers[row.left], registers[row.right], result)) return false;
        registers.push_back(result);
    }
    return std::all_of(symbolic.guards.begin(), symbolic.guards.end(),
                       [&](const SymbolicExecutable::Guard& guard) {
                           return is_satisfied(guard, registers[guard.value]);
                       });
}

// Whether the nodes of a linearized graph have the inferred lengths of the formulas.
bool matches_inferred_shapes(const SymbolicExecutable& symbolic, const LinearizedGraph& graph,
                             const Registers& registers) {
    std::size_t next = 0;
    for (const LinearizedNode& entry : graph.nodes) {
        if (entry.value || !entry.node->op) continue;
        for (int64_t length : entry.node->type->shape) {
            if (next == symbolic.inferred_lengths.size() ||
                registers[symbolic.inferred_lengths[next]] != length)
                return false;
            ++next;
        }
    }
    return next == symbolic.inferred_lengths.size();
}

// Where a number of an instruction stands; null when it has none such.
class FieldPatcher {
  public:
    explicit FieldPatcher(const SymbolicExecutable::PatchedField& number) : number_(number) {}

    template <class T> bool operator()(T&) const { return false; }

    bool operator()(Executable::Allocate& instruction) const {
        if (number_.field == SymbolicExecutable::PatchedField::bytes)
            return assign(instruction.bytes);
        return number_.field == SymbolicExecutable::PatchedField::strides &&
               assign_at(instruction.strides);
    }

    bool operator()(Executable::View& instruction) const {
        if (number_.field == SymbolicExecutable::PatchedField::offset)
            return assign(instruction.offset);
        return number_.field == SymbolicExecutable::PatchedField::strides &&
               assign_at(instruction.strides);
    }

    bool operator()(Indirect<Executable::Launch>& indirect) const {
        Executable::Launch& run = *indirect;
        switch (number_.field) {
        case SymbolicExecutable::PatchedField::buffers:
            return number_.index < run.buffers.size() && assign(run.buffers[number_.index].offset);
        case SymbolicExecutable::PatchedField::scratch_tables: return assign_at(run.scratch_tables);
        case SymbolicExecutable::PatchedField::sizes: return assign_at(run.sizes);
        case SymbolicExecutable::PatchedField::numbers:
            return number_.index < run.numbers.size() && assign(run.numbers[number_.index].bits);
        case SymbolicExecutable::PatchedField::scratch: return assign(run.scratch);
        case SymbolicExecutable::PatchedField::units: return assign(run.units);
        case SymbolicExecutable::PatchedField::grain: return assign(run.grain);
        case SymbolicExecutable::PatchedField::threads: return assign(run.threads);
        case SymbolicExecutable::PatchedField::finish_units: return assign(run.finish_units);
        case SymbolicExecutable::PatchedField::multiply_adds: return assign(run.multiply_adds);
        default: return false;
        }
    }

    int64_t value = 0;

  private:
    template <class T> bool assign(T& number) const {
        number = T(value);
        return true;
    }
    template <class T> bool assign_at(std::vector<T>& numbers) const {
        return number_.index < numbers.size() && assign(numbers[number_.index]);
    }

    const SymbolicExecutable::PatchedField& number_;
};

Ref<Type>* type_of(Executable::Instruction& instruction) {
    if (auto* allocate = std::get_if<Executable::Allocate>(&instruction)) return &allocate->type;
    if (auto* view = std::get_if<Executable::View>(&instruction)) return &view->type;
    return nullptr;
}

Ref<Type> substitute_lengths(const Type& type, const SymbolicExecutable::Shape& shape,
                             const Registers& registers) {
    std::array<int64_t, 8> few;
    std::vector<int64_t> many;
    if (shape.lengths.size() > few.size()) many.resize(shape.lengths.size());
    std::span<int64_t> lengths{many.empty() ? few.data() : many.data(), shape.lengths.size()};
    for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = registers[shape.lengths[i]];
    return intern_type({lengths, type.dtype, type.device, type.storage, type.weak});
}

// A plan with the instructions of a template, to be patched.
Ref<Executable> instantiate(const Executable& template_plan) {
    auto plan = Ref<Executable>::adopt(new Executable(KeyOwners()));
    plan->code = template_plan.code;
    plan->instructions = template_plan.instructions;
    plan->donated_inputs = template_plan.donated_inputs;
    plan->device = template_plan.device;
    plan->slots = template_plan.slots;
    return plan;
}

void patch(Executable& plan, const SymbolicExecutable& symbolic, const Registers& registers) {
    for (const SymbolicExecutable::PatchedField& number : symbolic.patches) {
        FieldPatcher field(number);
        field.value = registers[number.source];
        std::visit(field, plan.instructions[number.instruction]);
    }
    for (const SymbolicExecutable::Shape& shape : symbolic.shapes) {
        Ref<Type>& type = *type_of(plan.instructions[shape.instruction]);
        type = substitute_lengths(*type, shape, registers);
    }
}

// Entry of a form: its first lengths, and its symbolic executables, the newest first.
struct SymbolicEntry {
    std::vector<int64_t> lengths;
    std::vector<Ref<SymbolicExecutable>> templates;
    int tries = 0;
};

using Table = LruCache<std::vector<uint64_t>, SymbolicEntry, WordsHash, SameWords>;

constexpr std::size_t CAPACITY = 4096;
// Approximate words of all entries: long forms need large symbolic executables.
constexpr std::size_t MAX_WORDS = 1 << 22;

// The approximate words of memory of a symbolic executable.
std::size_t footprint_words(const SymbolicExecutable& symbolic) {
    constexpr std::size_t INSTRUCTION = sizeof(Executable::Instruction) / sizeof(uint64_t) + 20;
    return symbolic.template_plan->instructions.size() * INSTRUCTION + 2 * symbolic.rows.size() +
           2 * symbolic.patches.size() + 50;
}

struct SymbolicCache {
    Lock lock; // protects the forms
    Table forms{CAPACITY, MAX_WORDS};
};

SymbolicCache* const symbolic_cache_instance =
    new SymbolicCache; // made when the library is loaded; outlives every static object
std::atomic<bool> enabled{true};

SymbolicCache& known() { return *symbolic_cache_instance; }

[[maybe_unused]] Cache& registered =
    register_cache({"symbolic executables", "other lengths need no new plan", CAPACITY,
                    num_cached_forms, clear_template_cache, [] {
                        Guard guard(known().lock);
                        return known().forms.num_bytes();
                    }});

// The symbolic executables of a form. The caller's references allow it to try them outside the
// lock.
std::vector<Ref<SymbolicExecutable>> templates_of(const ShapeSignature& form) {
    Guard guard(known().lock);
    const SymbolicEntry* entry = known().forms.find(form.words);
    return entry ? entry->templates : std::vector<Ref<SymbolicExecutable>>();
}

// Whether its program was optimised meanwhile: Python then compiles another.
bool has_expired(const SymbolicExecutable& symbolic) {
    return symbolic.template_plan->remaining_runs.load(std::memory_order_relaxed) == 0;
}

// The runs that remain after this one; negative: any number.
int64_t take_run(Executable& template_plan) {
    int64_t runs = template_plan.remaining_runs.load(std::memory_order_relaxed);
    while (runs > 0 && !template_plan.remaining_runs.compare_exchange_weak(
                           runs, runs - 1, std::memory_order_relaxed)) {}
    return runs > 0 ? runs - 1 : runs;
}

struct ThreadTemplate {
    std::vector<uint64_t> words;
    Ref<SymbolicExecutable> symbolic;
    Ref<Executable> plan; // patched for successive shapes
    std::size_t uses = 0;

    explicit operator bool() const { return bool(symbolic); }
};

// A thread's latest templates, and the keys that it has instantiated.
class ThreadTemplates : public ThreadCache<ThreadTemplates, ThreadTemplate, 4> {
  public:
    Ref<Executable> plan(const ShapeSignature& form, const LinearizedGraph& graph, const Key& key) {
        ThreadTemplate& entry = slot_of_low(hash_of(form.words));
        bool is_valid = entry && entry.words == form.words && !should_revalidate(entry);
        if (!is_valid ||
            !matches(*entry.symbolic, form, graph)) { // the table is asked: there forms age
            Ref<SymbolicExecutable> found = find(form, graph);
            if (!found) return {};
            entry = {form.words, std::move(found), {}, 0};
        }
        bool is_unshared =
            entry.plan && entry.plan->references.load(std::memory_order_acquire) == 1;
        if (!is_unshared) entry.plan = instantiate(*entry.symbolic->template_plan);
        patch(*entry.plan, *entry.symbolic, registers_);
        entry.plan->remaining_runs = take_run(*entry.symbolic->template_plan);
        entry.plan->base_offsets = key.base_offsets;
        if (!seen_before(key)) return entry.plan;
        Ref<Executable> cached = std::move(entry.plan);
        cached->key_owners = KeyOwners(graph);
        cached->key = key.words;
        cache_plan(cached);
        return cached;
    }

    // The first symbolic executable of the table that fits.
    Ref<SymbolicExecutable> find(const ShapeSignature& form, const LinearizedGraph& graph) {
        for (Ref<SymbolicExecutable>& each : templates_of(form))
            if (matches(*each, form, graph)) return std::move(each);
        return {};
    }

    void clear() {
        ThreadCache::clear();
        seen_hashes_ = {};
    }

  private:
    static constexpr std::size_t NUM_SEEN = 1024;

    bool matches(const SymbolicExecutable& symbolic, const ShapeSignature& form,
                 const LinearizedGraph& graph) {
        return !has_expired(symbolic) && evaluate(symbolic, form.lengths, registers_) &&
               matches_inferred_shapes(symbolic, graph, registers_);
    }

    // A hash collision only caches a plan one request earlier.
    bool seen_before(const Key& key) {
        std::size_t hash = hash_of(key.words);
        return std::exchange(seen_hashes_[hash % NUM_SEEN], hash) == hash;
    }

    std::array<std::size_t, NUM_SEEN> seen_hashes_{};
    Registers registers_;
};

} // namespace

bool ShapeSignature::write(const LinearizedGraph& graph, const OptionKey& options, bool rules) {
    auto numbers = options.words();
    words.assign(numbers.begin(), numbers.end());
    lengths.clear();
    axes.clear();
    return graph.nodes.size() <= MAX_PLANNED_NODES && FormWriter(graph, *this, rules).write();
}

bool SymbolicExecutable::is_valid() const {
    std::size_t registers = num_lengths + constants.size();
    for (const Row& row : rows)
        if (row.left >= registers || row.right >= registers++) return false;
    auto is_defined = [&](Register of) { return of < registers; };
    std::vector<Executable::Instruction> instructions =
        template_plan->instructions; // tried on these
    for (const PatchedField& number : patches)
        if (!is_defined(number.source) || number.instruction >= instructions.size() ||
            !std::visit(FieldPatcher(number), instructions[number.instruction]))
            return false;
    for (const Shape& shape : shapes)
        if (shape.instruction >= instructions.size() || !type_of(instructions[shape.instruction]) ||
            !std::all_of(shape.lengths.begin(), shape.lengths.end(), is_defined))
            return false;
    return std::all_of(inferred_lengths.begin(), inferred_lengths.end(), is_defined) &&
           std::all_of(guards.begin(), guards.end(),
                       [&](const Guard& g) { return is_defined(g.value); }) &&
           std::none_of(instructions.begin(), instructions.end(), [](const auto& each) {
               return std::holds_alternative<Indirect<Executable::Call>>(each);
           });
}

Ref<Executable> instantiate_plan(const ShapeSignature& form, const LinearizedGraph& graph,
                                 const Key& key) {
    if (!enabled.load(std::memory_order_relaxed)) return {};
    return ThreadTemplates::get().plan(form, graph, key);
}

Ref<SymbolicExecutable> find_template(const ShapeSignature& form, const LinearizedGraph& graph) {
    if (!enabled.load(std::memory_order_relaxed)) return {};
    return ThreadTemplates::get().find(form, graph);
}

Ref<Executable> instantiate_for(const SymbolicExecutable& symbolic,
                                std::span<const int64_t> lengths) {
    Registers registers;
    if (has_expired(symbolic) || !evaluate(symbolic, lengths, registers)) return {};
    Ref<Executable> plan = instantiate(*symbolic.template_plan);
    patch(*plan, symbolic, registers);
    plan->remaining_runs = take_run(*symbolic.template_plan);
    return plan;
}

bool should_compile_template(const ShapeSignature& form, bool can_compile, bool expects_others) {
    if (!enabled.load(std::memory_order_relaxed)) return false;
    Table::Entries evicted; // freed outside the lock
    Guard guard(known().lock);
    SymbolicEntry* entry = known().forms.find(form.words);
    if (!entry) {
        entry =
            &known().forms.insert(form.words, {form.lengths, {}, 0}, evicted, form.words.size());
        if (!expects_others) return false;
    }
    bool has_other_lengths =
        expects_others || entry->lengths != form.lengths || !entry->templates.empty();
    return can_compile && has_other_lengths && entry->templates.size() < TIERS.max_templates &&
           entry->tries++ < TIERS.max_template_tries;
}

std::size_t cache_template(const ShapeSignature& form, Ref<SymbolicExecutable> symbolic) {
    Ref<Executable> template_plan =
        instantiate(*symbolic->template_plan); // without a key, base offsets and other key owners
    template_plan->key_owners.params =
        symbolic->template_plan->key_owners.params; // the form has their addresses
    template_plan->remaining_runs = symbolic->template_plan->remaining_runs.load();
    symbolic->template_plan = std::move(template_plan);
    Table::Entries evicted; // freed outside the lock
    Guard guard(known().lock);
    Table& forms = known().forms;
    SymbolicEntry* entry = forms.find(form.words);
    if (!entry)
        entry = &forms.insert(form.words, {form.lengths, {}, 1}, evicted, form.words.size());
    std::erase_if(entry->templates, [](const auto& each) { return has_expired(*each); });
    forms.grow_latest(footprint_words(*symbolic), evicted);
    entry->templates.insert(entry->templates.begin(), std::move(symbolic));
    return entry->templates.size();
}

void clear_template_cache() {
    Table::Entries evicted; // freed outside the lock
    ThreadTemplates::invalidate_all();
    Guard guard(known().lock);
    known().forms.clear(evicted);
}

std::size_t num_cached_templates() {
    Guard guard(known().lock);
    std::size_t count = 0;
    for (const Table::Entry& form : known().forms.entries()) count += form.value.templates.size();
    return count;
}

std::size_t num_cached_forms() {
    Guard guard(known().lock);
    return known().forms.size();
}

void set_templates_enabled(bool enabled_now) {
    enabled.store(enabled_now, std::memory_order_relaxed);
}

} // namespace tenfold
