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
class ParamsReader {
  public:
    explicit ParamsReader(std::string_view bytes) : bytes_(bytes) {}

    int64_t read(char tag) {
        if (!is(tag) || bytes_.size() - position_ < 1 + sizeof(int64_t))
            throw std::logic_error("these parameters say no part of an array");
        std::memcpy(&last_integer_, bytes_.data() + position_ + 1, sizeof last_integer_);
        position_ += 1 + sizeof last_integer_;
        return last_integer_;
    }
    int64_t tuple() { return read(TUPLE); }
    int64_t integer() { return read(INTEGER); }
    bool is(char tag) const { return position_ < bytes_.size() && bytes_[position_] == tag; }
    void skip() { ++position_; }
    std::size_t integer_offset() const { return position_ - sizeof(int64_t); }

  private:
    std::string_view bytes_;
    std::size_t position_ = 0;
    int64_t last_integer_ = 0;
};

struct SliceDim {
    int64_t start = 0, count = 1, step = 1;
    bool keeps_axis = false; // whether it leaves an axis
};

struct SliceSpec {
    std::vector<SliceDim> dims;
    std::vector<int64_t> new_axes; // the positions of new axes
    std::vector<std::size_t> start_offsets;
};

SliceSpec parse_slice(std::string_view bytes) {
    ParamsReader reader(bytes);
    SliceSpec spec;
    reader.tuple();
    for (int64_t remaining = reader.tuple(); remaining > 0; --remaining) {
        SliceDim dim;
        dim.keeps_axis = reader.is(TUPLE);
        if (dim.keeps_axis) reader.tuple();
        dim.start = reader.integer();
        spec.start_offsets.push_back(reader.integer_offset());
        if (dim.keeps_axis) dim.count = reader.integer(), dim.step = reader.integer();
        spec.dims.push_back(dim);
    }
    for (int64_t remaining = reader.tuple(); remaining > 0; --remaining)
        spec.new_axes.push_back(reader.integer());
    return spec;
}

// Where the starts of an access stand.
std::vector<std::size_t> start_offsets_in_access(std::string_view bytes) {
    ParamsReader reader(bytes);
    std::vector<std::size_t> offsets;
    reader.tuple();
    for (int64_t remaining = reader.tuple(); remaining > 0; --remaining) {
        reader.tuple();
        if (reader.is(NONE))
            reader.skip();
        else
            reader.integer();
        reader.integer();
        reader.integer();
        offsets.push_back(reader.integer_offset());
    }
    return offsets;
}

std::vector<std::size_t> start_offsets(Op::Part part, std::string_view bytes) {
    return part == Op::slice ? parse_slice(bytes).start_offsets : start_offsets_in_access(bytes);
}

Starts* read_starts(const Op& op, const Params& params) {
    auto starts_data = std::make_unique<Starts>();
    std::string pattern = params.bytes;
    std::vector<int64_t> starts;
    bool has_offset = false;
    for (std::size_t offset : start_offsets(op.part, pattern)) {
        int64_t start;
        std::memcpy(&start, pattern.data() + offset, sizeof start);
        std::memset(pattern.data() + offset, 0, sizeof start);
        starts.push_back(start);
        has_offset |= start != 0;
    }
    starts_data->starts = AxisVector(starts);
    starts_data->part = op.part;
    starts_data->pattern = has_offset ? intern_params(pattern).detach() : &params;
    return starts_data.release();
}

// Params that are told by their starts.
struct OffsetParams : Params {
    Starts starts_data;
};

// The shape of a slice.
std::vector<int64_t> shape_of(const SliceSpec& picks) {
    std::vector<int64_t> shape;
    for (const SliceDim& pick : picks.dims)
        if (pick.keeps_axis) shape.push_back(pick.count);
    for (int64_t position : picks.new_axes) shape.insert(shape.begin() + position, 1);
    return shape;
}

} // namespace

