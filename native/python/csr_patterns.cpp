// Patterns of matrices in compressed rows: sorts, merges and multiplies them on the worker pool, by
// parts of about equal work; the result is the same for any parts. Takes arrays of int32 or int64,
// returns patterns of that dtype, and positions of elements in int32 if that can count them. No
// index is trusted: one out of range throws.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <ranges>

#include "memory/allocation_pool.h"
#include "python/python_objects.h"
#include "threads/cpu_device.h"

namespace tenfold::bindings {

namespace {

constexpr std::size_t PART_ELEMENTS = 1 << 14; // at least, of a part but the only one
constexpr std::size_t SHORT_ROW = 32;          // elements, up to which ranks sort a row
constexpr int BUCKET_BITS = 8;                 // of the number of buckets that a sort writes to

template <class Index>
using Input = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Memory of the pool that becomes a read-only array of NumPy.
template <class Index> struct Indices {
    using Memory = std::unique_ptr<Index[], PoolFree>;
    Memory data;
    std::size_t length;

    explicit Indices(std::size_t size) : length(size) {
        std::size_t bytes = std::max<std::size_t>(size, 1) * sizeof(Index);
        data = Memory(static_cast<Index*>(pool_allocate(bytes)), PoolFree{bytes});
        if (!data) throw std::bad_alloc();
    }
    Index& operator[](std::size_t at) { return data[at]; }
    Index* begin() { return data.get(); }
    Index* end() { return begin() + length; }
    void move_back(std::size_t first, std::size_t last, std::size_t to) {
        std::memmove(begin() + to, begin() + first, (last - first) * sizeof(Index));
    }
    nb::object to_python() {
        auto* kept = new Memory(std::move(data));
        nb::capsule owner(kept, [](void* at) noexcept { delete static_cast<Memory*>(at); });
        return nb::cast(
            nb::ndarray<nb::numpy, const Index, nb::ndim<1>>(kept->get(), {length}, owner));
    }
};

template <class... Arrays> nb::tuple tuple_of(Arrays&... arrays) {
    return nb::make_tuple(arrays.to_python()...);
}

[[noreturn]] void throw_range() { throw nb::index_error("an index is out of range"); }

template <class Index> void check_count(std::size_t elements) {
    if (elements > std::size_t(std::numeric_limits<Index>::max()))
        throw std::overflow_error("the elements are too many for these indices");
}

template <class Index> struct Pattern {
    const Index *indices, *indptr;
    std::size_t size, rows;

    // Throws for arrays that are no pattern of so many columns.
    Pattern(const Input<Index>& indices_array, const Input<Index>& indptr_array, int64_t columns)
        : indices(indices_array.data()), indptr(indptr_array.data()), size(indices_array.size()),
          rows(indptr_array.size() - 1) {
        bool fits = indptr_array.size() > 0 && indptr[0] == 0 && indptr[rows] == Index(size) &&
                    std::is_sorted(indptr, indptr + rows + 1);
        using Unsigned = std::make_unsigned_t<Index>;
        Unsigned largest = 0; // of a negative one, too
        for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, Unsigned(indices[i]));
        if (!fits || (size > 0 && uint64_t(largest) >= uint64_t(columns)))
            throw nb::index_error("no pattern of a matrix in compressed rows");
    }
};

std::size_t num_parts(std::size_t elements, int threads) {
    return std::clamp<std::size_t>(elements / PART_ELEMENTS, 1, 4 * std::size_t(threads));
}

// Calls function(part) for each part.
template <class Function> void for_parts(std::size_t parts, int threads, Function function) {
    auto run = [](void** buffers, const int64_t*, const double*, void*, int64_t begin,
                  int64_t end) -> int64_t {
        try {
            for (; begin < end; ++begin) (*static_cast<Function*>(buffers[0]))(std::size_t(begin));
        } catch (const std::bad_alloc&) { return 1; }
        return 0;
    };
    if (!launch_object(HostKernel(run), &function, int64_t(parts), 1, threads))
        throw std::bad_alloc();
}

// Fills rows: fill(row, at) of make_fill(), one for each part, writes the elements of a row from
// `at` on and returns their end. There is room for start_of(row) elements before each row; gaps
// that stay between parts are closed.
template <class Index, class StartOf, class MakeFill, class... Arrays>
void fill_rows(int threads, Indices<Index>& indptr, StartOf start_of, MakeFill make_fill,
               Arrays&... arrays) {
    const std::size_t rows = indptr.length - 1, size = std::size_t(start_of(rows)),
                      parts = num_parts(size, threads);
    std::vector<std::size_t> firsts(parts + 1, rows);
    for (std::size_t part = 0; part < parts; ++part) {
        auto numbers = std::views::iota(std::size_t(0), rows);
        firsts[part] = *std::ranges::lower_bound(numbers, size / parts * part, {}, start_of);
    }
    indptr[0] = 0;
    for_parts(parts, threads, [&](std::size_t part) {
        auto fill = make_fill();
        auto at = std::size_t(start_of(firsts[part]));
        for (std::size_t row = firsts[part]; row < firsts[part + 1]; ++row) {
            at = fill(row, at);
            indptr[row + 1] = Index(at);
        }
    });
    std::size_t at = 0;
    for (std::size_t part = 0; part < parts; ++part) {
        if (firsts[part] == firsts[part + 1]) continue;
        const auto first = std::size_t(start_of(firsts[part])),
                   last = std::size_t(indptr[firsts[part + 1]]);
        if (first > at) {
            (arrays.move_back(first, last, at), ...);
            for (std::size_t row = firsts[part]; row < firsts[part + 1]; ++row)
                indptr[row + 1] -= Index(first - at);
        }
        at += last - first;
    }
    ((arrays.length = at), ...);
}

// Calls function(Position()), of an integer that counts to `largest`.
template <class Function> nb::tuple with_position(std::size_t largest, Function function) {
    return largest < std::size_t(std::numeric_limits<int32_t>::max()) ? function(int32_t())
                                                                      : function(int64_t());
}

// An element of a row, and its number before it is sorted.
template <class Position> struct Element {
    Position column, number;
    friend auto operator<=>(const Element&, const Element&) = default;
};

// Sorts elements, whose numbers ascend, by column. Ranks need no branches.
template <class Position> void sort_row(Element<Position>* elements, std::size_t size) {
    if (size > SHORT_ROW) return std::sort(elements, elements + size);
    Element<Position> unsorted[SHORT_ROW];
    uint32_t ranks[SHORT_ROW];
    for (std::size_t i = 0; i < size; ++i) {
        unsorted[i] = elements[i];
        uint32_t rank = 0;
        for (std::size_t j = 0; j < i; ++j) {
            const bool is_less = unsorted[i].column < unsorted[j].column;
            ranks[j] += is_less;
            rank += !is_less;
        }
        ranks[i] = rank;
    }
    for (std::size_t i = 0; i < size; ++i) elements[ranks[i]] = unsorted[i];
}

// Sorts the elements of a matrix by keys from 0 to `count` - 1, those of one key in order: by
// buckets of keys, then in each, so that both passes stay in the cache. visit(begin, end, take)
// calls take(key, value, number) for elements by number; then finish(key, begin, elements, size)
// gets those of each key, which `begin` others precede.
template <class Position, class Visit, class Finish>
void sort_by_key(std::size_t size, std::size_t count, int threads, Visit visit, Finish finish) {
    const int shift = std::max(0, int(std::bit_width(count)) - BUCKET_BITS);
    const std::size_t keys = std::size_t(1) << shift, buckets = (count + keys - 1) / keys,
                      parts = num_parts(size, threads);
    struct Entry {
        Position key;
        Element<Position> element;
    };
    auto entries = std::make_unique_for_overwrite<Entry[]>(size);
    std::vector<std::size_t> next(parts * buckets), firsts;
    auto visit_part = [&](std::size_t part, auto take) {
        visit(size * part / parts, size * (part + 1) / parts, take);
    };
    for_parts(parts, threads, [&](std::size_t part) {
        std::size_t* counts = &next[part * buckets];
        visit_part(part, [&](auto key, auto, std::size_t) { ++counts[key >> shift]; });
    });
    std::size_t total = 0;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
        firsts.push_back(total);
        for (std::size_t at = bucket; at < next.size(); at += buckets)
            total += std::exchange(next[at], total);
    }
    firsts.push_back(total);
    for_parts(parts, threads, [&](std::size_t part) {
        std::size_t* places = &next[part * buckets];
        visit_part(part, [&](auto key, auto value, std::size_t number) {
            const std::size_t at = places[key >> shift]++;
            if (at < size) // unless keys have changed meanwhile
                entries[at] = {Position(key), {Position(value), Position(number)}};
        });
    });
    for_parts(buckets, threads, [&](std::size_t bucket) {
        const std::size_t first = firsts[bucket], last = firsts[bucket + 1];
        std::vector<Position> ends(keys);
        std::vector<Element<Position>> sorted(last - first);
        auto key_in_bucket = [&](std::size_t at) {
            return std::size_t(entries[at].key) & (keys - 1);
        };
        for (std::size_t at = first; at < last; ++at) ++ends[key_in_bucket(at)];
        std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), Position(0));
        for (std::size_t at = first; at < last; ++at)
            sorted[std::size_t(ends[key_in_bucket(at)]++)] = entries[at].element;
        std::size_t begin = 0;
        for (std::size_t key = 0; key < std::min(keys, count - bucket * keys); ++key) {
            const auto end = std::size_t(ends[key]);
            finish(bucket * keys + key, first + begin, sorted.data() + begin, end - begin);
            begin = end;
        }
    });
}

