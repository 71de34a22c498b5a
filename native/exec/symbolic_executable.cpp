#include "exec/symbolic_executable.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "ir/slice_params.h"
#include "memory/cache_registry.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

// Of the words of a form; as the tags of a key.
enum Tag : uint64_t { scalar_tag, value_tag, pending_tag };

constexpr std::size_t MOST_LENGTHS = 16;
constexpr std::size_t MOST_NODES = 512; // of a walk: to plan a long one with formulas takes long

uint64_t word(const void* address) { return reinterpret_cast<uint64_t>(address); }

uint64_t kind_of(const Type& type) { return type.kind() | uint64_t(type.shape.size()) << 40; }

class Writing {
  public:
    Writing(const LinearizedGraph& walked, Form& form, bool rules)
        : walked_(walked), form_(form), rules_(rules), by_axis_(is_elementwise()) {}

    bool write() {
        for (const LinearizedNode& entry : walked_.nodes) {
            if (entry.node->is_scalar())
                write_scalar(*entry.node, false, form_.words);
            else if (!(entry.value ? value(entry) : entry.node->op && pending(entry)))
                return false;
        }
        for (uint32_t output : walked_.outputs) put(output);
        return true;
    }

  private:
    void put(uint64_t one) { form_.words.push_back(one); }

    bool is_elementwise() const {
        return std::ranges::all_of(walked_.nodes, [](const LinearizedNode& entry) {
            const Op* op = entry.value ? nullptr : entry.node->op;
            return !op || op->shapes == Op::broadcast;
        });
    }

    // Which of the lengths it is.
    std::size_t number_of(int64_t length, std::size_t axis) {
        std::size_t at = 0;
        while (at < form_.lengths.size() && (form_.lengths[at] != length || form_.axes[at] != axis))
            ++at;
        if (at == form_.lengths.size()) {
            form_.lengths.push_back(length);
            form_.axes.push_back(uint32_t(axis));
        }
        return at;
    }

    // A value in C order, and the only one of its operation.
    bool value(const LinearizedNode& entry) {
        const Value& value = *entry.value;
        if (!value.strides.empty() || value.next) return false;
        put(value_tag | uint64_t(entry.dying) << 17);
        put(kind_of(*value.type));
        std::size_t axis = value.type->shape.size();
        for (int64_t length : value.type->shape) {
            put(length <= 1 ? uint64_t(length) : 2 + number_of(length, by_axis_ ? axis : 0));
            --axis;
        }
        return form_.lengths.size() <= MOST_LENGTHS;
    }

    // Of one result, and no replaced part.
    bool pending(const LinearizedNode& entry) {
        const Node& node = *entry.node;
        const Inference& inference = *node.inference;
        if (!node.op->python || inference.results.size() != 1) return false;
        put(pending_tag | uint64_t(entry.held) << 8 |
            uint64_t(node.read_in_part.load(std::memory_order_relaxed)) << 9 |
            uint64_t(entry.width) << 32);
        put(node.op->id); // of one that is freed the address may be taken again
        put(kind_of(*node.type));
        if (node.op->part == Op::none) {
            put(word(node.params.get()));
        } else {
            const LinearizedNode& array = walked_.nodes[walked_.inputs(entry)[0]];
            put(array.node->type->shape.size());
            if (node.op->part == Op::replaced) return false;
            // What is taken of something computed is a matter for rules, which look at lengths.
            if (!write_picks(*node.op, *node.params, *array.node->type, form_.words) &&
                !array.value && rules_)
                return false;
        }
        for (uint16_t dtype : inference.operands) put(dtype);
        for (uint32_t input : walked_.inputs(entry)) put(input);
        return true;
    }

    const LinearizedGraph& walked_;
    Form& form_;
    const bool rules_;
    const bool by_axis_;
};

