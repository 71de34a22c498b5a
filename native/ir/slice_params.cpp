#include "ir/slice_params.h"

#include <cstring>
#include <memory>
#include <stdexcept>

namespace tenfold {
namespace {

constexpr char TUPLE = '(', INTEGER = 'i', NONE = 'N';

void append(std::string& bytes, char tag, int64_t number) {
    bytes.push_back(tag);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Goes through canonical bytes, and knows where the number it has read last stands.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    int64_t number(char tag) {
        if (!is(tag) || bytes_.size() - at_ < 1 + sizeof(int64_t))
            throw std::logic_error("these parameters say no part of an array");
        std::memcpy(&last_, bytes_.data() + at_ + 1, sizeof last_);
        at_ += 1 + sizeof last_;
        return last_;
    }
    int64_t tuple() { return number(TUPLE); }
    int64_t integer() { return number(INTEGER); }
    bool is(char tag) const { return at_ < bytes_.size() && bytes_[at_] == tag; }
    void skip() { ++at_; }
    std::size_t place() const { return at_ - sizeof(int64_t); }

  private:
    std::string_view bytes_;
    std::size_t at_ = 0;
    int64_t last_ = 0;
};

struct Pick {
    int64_t start = 0, count = 1, step = 1;
    bool axis = false; // whether it leaves an axis
};

struct Picks {
    std::vector<Pick> picks;
    std::vector<int64_t> added; // the positions of new axes
    std::vector<std::size_t> places;
};

Picks read_picks(std::string_view bytes) {
    Reader reader(bytes);
    Picks found;
    reader.tuple();
    for (int64_t left = reader.tuple(); left > 0; --left) {
        Pick pick;
        pick.axis = reader.is(TUPLE);
        if (pick.axis) reader.tuple();
        pick.start = reader.integer();
        found.places.push_back(reader.place());
        if (pick.axis) pick.count = reader.integer(), pick.step = reader.integer();
        found.picks.push_back(pick);
    }
    for (int64_t left = reader.tuple(); left > 0; --left) found.added.push_back(reader.integer());
    return found;
}

// Where the starts of an access stand.
std::vector<std::size_t> places_in_access(std::string_view bytes) {
    Reader reader(bytes);
    std::vector<std::size_t> places;
    reader.tuple();
    for (int64_t left = reader.tuple(); left > 0; --left) {
        reader.tuple();
        if (reader.is(NONE))
            reader.skip();
        else
            reader.integer();
        reader.integer();
        reader.integer();
        places.push_back(reader.place());
    }
    return places;
}

std::vector<std::size_t> places_of(Op::Part part, std::string_view bytes) {
    return part == Op::taken ? read_picks(bytes).places : places_in_access(bytes);
}

Starts* read_starts(const Op& op, const Params& params) {
    auto found = std::make_unique<Starts>();
    std::string pattern = params.bytes;
    std::vector<int64_t> starts;
    bool moved = false;
    for (std::size_t place : places_of(op.part, pattern)) {
        int64_t start;
        std::memcpy(&start, pattern.data() + place, sizeof start);
        std::memset(pattern.data() + place, 0, sizeof start);
        starts.push_back(start);
        moved |= start != 0;
    }
    found->starts = PerAxis(starts);
    found->part = op.part;
    found->pattern = moved ? intern_params(pattern).detach() : &params;
    return found.release();
}

// Params that are told by their starts.
struct Moved : Params {
    Starts own;
};

// The shape of what is taken.
std::vector<int64_t> shape_of(const Picks& picks) {
    std::vector<int64_t> shape;
    for (const Pick& pick : picks.picks)
        if (pick.axis) shape.push_back(pick.count);
    for (int64_t position : picks.added) shape.insert(shape.begin() + position, 1);
    return shape;
}

} // namespace

const Starts& starts_of(const Op& op, const Params& params) {
    // Acquire and release: a thread that finds them sees their contents.
    if (const Starts* known = params.starts.load(std::memory_order_acquire)) return *known;
    const Starts* made = read_starts(op, params);
    const Starts* before = nullptr;
    if (params.starts.compare_exchange_strong(before, made, std::memory_order_acq_rel))
        return *made;
    destroy_starts(made, params);
    return *before;
}

void destroy_starts(const Starts* starts, const Params& of) {
    if (starts && starts->pattern != &of) release(const_cast<Params*>(starts->pattern));
    delete starts;
}

void destroy_moved(Params* params) {
    auto* part = static_cast<Moved*>(params);
    release(const_cast<Params*>(part->own.pattern));
    delete part;
}

Ref<Params> moved(const Op& op, const Params& pattern, const PerAxis& starts) {
    auto numbers = starts.span();
    auto& given = const_cast<Params&>(pattern);
    if (std::ranges::all_of(numbers, [](int64_t start) { return start == 0; }))
        return Ref<Params>(&given);
    auto* made = new Moved;
    static_cast<Params*>(made)->moved = true;
    retain(&given);
    made->own.starts = starts;
    made->own.pattern = &pattern;
    made->own.part = op.part;
    made->starts.store(&made->own, std::memory_order_release);
    return Ref<Params>::adopt(made);
}

std::string bytes_of(const Params& params) {
    if (!params.moved) return params.bytes;
    const Starts& known = *params.starts.load(std::memory_order_acquire);
    std::string bytes = known.pattern->bytes;
    auto places = places_of(known.part, bytes);
    for (std::size_t i = 0; i < places.size(); ++i) {
        int64_t start = known.starts[i];
        std::memcpy(bytes.data() + places[i], &start, sizeof start);
    }
    return bytes;
}

namespace {

// Axes may be added.
bool is_whole(const Picks& found, const Type& array) {
    bool all = true;
    for (std::size_t axis = 0; axis < found.picks.size(); ++axis) {
        const Pick& pick = found.picks[axis];
        all &= pick.axis && pick.count == array.shape[axis] && pick.step == 1;
    }
    return all;
}

bool is_all(const Picks& found, const Type& array) {
    return found.added.empty() && is_whole(found, array);
}

Ref<Params> written_part(const Params& params, const Type& array) {
    Picks found = read_picks(params.bytes);
    std::vector<int64_t> shape = shape_of(found);
    std::string bytes;
    write_tuple(bytes, 2);
    write_tuple(bytes, int64_t(found.picks.size()));
    int64_t place = 0;
    std::size_t next = 0; // new axis
    for (std::size_t axis = 0; axis < found.picks.size(); ++axis) {
        const Pick& pick = found.picks[axis];
        if (pick.count == 0) return {};
        while (pick.axis && next < found.added.size() && found.added[next] == place)
            ++next, ++place;
        write_tuple(bytes, 3);
        bool several = pick.axis && pick.count > 1;
        if (several)
            write_integer(bytes, place);
        else
            write_none(bytes);
        write_integer(bytes, several ? pick.step : 0);
        write_integer(bytes, pick.start);
        place += pick.axis;
    }
    if (is_all(found, array)) return {};
    write_tuple(bytes, int64_t(shape.size()));
    for (int64_t length : shape) write_integer(bytes, length);
    return intern_params(bytes);
}

} // namespace

bool taken_shape(const Params& picks, const Type& array, std::vector<int64_t>& shape) {
    Picks found = read_picks(picks.bytes);
    for (int64_t length : shape_of(found)) shape.push_back(length);
    return found.picks.size() == array.shape.size();
}

ViewMap taken_movement(const Params& picks) {
    Picks found = read_picks(picks.bytes);
    ViewMap made{ViewMap::affine, {}};
    int64_t axis = 0;
    std::size_t next = 0; // new axis
    for (const Pick& pick : found.picks) {
        while (pick.axis && next < found.added.size() && found.added[next] == axis) ++next, ++axis;
        made.steps.push_back({pick.axis ? axis++ : ViewMap::NO_AXIS, pick.step, pick.start});
    }
    return made;
}

Replaced replaced_by(const Params& pattern) {
    Reader reader(pattern.bytes);
    Replaced found{{ViewMap::affine, {}}, {}};
    reader.tuple();
    for (int64_t left = reader.tuple(); left > 0; --left) {
        reader.tuple();
        int64_t axis = ViewMap::NO_AXIS;
        if (reader.is(NONE))
            reader.skip();
        else
            axis = reader.integer();
        int64_t coefficient = reader.integer(), start = reader.integer();
        found.movement.steps.push_back({axis, coefficient, start});
    }
    for (int64_t left = reader.tuple(); left > 0; --left) found.shape.push_back(reader.integer());
    return found;
}

bool is_all(const Params& picks, const Type& array) {
    return is_all(read_picks(bytes_of(picks)), array);
}

namespace {

// How many are taken from a start on, as a kind of number and the number.
enum Stretch : uint64_t { all_left, all_but, so_many };

std::pair<Stretch, int64_t> stretch_of(const Pick& pick, int64_t start, int64_t length) {
    int64_t step = std::abs(pick.step), room = pick.step > 0 ? length - start : start + 1;
    int64_t left = room - 1 - (pick.count - 1) * step;
    if (pick.count > 0 && left < step) return {all_left, 0};
    if (pick.count > 0 && step == 1 && left < pick.count) return {all_but, left};
    return {so_many, pick.count};
}

} // namespace

// Of each axis whether it begins nearer to the end, and how far from there; and its stretch.
bool write_picks(const Op& index, const Params& picks, const Type& array,
                 std::vector<uint64_t>& words) {
    const Starts& known = starts_of(index, picks);
    Picks found = read_picks(known.pattern->bytes);
    bool begins = true;
    for (std::size_t axis = 0; axis < found.picks.size(); ++axis) {
        const Pick& pick = found.picks[axis];
        int64_t start = known.starts[axis], length = array.shape[axis];
        bool backwards = start > length - 1 - start;
        auto [stretch, number] = stretch_of(pick, start, length);
        words.push_back(uint64_t(pick.axis) | uint64_t(backwards) << 1 | stretch << 2);
        words.push_back(uint64_t(backwards ? length - start : start));
        words.push_back(uint64_t(pick.step));
        words.push_back(uint64_t(number));
        begins &= start == 0;
    }
    words.insert(words.end(), found.added.begin(), found.added.end());
    return begins && is_whole(found, array);
}

Ref<Params> replaced_part(const Op& index, const Op& update, const Params& picks, Type& array) {
    const Starts& part = starts_of(index, picks);
    const Starts& known = starts_of(index, *part.pattern);
    if (known.array.get() != &array) {
        known.replaced = written_part(*part.pattern, array);
        known.array = Ref<Type>(&array);
    }
    return known.replaced ? moved(update, *known.replaced, part.starts) : known.replaced;
}

void write_tuple(std::string& bytes, int64_t length) { append(bytes, TUPLE, length); }
void write_integer(std::string& bytes, int64_t number) { append(bytes, INTEGER, number); }
void write_none(std::string& bytes) { bytes.push_back(NONE); }

} // namespace tenfold