// Removes columns that occur twice in a row of sorted ones, and sets for each the number of the one
// that stays.
template <class Index, class Position>
void remove_repeated(Indices<Index>& indices, Indices<Index>& indptr, Indices<Position>& group) {
    group = Indices<Position>(indices.length);
    std::size_t distinct = 0, i = 0;
    for (std::size_t row = 0; row + 1 < indptr.length; ++row) {
        const std::size_t first = i;
        for (; i < std::size_t(indptr[row + 1]); ++i) {
            if (i == first || indices[distinct - 1] != indices[i]) indices[distinct++] = indices[i];
            group[i] = Position(distinct - 1);
        }
        indptr[row + 1] = Index(distinct);
    }
    indices.length = distinct;
}

// sort_elements(rows, columns, m, n, threads) -> (order, indices, indptr, group): of elements by
// row, then by column, in order where a place occurs twice; `group`: the distinct place of each,
// empty if all are distinct; `order` is empty if they stand so.
template <class Index>
nb::tuple sort_elements(const Input<Index>& row_array, const Input<Index>& column_array,
                        int64_t row_count, int64_t column_count, int threads) {
    const Index *rows = row_array.data(), *columns = column_array.data();
    const std::size_t size = row_array.size(), num_rows = std::size_t(row_count);
    if (size != column_array.size()) throw nb::index_error("unequal lengths");
    const std::size_t largest = std::max({size, num_rows, std::size_t(column_count)});
    return with_position(largest, [&]<class Position>(Position) {
        nb::gil_scoped_release released;
        Indices<Index> indices(size), indptr(num_rows + 1);
        Indices<Position> order(0), group(0);
        std::atomic<bool> fits = true, repeats = false;
        // Others may write meanwhile, so each index is read once by a pass.
        auto visit = [&](std::size_t begin, std::size_t end, auto take) {
            for (std::size_t i = begin; i < end; ++i) {
                const Index row = rows[i], column = columns[i];
                if (row < 0 || int64_t(row) >= row_count || column < 0 ||
                    int64_t(column) >= column_count) {
                    fits = false;
                    return;
                }
                take(row, column, i);
            }
        };
        std::size_t num_ordered = 0;
        for (std::size_t i = 1; i < size && num_ordered + 1 == i; ++i)
            num_ordered +=
                rows[i - 1] < rows[i] || (rows[i - 1] == rows[i] && columns[i - 1] <= columns[i]);
        const bool is_ordered = num_ordered + 1 >= size;
        if (!is_ordered) order = Indices<Position>(size);
        indptr[0] = 0;
        auto finish = [&](std::size_t row, std::size_t begin, Element<Position>* elements,
                          std::size_t count) {
            sort_row(elements, count);
            bool found = false;
            for (std::size_t i = 0; i < count; ++i) {
                indices[begin + i] = Index(elements[i].column);
                if (!is_ordered) order[begin + i] = elements[i].number;
                found |= i > 0 && elements[i - 1].column == elements[i].column;
            }
            indptr[row + 1] = Index(begin + count);
            if (found) repeats = true;
        };
        sort_by_key<Position>(size, num_rows, threads, visit, finish);
        if (!fits) throw_range();
        if (repeats) remove_repeated(indices, indptr, group);
        nb::gil_scoped_acquire acquired;
        return tuple_of(order, indices, indptr, group);
    });
}