// False on int64 overflow, and for operands outside the domain.
bool computed(const SymbolicExecutable::Row& row, int64_t left, int64_t right, int64_t& result) {
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

bool holds(const SymbolicExecutable::Guard& guard, int64_t number) {
    if (guard.kind == SymbolicExecutable::Guard::positive) return number > 0;
    return (number == 0) == (guard.kind == SymbolicExecutable::Guard::zero);
}

using Registers = std::vector<int64_t>;

// Computes all formulas; false where the plan is not right for these lengths.
bool compute(const SymbolicExecutable& made, std::span<const int64_t> lengths,
             Registers& registers) {
    if (lengths.size() != made.lengths) return false;
    registers.assign(lengths.begin(), lengths.end());
    registers.insert(registers.end(), made.constants.begin(), made.constants.end());
    for (const SymbolicExecutable::Row& row : made.rows) {
        int64_t result = 0;
        if (!computed(row, registers[row.left], registers[row.right], result)) return false;
        registers.push_back(result);
    }
    return std::all_of(
        made.guards.begin(), made.guards.end(),
        [&](const SymbolicExecutable::Guard& guard) { return holds(guard, registers[guard.of]); });
}

// Whether the nodes of a walk have the lengths that were inferred with formulas.
bool as_inferred(const SymbolicExecutable& made, const LinearizedGraph& walked,
                 const Registers& registers) {
    std::size_t at = 0;
    for (const LinearizedNode& entry : walked.nodes) {
        if (entry.value || !entry.node->op) continue;
        for (int64_t length : entry.node->type->shape) {
            if (at == made.inferred.size() || registers[made.inferred[at]] != length) return false;
            ++at;
        }
    }
    return at == made.inferred.size();
}

// Where a number of an instruction stands; null when it has none such.
class Field {
  public:
    explicit Field(const SymbolicExecutable::Number& number) : number_(number) {}

    template <class T> bool operator()(T&) const { return false; }

    bool operator()(Executable::Allocate& made) const {
        if (number_.field == SymbolicExecutable::Number::bytes) return put(made.bytes);
        return number_.field == SymbolicExecutable::Number::stride && put_at(made.strides);
    }

    bool operator()(Executable::View& made) const {
        if (number_.field == SymbolicExecutable::Number::offset) return put(made.offset);
        return number_.field == SymbolicExecutable::Number::stride && put_at(made.strides);
    }

    bool operator()(Indirect<Executable::Run>& boxed) const {
        Executable::Run& run = *boxed;
        switch (number_.field) {
        case SymbolicExecutable::Number::place:
            return number_.index < run.buffers.size() && put(run.buffers[number_.index].offset);
        case SymbolicExecutable::Number::table: return put_at(run.tables);
        case SymbolicExecutable::Number::size: return put_size(run.sizes);
        case SymbolicExecutable::Number::bits:
            return number_.index < run.numbers.size() && put(run.numbers[number_.index].bits);
        case SymbolicExecutable::Number::scratch: return put(run.scratch);
        case SymbolicExecutable::Number::units: return put(run.units);
        case SymbolicExecutable::Number::grain: return put(run.grain);
        case SymbolicExecutable::Number::finished: return put(run.finished);
        default: return false;
        }
    }

    int64_t value = 0;

  private:
    template <class T> bool put(T& number) const {
        number = T(value);
        return true;
    }
    template <class T> bool put_at(std::vector<T>& numbers) const {
        return number_.index < numbers.size() && put(numbers[number_.index]);
    }
    bool put_size(std::string& sizes) const {
        if (8 * std::size_t(number_.index) + 8 > sizes.size()) return false;
        std::memcpy(sizes.data() + 8 * std::size_t(number_.index), &value, sizeof value);
        return true;
    }

    const SymbolicExecutable::Number& number_;
};

Ref<Type>* type_of(Executable::Instruction& instruction) {
    if (auto* made = std::get_if<Executable::Allocate>(&instruction)) return &made->type;
    if (auto* made = std::get_if<Executable::View>(&instruction)) return &made->type;
    return nullptr;
}

Ref<Type> with_lengths(const Type& type, const SymbolicExecutable::Shape& shape,
                       const Registers& registers) {
    std::array<int64_t, 8> few;
    std::vector<int64_t> many;
    if (shape.lengths.size() > few.size()) many.resize(shape.lengths.size());
    std::span<int64_t> lengths{many.empty() ? few.data() : many.data(), shape.lengths.size()};
    for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = registers[shape.lengths[i]];
    return intern_type({lengths, type.dtype, type.device, type.storage, type.weak});
}

// A plan with the instructions of a template's, to be filled in.
Ref<Executable> blank(const Executable& pattern) {
    auto plan = Ref<Executable>::adopt(new Executable(Owned()));
    plan->code = pattern.code;
    plan->instructions = pattern.instructions;
    plan->donated_inputs = pattern.donated_inputs;
    plan->slots = pattern.slots;
    return plan;
}

void fill_in(Executable& plan, const SymbolicExecutable& made, const Registers& registers) {
    for (const SymbolicExecutable::Number& number : made.numbers) {
        Field field(number);
        field.value = registers[number.from];
        std::visit(field, plan.instructions[number.instruction]);
    }
    for (const SymbolicExecutable::Shape& shape : made.shapes) {
        Ref<Type>& type = *type_of(plan.instructions[shape.instruction]);
        type = with_lengths(*type, shape, registers);
    }
}

// What is known of a form: the lengths that came first, and templates, the newest first.
struct SymbolicEntry {
    std::vector<int64_t> lengths;
    std::vector<Ref<SymbolicExecutable>> templates;
    int tries = 0;
};

struct SymbolicHash {
    std::size_t operator()(const std::vector<uint64_t>& words) const { return hash_of(words); }
};

using Table = std::unordered_map<std::vector<uint64_t>, SymbolicEntry, SymbolicHash>;

constexpr std::size_t CAPACITY = 4096;
constexpr std::size_t MOST_WORDS =
    1 << 22; // of all together, about: templates of long forms are large
constexpr std::size_t MOST_TEMPLATES = 12; // of a form
constexpr int MOST_TRIES = 16;

// The words of memory that a template takes, about.
std::size_t weight(const SymbolicExecutable& made) {
    constexpr std::size_t INSTRUCTION = sizeof(Executable::Instruction) / sizeof(uint64_t) + 20;
    return made.pattern->instructions.size() * INSTRUCTION + 2 * made.rows.size() +
           2 * made.numbers.size() + 50;
}

// Two generations stand for "least recently used", as in the memo.
struct KnownSymbolics {
    Lock lock; // protects everything here
    Table young, old;
    std::size_t weighs = 0; // words of the young ones, about

    SymbolicEntry* find(const std::vector<uint64_t>& words, Table& fallen) {
        if (auto found = young.find(words); found != young.end()) return &found->second;
        auto found = old.find(words);
        if (found == old.end()) return nullptr;
        auto entry = old.extract(found);
        return insert(std::move(entry.key()), std::move(entry.mapped()), fallen);
    }

    SymbolicEntry* insert(std::vector<uint64_t> words, SymbolicEntry entry, Table& fallen) {
        if (young.size() >= CAPACITY / 2 || weighs >= MOST_WORDS / 2) {
            fallen = std::exchange(old, std::exchange(young, {}));
            weighs = 0;
        }
        weighs += words.size();
        for (const Ref<SymbolicExecutable>& made : entry.templates) weighs += weight(*made);
        return &young.insert_or_assign(std::move(words), std::move(entry)).first->second;
    }
};

KnownSymbolics* const the_known =
    new KnownSymbolics; // made when the library is loaded; outlives every static object
std::atomic<bool> in_use{true};

KnownSymbolics& known() { return *the_known; }

[[maybe_unused]] Cache& joined =
    join({"templates of plans, by form", CAPACITY, known_forms, forget_templates});

// Those of a form; what is tried is held, so that it can be done outside the lock.
std::vector<Ref<SymbolicExecutable>> templates_of(const Form& form) {
    Table fallen;
    Guard guard(known().lock);
    SymbolicEntry* entry = known().find(form.words, fallen);
    return entry ? entry->templates : std::vector<Ref<SymbolicExecutable>>();
}

// In front of the table each thread has the templates it used last, each with a plan to be filled
// in for one shape after another, and notes for which keys it has done so.
class NearbySymbolics {
  public:
    static constexpr bool INHERITED = true;

    Ref<Executable> plan(const Form& form, const LinearizedGraph& walked, const Key& key) {
        forget_if_told();
        Used& used = used_[hash_of(form.words) % PLACES];
        bool known = used.made && used.words == form.words && ++used.uses % AGEING != 0;
        if (!known || !is_right(*used.made, form, walked)) { // the table is asked: there forms age
            auto made = templates_of(form);
            auto right =
                std::find_if(made.begin(), made.end(), [&](const Ref<SymbolicExecutable>& each) {
                    return is_right(*each, form, walked);
                });
            if (right == made.end()) return {};
            used = {form.words, *right, {}, 0};
        }
        bool free = used.plan && used.plan->references.load(std::memory_order_acquire) == 1;
        if (!free) used.plan = blank(*used.made->pattern);
        fill_in(*used.plan, *used.made, registers_);
        used.plan->moved = key.moved;
        if (!is_again(key)) return used.plan;
        Ref<Executable> kept = std::move(used.plan);
        kept->owned = Owned(walked);
        kept->key = key.words;
        keep_plan(kept);
        return kept;
    }

    void forget_if_told() {
        // Relaxed: a template that is found before the new epoch is seen is still right.
        uint64_t now = current_epoch.load(std::memory_order_relaxed);
        if (std::exchange(epoch_, now) != now) used_ = {}, seen_ = {};
    }

    static void tell_to_forget() { current_epoch.fetch_add(1, std::memory_order_relaxed); }

  private:
    static constexpr std::size_t PLACES = 16, SEEN = 1024, AGEING = 64;
    struct Used {
        std::vector<uint64_t> words; // of the form
        Ref<SymbolicExecutable> made;
        Ref<Executable> plan;
        std::size_t uses = 0;
    };

    bool is_right(const SymbolicExecutable& made, const Form& form, const LinearizedGraph& walked) {
        return compute(made, form.lengths, registers_) && as_inferred(made, walked, registers_);
    }

    // Two keys of one hash only have a plan kept a little sooner.
    bool is_again(const Key& key) {
        std::size_t hash = hash_of(key.words);
        return std::exchange(seen_[hash % SEEN], hash) == hash;
    }

    static inline std::atomic<uint64_t> current_epoch{0};
    std::array<Used, PLACES> used_;
    std::array<std::size_t, SEEN> seen_{};
    Registers registers_;
    uint64_t epoch_ = 0;
};

} // namespace

