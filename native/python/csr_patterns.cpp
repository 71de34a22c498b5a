// Patterns of matrices in compressed rows: sorts, merges and multiplies them. Takes arrays of int32
// or int64, returns new ones of that dtype. No index is trusted: one out of range throws.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "python/python_objects.h"

namespace tenfold::bindings {

namespace {

template <class Index>
using Input = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// An array that becomes NumPy's: of a length that is known, or that grows.
template <class Index> struct Indices {
    std::unique_ptr<Index[]> data;
    std::size_t length = 0, capacity = 0;

    Indices() = default;
    explicit Indices(std::size_t size)
        : data(std::make_unique_for_overwrite<Index[]>(size)), length(size), capacity(size) {}
    Index& operator[](std::size_t at) { return data[at]; }
    void resize(std::size_t size) {
        if (size > capacity) {
            capacity = std::max(size, capacity + capacity / 2);
            auto larger = std::make_unique_for_overwrite<Index[]>(capacity);
            std::copy_n(data.get(), length, larger.get());
            data = std::move(larger);
        }
        length = size;
    }
    nb::object to_python() {
        Index* kept = data.release();
        nb::capsule owner(kept, [](void* at) noexcept { delete[] static_cast<Index*>(at); });
        return nb::cast(nb::ndarray<nb::numpy, Index, nb::ndim<1>>(kept, {length}, owner));
    }
};

template <class... Arrays> nb::tuple tuple_of(Arrays&... arrays) {
    return nb::make_tuple(arrays.to_python()...);
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

// Where each key begins in the sorted order of keys, of which each is from 0 to `count` - 1.
template <class Index>
std::vector<Index> starts_of(const Index* keys, std::size_t size, std::size_t count) {
    std::vector<Index> starts(count + 1, 0);
    for (std::size_t i = 0; i < size; ++i) {
        if (keys[i] < 0 || std::size_t(keys[i]) >= count)
            throw nb::index_error("an index is out of range");
        ++starts[std::size_t(keys[i]) + 1];
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    return starts;
}

// sort_elements(rows, columns, m, n) -> (order, indices, indptr, group): of elements by row, then
// by column, in order where a place occurs twice; `group`: the distinct place of each, empty if
// all are distinct; `order` is empty if they stand so.
template <class Index>
nb::tuple sort_elements(const Input<Index>& row_array, const Input<Index>& column_array,
                        int64_t row_count, int64_t column_count) {
    const Index *rows = row_array.data(), *columns = column_array.data();
    std::size_t size = row_array.size(), num_rows = std::size_t(row_count), distinct = 0;
    if (size != column_array.size()) throw nb::index_error("unequal lengths");
    Indices<Index> order, indices(size), indptr(num_rows + 1), group(size);
    {
        nb::gil_scoped_release released;
        bool ordered = true;
        for (std::size_t i = 1; i < size && ordered; ++i)
            ordered =
                rows[i - 1] < rows[i] || (rows[i - 1] == rows[i] && columns[i - 1] <= columns[i]);
        std::vector<Index> starts = starts_of(rows, size, num_rows);
        for (std::size_t i = 0; i < size; ++i)
            if (columns[i] < 0 || int64_t(columns[i]) >= column_count)
                throw nb::index_error("an index is out of range");
        if (!ordered) {
            Indices<Index> by_column(size);
            std::iota(by_column.data.get(), by_column.data.get() + size, Index(0));
            if (std::size_t(column_count) > 8 * size) { // counting would take more memory
                std::stable_sort(by_column.data.get(), by_column.data.get() + size,
                                 [&](Index i, Index j) { return columns[i] < columns[j]; });
            } else {
                std::vector<Index> next = starts_of(columns, size, std::size_t(column_count));
                for (std::size_t i = 0; i < size; ++i)
                    by_column[std::size_t(next[std::size_t(columns[i])]++)] = Index(i);
            }
            order.resize(size);
            for (std::size_t i = 0; i < size; ++i)
                order[std::size_t(starts[std::size_t(rows[by_column[i]])]++)] = by_column[i];
            std::copy_backward(starts.begin(), starts.end() - 1, starts.end());
            starts[0] = 0;
        }
        indptr[0] = 0;
        for (std::size_t row = 0; row < num_rows; ++row) {
            auto first = std::size_t(starts[row]);
            for (std::size_t i = first; i < std::size_t(starts[row + 1]); ++i) {
                Index column = columns[ordered ? i : std::size_t(order[i])];
                if (i == first || indices[distinct - 1] != column) indices[distinct++] = column;
                group[i] = Index(distinct - 1);
            }
            indptr[row + 1] = Index(distinct);
        }
        indices.length = distinct;
        if (distinct == size) group.length = 0;
    }
    return tuple_of(order, indices, indptr, group);
}

// transpose_pattern(indices, indptr, n) -> (indices, indptr, order)
template <class Index>
nb::tuple transpose_pattern(const Input<Index>& indices, const Input<Index>& indptr,
                            int64_t columns) {
    Pattern pattern(indices, indptr, columns);
    Indices<Index> rows(pattern.size), order(pattern.size), bounds(std::size_t(columns) + 1);
    {
        nb::gil_scoped_release released;
        std::vector<Index> next = starts_of(pattern.indices, pattern.size, std::size_t(columns));
        std::ranges::copy(next, bounds.data.get());
        for (std::size_t row = 0; row < pattern.rows; ++row)
            for (Index i = pattern.indptr[row]; i < pattern.indptr[row + 1]; ++i) {
                auto at = std::size_t(next[std::size_t(pattern.indices[i])]++);
                rows[at] = Index(row);
                order[at] = i;
            }
    }
    return tuple_of(rows, bounds, order);
}

// merge_patterns(indices, indptr, indices, indptr, n) -> (indices, indptr, first, second): the
// union, and the position of each element in both; -1 where it is none.
template <class Index>
nb::tuple merge_patterns(const Input<Index>& x_indices, const Input<Index>& x_indptr,
                         const Input<Index>& y_indices, const Input<Index>& y_indptr,
                         int64_t columns) {
    Pattern x(x_indices, x_indptr, columns), y(y_indices, y_indptr, columns);
    if (x.rows != y.rows) throw nb::index_error("unequal numbers of rows");
    Indices<Index> indices(x.size + y.size), indptr(x.rows + 1), first(x.size + y.size),
        second(x.size + y.size);
    std::size_t at = 0;
    {
        nb::gil_scoped_release released;
        indptr[0] = 0;
        for (std::size_t row = 0; row < x.rows; ++row) {
            Index i = x.indptr[row], j = y.indptr[row];
            const Index last_i = x.indptr[row + 1], last_j = y.indptr[row + 1];
            for (; i < last_i || j < last_j; ++at) {
                bool takes_x = j == last_j || (i < last_i && x.indices[i] <= y.indices[j]);
                bool takes_y = i == last_i || (j < last_j && y.indices[j] <= x.indices[i]);
                indices[at] = takes_x ? x.indices[i] : y.indices[j];
                first[at] = takes_x ? i++ : Index(-1);
                second[at] = takes_y ? j++ : Index(-1);
            }
            indptr[row + 1] = Index(at);
        }
        indices.length = first.length = second.length = at;
    }
    return tuple_of(indices, indptr, first, second);
}

// multiply_patterns(indices, indptr, indices, indptr, k, n) -> (indices, indptr, first, second,
// bounds): the product, and its terms by element: the positions of the factors, in the order of the
// first, and where the terms of each element begin.
template <class Index>
nb::tuple multiply_patterns(const Input<Index>& x_indices, const Input<Index>& x_indptr,
                            const Input<Index>& y_indices, const Input<Index>& y_indptr,
                            int64_t inner, int64_t columns) {
    Pattern x(x_indices, x_indptr, inner), y(y_indices, y_indptr, columns);
    if (int64_t(y.rows) != inner) throw nb::index_error("unequal inner lengths");
    std::size_t num_terms = 0;
    for (std::size_t i = 0; i < x.size; ++i)
        num_terms += std::size_t(y.indptr[x.indices[i] + 1] - y.indptr[x.indices[i]]);
    if (num_terms > std::size_t(std::numeric_limits<Index>::max()))
        throw std::overflow_error("the terms of the product are too many for these indices");
    Indices<Index> indices, indptr(x.rows + 1), first(num_terms), second(num_terms), bounds(1);
    {
        nb::gil_scoped_release released;
        std::vector<Index> next(std::size_t(columns), 0);
        std::size_t num_found = 0;
        Index total = 0;
        indptr[0] = bounds[0] = 0;
        for (std::size_t row = 0; row < x.rows; ++row) {
            const std::size_t before = num_found;
            for (Index i = x.indptr[row]; i < x.indptr[row + 1]; ++i) {
                auto k = std::size_t(x.indices[i]);
                indices.resize(num_found + std::size_t(y.indptr[k + 1] - y.indptr[k]));
                for (Index j = y.indptr[k]; j < y.indptr[k + 1]; ++j) {
                    Index column = y.indices[j];
                    indices[num_found] = column;
                    num_found += next[std::size_t(column)]++ == 0;
                }
            }
            std::sort(indices.data.get() + before, indices.data.get() + num_found);
            bounds.resize(num_found + 1);
            for (std::size_t at = before; at < num_found; ++at) {
                total += std::exchange(next[std::size_t(indices[at])], total);
                bounds[at + 1] = total;
            }
            for (Index i = x.indptr[row]; i < x.indptr[row + 1]; ++i) {
                auto k = std::size_t(x.indices[i]);
                for (Index j = y.indptr[k]; j < y.indptr[k + 1]; ++j) {
                    auto term = std::size_t(next[std::size_t(y.indices[j])]++);
                    first[term] = i;
                    second[term] = j;
                }
            }
            for (std::size_t at = before; at < num_found; ++at) next[std::size_t(indices[at])] = 0;
            indptr[row + 1] = Index(num_found);
        }
        indices.length = num_found;
    }
    return tuple_of(indices, indptr, first, second, bounds);
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