// transpose_pattern(indices, indptr, n, threads) -> (indices, indptr, order)
template <class Index>
nb::tuple transpose_pattern(const Input<Index>& indices, const Input<Index>& indptr,
                            int64_t columns, int threads) {
    return with_position(
        std::max({indices.size(), indptr.size(), std::size_t(columns)}),
        [&]<class Position>(Position) {
            nb::gil_scoped_release released;
            Pattern pattern(indices, indptr, columns);
            Indices<Index> rows(pattern.size), bounds(std::size_t(columns) + 1);
            Indices<Position> order(pattern.size);
            bounds[0] = 0;
            auto visit = [&](std::size_t begin, std::size_t end, auto take) {
                const Index* stops = pattern.indptr + 1;
                auto row = std::upper_bound(stops, stops + pattern.rows, Index(begin)) - stops;
                for (std::size_t i = begin; i < end; ++row)
                    for (; i < std::min(end, std::size_t(stops[row])); ++i)
                        take(pattern.indices[i], row, i);
            };
            auto finish = [&](std::size_t column, std::size_t begin,
                              const Element<Position>* elements, std::size_t count) {
                for (std::size_t i = 0; i < count; ++i) {
                    rows[begin + i] = Index(elements[i].column);
                    order[begin + i] = elements[i].number;
                }
                bounds[column + 1] = Index(begin + count);
            };
            sort_by_key<Position>(pattern.size, std::size_t(columns), threads, visit, finish);
            nb::gil_scoped_acquire acquired;
            return tuple_of(rows, bounds, order);
        });
}