bool Form::write(const LinearizedGraph& walked, std::span<const uint64_t> options, bool rules) {
    words.assign(options.begin(), options.end());
    lengths.clear();
    axes.clear();
    return walked.nodes.size() <= MOST_NODES && Writing(walked, *this, rules).write();
}

bool SymbolicExecutable::is_sound() const {
    std::size_t registers = lengths + constants.size();
    for (const Row& row : rows)
        if (row.left >= registers || row.right >= registers++) return false;
    auto there = [&](Register of) { return of < registers; };
    std::vector<Executable::Instruction> instructions = pattern->instructions; // tried on these
    for (const Number& number : numbers)
        if (!there(number.from) || number.instruction >= instructions.size() ||
            !std::visit(Field(number), instructions[number.instruction]))
            return false;
    for (const Shape& shape : shapes)
        if (shape.instruction >= instructions.size() || !type_of(instructions[shape.instruction]) ||
            !std::all_of(shape.lengths.begin(), shape.lengths.end(), there))
            return false;
    return std::all_of(inferred.begin(), inferred.end(), there) &&
           std::all_of(guards.begin(), guards.end(), [&](const Guard& g) { return there(g.of); }) &&
           std::none_of(instructions.begin(), instructions.end(), [](const auto& each) {
               return std::holds_alternative<Indirect<Executable::Call>>(each);
           });
}