const Starts& starts_of(const Op& op, const Params& params) {
    // Acquire and release: a thread that finds them sees their contents.
    if (const Starts* existing = params.starts.load(std::memory_order_acquire)) return *existing;
    const Starts* created = read_starts(op, params);
    const Starts* expected = nullptr;
    if (params.starts.compare_exchange_strong(expected, created, std::memory_order_acq_rel))
        return *created;
    destroy_starts(created, params);
    return *expected;
}

void destroy_starts(const Starts* starts, const Params& owner) {
    if (starts && starts->pattern != &owner) release(const_cast<Params*>(starts->pattern));
    delete starts;
}

void destroy_offset_params(Params* params) {
    auto* part = static_cast<OffsetParams*>(params);
    release(const_cast<Params*>(part->starts_data.pattern));
    delete part;
}

Ref<Params> params_with_starts(const Op& op, const Params& pattern, const AxisVector& starts) {
    auto start_values = starts.span();
    auto& pattern_params = const_cast<Params&>(pattern);
    if (std::ranges::all_of(start_values, [](int64_t start) { return start == 0; }))
        return Ref<Params>(&pattern_params);
    auto* result = new OffsetParams;
    static_cast<Params*>(result)->has_starts = true;
    retain(&pattern_params);
    result->starts_data.starts = starts;
    result->starts_data.pattern = &pattern;
    result->starts_data.part = op.part;
    result->starts.store(&result->starts_data, std::memory_order_release);
    return Ref<Params>::adopt(result);
}

std::string bytes_of(const Params& params) {
    if (!params.has_starts) return params.bytes;
    const Starts& starts = *params.starts.load(std::memory_order_acquire);
    std::string bytes = starts.pattern->bytes;
    auto offsets = start_offsets(starts.part, bytes);
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        int64_t start = starts.starts[i];
        std::memcpy(bytes.data() + offsets[i], &start, sizeof start);
    }
    return bytes;
}

namespace {

// Axes may be added.
bool is_whole(const SliceSpec& spec, const Type& array) {
    bool covers = true;
    for (std::size_t axis = 0; axis < spec.dims.size(); ++axis) {
        const SliceDim& pick = spec.dims[axis];
        covers &= pick.keeps_axis && pick.count == array.shape[axis] && pick.step == 1;
    }
    return covers;
}

bool is_full_slice(const SliceSpec& spec, const Type& array) {
    return spec.new_axes.empty() && is_whole(spec, array);
}

Ref<Params> make_update_params(const Params& params, const Type& array) {
    SliceSpec spec = parse_slice(params.bytes);
    std::vector<int64_t> shape = shape_of(spec);
    std::string bytes;
    write_tuple(bytes, 2);
    write_tuple(bytes, int64_t(spec.dims.size()));
    int64_t place = 0;
    std::size_t next = 0; // new axis
    for (std::size_t axis = 0; axis < spec.dims.size(); ++axis) {
        const SliceDim& pick = spec.dims[axis];
        if (pick.count == 0) return {};
        while (pick.keeps_axis && next < spec.new_axes.size() && spec.new_axes[next] == place)
            ++next, ++place;
        write_tuple(bytes, 3);
        bool several = pick.keeps_axis && pick.count > 1;
        if (several)
            write_integer(bytes, place);
        else
            write_none(bytes);
        write_integer(bytes, several ? pick.step : 0);
        write_integer(bytes, pick.start);
        place += pick.keeps_axis;
    }
    if (is_full_slice(spec, array)) return {};
    write_tuple(bytes, int64_t(shape.size()));
    for (int64_t length : shape) write_integer(bytes, length);
    return intern_params(bytes);
}

} // namespace

bool slice_shape(const Params& picks, const Type& array, std::vector<int64_t>& shape) {
    SliceSpec spec = parse_slice(picks.bytes);
    for (int64_t length : shape_of(spec)) shape.push_back(length);
    return spec.dims.size() == array.shape.size();
}