// merge_patterns(indices, indptr, indices, indptr, n, threads) -> (indices, indptr, first, second):
// the union, and the position of each element in both; -1 where it is none.
template <class Index>
nb::tuple merge_patterns(const Input<Index>& x_indices, const Input<Index>& x_indptr,
                         const Input<Index>& y_indices, const Input<Index>& y_indptr,
                         int64_t columns, int threads) {
    const std::size_t total = x_indices.size() + y_indices.size();
    check_count<Index>(total);
    return with_position(total, [&]<class Position>(Position) {
        nb::gil_scoped_release released;
        Pattern x(x_indices, x_indptr, columns), y(y_indices, y_indptr, columns);
        if (x.rows != y.rows) throw nb::index_error("unequal numbers of rows");
        Indices<Index> indices(total), indptr(x.rows + 1);
        Indices<Position> first(total), second(total);
        auto fill = [&](std::size_t row, std::size_t at) {
            auto i = Position(x.indptr[row]), j = Position(y.indptr[row]);
            const auto last_i = Position(x.indptr[row + 1]), last_j = Position(y.indptr[row + 1]);
            for (; i < last_i && j < last_j; ++at) { // without branches
                const Index a = x.indices[i], b = y.indices[j];
                const Position takes_x = a <= b, takes_y = b <= a;
                indices[at] = std::min(a, b);
                first[at] = i | (takes_x - 1);
                second[at] = j | (takes_y - 1);
                i += takes_x;
                j += takes_y;
            }
            for (; i < last_i; ++at) {
                indices[at] = x.indices[i];
                first[at] = i++;
                second[at] = -1;
            }
            for (; j < last_j; ++at) {
                indices[at] = y.indices[j];
                first[at] = -1;
                second[at] = j++;
            }
            return at;
        };
        fill_rows(
            threads, indptr, [&](std::size_t row) { return x.indptr[row] + y.indptr[row]; },
            [&] { return fill; }, indices, first, second);
        nb::gil_scoped_acquire acquired;
        return tuple_of(indices, indptr, first, second);
    });
}