Ref<Executable> plan_from_template(const Form& form, const LinearizedGraph& walked,
                                   const Key& key) {
    if (!in_use.load(std::memory_order_relaxed)) return {};
    return ThreadLocal<NearbySymbolics>::get().plan(form, walked, key);
}

bool wants_template(const Form& form, bool able) {
    if (!in_use.load(std::memory_order_relaxed)) return false;
    Table fallen;
    Guard guard(known().lock);
    SymbolicEntry* entry = known().find(form.words, fallen);
    if (!entry) {
        known().insert(form.words, {form.lengths, {}, 0}, fallen);
        return false;
    }
    bool other = entry->lengths != form.lengths || !entry->templates.empty();
    return able && other && entry->templates.size() < MOST_TEMPLATES && entry->tries++ < MOST_TRIES;
}

std::size_t keep_template(const Form& form, Ref<SymbolicExecutable> made) {
    Ref<Executable> pattern = blank(*made->pattern);     // without what finds a plan
    pattern->owned.params = made->pattern->owned.params; // the form has their addresses
    made->pattern = std::move(pattern);
    Table fallen;
    Guard guard(known().lock);
    SymbolicEntry* entry = known().find(form.words, fallen);
    if (!entry) entry = known().insert(form.words, {form.lengths, {}, 1}, fallen);
    known().weighs += weight(*made);
    entry->templates.insert(entry->templates.begin(), std::move(made));
    return entry->templates.size();
}

void forget_templates() {
    Table young, old;
    NearbySymbolics::tell_to_forget();
    ThreadLocal<NearbySymbolics>::get().forget_if_told(); // this thread's at once
    Guard guard(known().lock);
    young.swap(known().young);
    old.swap(known().old);
    known().weighs = 0;
}

std::size_t kept_templates() {
    Guard guard(known().lock);
    std::size_t count = 0;
    for (const Table* table : {&known().young, &known().old})
        for (const auto& [words, entry] : *table) count += entry.templates.size();
    return count;
}

std::size_t known_forms() {
    Guard guard(known().lock);
    return known().young.size() + known().old.size();
}

void use_templates(bool now) { in_use.store(now, std::memory_order_relaxed); }

} // namespace tenfold