ViewMap slice_view_map(const Params& picks) {
    SliceSpec spec = parse_slice(picks.bytes);
    ViewMap map{ViewMap::affine, {}};
    int64_t axis = 0;
    std::size_t next = 0; // new axis
    for (const SliceDim& pick : spec.dims) {
        while (pick.keeps_axis && next < spec.new_axes.size() && spec.new_axes[next] == axis)
            ++next, ++axis;
        map.steps.push_back({pick.keeps_axis ? axis++ : ViewMap::NO_AXIS, pick.step, pick.start});
    }
    return map;
}

SliceUpdate parse_slice_update(const Params& pattern) {
    ParamsReader reader(pattern.bytes);
    SliceUpdate update{{ViewMap::affine, {}}, {}};
    reader.tuple();
    for (int64_t remaining = reader.tuple(); remaining > 0; --remaining) {
        reader.tuple();
        int64_t axis = ViewMap::NO_AXIS;
        if (reader.is(NONE))
            reader.skip();
        else
            axis = reader.integer();
        int64_t coefficient = reader.integer(), start = reader.integer();
        update.view_map.steps.push_back({axis, coefficient, start});
    }
    for (int64_t remaining = reader.tuple(); remaining > 0; --remaining)
        update.shape.push_back(reader.integer());
    return update;
}

bool is_full_slice(const Params& picks, const Type& array) {
    return is_full_slice(parse_slice(bytes_of(picks)), array);
}

namespace {

// The extent of a slice from its start on, as a kind and a number.
enum ExtentKind : uint64_t { to_end, all_but_last, exact_count };

std::pair<ExtentKind, int64_t> extent_of(const SliceDim& pick, int64_t start, int64_t length) {
    int64_t step = std::abs(pick.step), available = pick.step > 0 ? length - start : start + 1;
    int64_t remaining = available - 1 - (pick.count - 1) * step;
    if (pick.count > 0 && remaining < step) return {to_end, 0};
    if (pick.count > 0 && step == 1 && remaining < pick.count) return {all_but_last, remaining};
    return {exact_count, pick.count};
}

} // namespace

// Of each axis whether it begins nearer to the end, and how far from there; and its stretch.
bool append_slice_key(const Op& index, const Params& picks, const Type& array,
                      std::vector<uint64_t>& words) {
    const Starts& starts_data = starts_of(index, picks);
    SliceSpec spec = parse_slice(starts_data.pattern->bytes);
    bool starts_at_zero = true;
    for (std::size_t axis = 0; axis < spec.dims.size(); ++axis) {
        const SliceDim& pick = spec.dims[axis];
        int64_t start = starts_data.starts[axis], length = array.shape[axis];
        bool backwards = start > length - 1 - start;
        auto [stretch, number] = extent_of(pick, start, length);
        words.push_back(uint64_t(pick.keeps_axis) | uint64_t(backwards) << 1 | stretch << 2);
        words.push_back(uint64_t(backwards ? length - start : start));
        words.push_back(uint64_t(pick.step));
        words.push_back(uint64_t(number));
        starts_at_zero &= start == 0;
    }
    words.insert(words.end(), spec.new_axes.begin(), spec.new_axes.end());
    return starts_at_zero && is_whole(spec, array);
}

Ref<Params> update_params_for(const Op& index, const Op& update, const Params& picks, Type& array) {
    const Starts& part = starts_of(index, picks);
    const Starts& starts_data = starts_of(index, *part.pattern);
    if (starts_data.array.get() != &array) {
        starts_data.update_params = make_update_params(*part.pattern, array);
        starts_data.array = Ref<Type>(&array);
    }
    return starts_data.update_params
               ? params_with_starts(update, *starts_data.update_params, part.starts)
               : starts_data.update_params;
}

void write_tuple(std::string& bytes, int64_t length) { append(bytes, TUPLE, length); }
void write_integer(std::string& bytes, int64_t number) { append(bytes, INTEGER, number); }
void write_none(std::string& bytes) { bytes.push_back(NONE); }

} // namespace tenfold