// The rows of a product of patterns: the columns of elements, where their terms begin, and the
// factors of terms, those of an element in the order of the first factors. starts[row]: the first
// term of a row.
template <class Index, class Position> struct ProductRows {
    const Pattern<Index>&x, &y;
    const std::vector<std::size_t>& starts;
    Index* indices;
    Position *bounds, *first, *second;
    std::size_t columns;
    std::vector<Position> next; // by column: 0, or the next term of its element

    std::size_t operator()(std::size_t row, std::size_t at) {
        return starts[row + 1] - starts[row] > SHORT_ROW ? fill_long(row, at) : fill_short(row, at);
    }

    template <class Function> void for_terms(std::size_t row, Function function) {
        for (Index i = x.indptr[row]; i < x.indptr[row + 1]; ++i)
            for (Index j = y.indptr[x.indices[i]]; j < y.indptr[x.indices[i] + 1]; ++j)
                function(Position(i), Position(j));
    }

    std::size_t fill_short(std::size_t row, std::size_t at) {
        Element<Position> terms[SHORT_ROW];
        Position factors[2][SHORT_ROW];
        std::size_t count = 0;
        for_terms(row, [&](Position i, Position j) {
            terms[count] = {Position(y.indices[j]), Position(count)};
            factors[0][count] = i;
            factors[1][count++] = j;
        });
        sort_row(terms, count);
        for (std::size_t n = 0; n < count; ++n) {
            const std::size_t term = starts[row] + n;
            first[term] = factors[0][terms[n].number];
            second[term] = factors[1][terms[n].number];
            indices[at] = Index(terms[n].column);
            if (n == 0 || terms[n].column != terms[n - 1].column) bounds[at++] = Position(term);
        }
        return at;
    }

    std::size_t fill_long(std::size_t row, std::size_t at) {
        next.resize(columns);
        Index* found = indices + at;
        std::size_t count = 0;
        for_terms(row, [&](Position, Position j) {
            found[count] = y.indices[j];
            count += next[y.indices[j]]++ == 0;
        });
        if (count > columns / SHORT_ROW) {
            count = 0;
            for (std::size_t column = 0; column < columns; ++column)
                if (next[column]) found[count++] = Index(column);
        } else {
            std::sort(found, found + count);
        }
        auto total = Position(starts[row]);
        for (std::size_t n = 0; n < count; ++n) {
            bounds[at + n] = total;
            total += std::exchange(next[found[n]], total);
        }
        for_terms(row, [&](Position i, Position j) {
            auto term = next[y.indices[j]]++;
            first[term] = i;
            second[term] = j;
        });
        for (std::size_t n = 0; n < count; ++n) next[found[n]] = 0;
        return at + count;
    }
};

// multiply_patterns(indices, indptr, indices, indptr, k, n, threads) -> (indices, indptr, first,
// second, bounds): the product, and its terms by element: the positions of the factors, in the
// order of the first, and where the terms of each element begin. Throws where Index cannot count
// the terms.
template <class Index>
nb::tuple multiply_patterns(const Input<Index>& x_indices, const Input<Index>& x_indptr,
                            const Input<Index>& y_indices, const Input<Index>& y_indptr,
                            int64_t inner, int64_t columns, int threads) {
    nb::gil_scoped_release released;
    Pattern x(x_indices, x_indptr, inner), y(y_indices, y_indptr, columns);
    if (int64_t(y.rows) != inner) throw nb::index_error("unequal inner lengths");
    std::vector<std::size_t> starts(x.rows + 1);
    for (std::size_t row = 0; row < x.rows; ++row) {
        starts[row + 1] = starts[row];
        for (Index i = x.indptr[row]; i < x.indptr[row + 1]; ++i)
            starts[row + 1] += std::size_t(y.indptr[x.indices[i] + 1] - y.indptr[x.indices[i]]);
    }
    const std::size_t num_terms = starts.back();
    check_count<Index>(num_terms);
    const std::size_t largest = std::max({num_terms, std::size_t(columns), x.size, y.size});
    return with_position(largest, [&]<class Position>(Position) {
        Indices<Index> indices(num_terms), indptr(x.rows + 1);
        Indices<Position> first(num_terms), second(num_terms), bounds(num_terms + 1);
        ProductRows<Index, Position> rows{x,
                                          y,
                                          starts,
                                          indices.begin(),
                                          bounds.begin(),
                                          first.begin(),
                                          second.begin(),
                                          std::size_t(columns),
                                          {}};
        fill_rows(
            threads, indptr, [&](std::size_t row) { return starts[row]; }, [&] { return rows; },
            indices, bounds);
        bounds[bounds.length++] = Position(num_terms);
        nb::gil_scoped_acquire acquired;
        return tuple_of(indices, indptr, first, second, bounds);
    });
}

template <class Index> void declare_for(nb::module_& module) {
    module.def("sort_elements", sort_elements<Index>);
    module.def("transpose_pattern", transpose_pattern<Index>);
    module.def("merge_patterns", merge_patterns<Index>);
    module.def("multiply_patterns", multiply_patterns<Index>);
}

} // namespace

void declare_csr_patterns(nb::module_& module) {
    declare_for<int32_t>(module);
    declare_for<int64_t>(module);
}

} // namespace tenfold::bindings
